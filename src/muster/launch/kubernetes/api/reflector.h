// Reflector: keeps a sink up to date with the objects of one kind. It lists them, watches for
// changes from the list's version on, and lists again when that version is too old for the server.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "muster/base/mutex.h"
#include "muster/launch/kubernetes/api/kube_client.h"

namespace muster::launch::kubernetes {

// The reflector's thread calls it.
class ObjectSink {
 public:
  virtual ~ObjectSink() = default;
  // A full list begins: what is not set before EndList() does not exist any more, unless it is
  // newer than the list. A second BeginList() before EndList() begins anew.
  virtual void BeginList() = 0;
  // The object as it was at its version, which may be older than one that is known already.
  virtual void Set(Json object) = 0;
  // Whether Set() has nothing to learn from the object of this version, which a watch has brought
  // and is not read then. A watch asks in the order of versions.
  virtual bool IsKnown(int64_t /*version*/) { return false; }
  // The object's last state; another object may have its name by now.
  virtual void Remove(const Json& object) = 0;
  virtual void EndList(int64_t version) = 0;
};

class Reflector {
 public:
  // `target` is a collection, as GetTarget() returns it. All must outlive the reflector.
  Reflector(KubeClient& client, std::string target, std::string selector, ObjectSink& sink)
      : client_(client), target_(std::move(target)), selector_(std::move(selector)), sink_(sink) {}

  // Lists and watches until the client is cancelled. An error is kept for problem() and tried again
  // after a pause that grows to 10 s.
  void Run();
  // Whether a first list has ended.
  bool synced() const { return synced_; }
  // Why the sink may be out of date; "" while a watch runs or begins. Any thread.
  std::string problem() const;
  uint64_t lists() const { return lists_; }

 private:
  absl::Status List();
  absl::Status Watch();
  void SetProblem(const absl::Status& status);

  KubeClient& client_;
  const std::string target_, selector_;
  ObjectSink& sink_;
  std::string version_ = {};  // "": to be listed
  bool progressed_ = false;   // the last watch has brought anything
  std::atomic<bool> synced_ = false;
  std::atomic<uint64_t> lists_ = 0;
  mutable Mutex mutex_;
  std::string problem_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace muster::launch::kubernetes
