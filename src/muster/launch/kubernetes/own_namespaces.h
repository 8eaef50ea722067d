// Beside Kubeflow's training operator, Muster's acts only in namespaces that are labelled
// muster/operator=enabled: two controllers must not act on the same jobs.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "muster/base/mutex.h"
#include "muster/launch/kubernetes/api/kube_client.h"
#include "muster/launch/kubernetes/api/reflector.h"

namespace muster::launch::kubernetes {

// Where Kubeflow's operator was found: "its Lease kubeflow/..."; "": nowhere. What may not be read
// counts as not found.
absl::StatusOr<std::string> FindKubeflow(KubeClient& client, double wall_seconds);

// The label selector of those namespaces, or of one of them.
std::string GetOwnNamespaceSelector(const std::string& name_space);

// FAILED_PRECONDITION with the command that mends it if no namespace is labelled, or not the one
// that is given. `kubeflow` is what FindKubeflow() returned.
absl::Status CheckOwnNamespaces(KubeClient& client, const std::string& name_space,
                                const std::string& kubeflow);

// The labelled namespaces. Any thread, but for what the reflector calls.
class OwnNamespaces : public ObjectSink {
 public:
  // `added` is called under no lock with a namespace that was labelled.
  explicit OwnNamespaces(std::function<void(const std::string& name_space)> added)
      : added_(std::move(added)) {}

  bool Has(const std::string& name_space) const;

  void BeginList() override { listed_.clear(); }
  void Set(Json object) override;
  // Also of a namespace whose label was removed.
  void Remove(const Json& object) override;
  void EndList(int64_t version) override;

 private:
  const std::function<void(const std::string& name_space)> added_;
  std::set<std::string> listed_ = {};  // of the list that is being read
  mutable Mutex mutex_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace muster::launch::kubernetes
