// JobCache: what is known of TFJobs, their pods and their services, as reflectors and the answers
// of our own calls say it. A change makes the job's key due.
//
// Of what two sources say about one object the newer version counts, so that an answer of our own
// call, which is there before the watch brings it, is not undone by an older event. A pod that was
// seen and is gone is remembered as gone until another one has its name: absence alone never says
// that a pod does not run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/mutex.h"
#include "muster/launch/kubernetes/api/reflector.h"
#include "muster/launch/kubernetes/pod_record.h"

namespace muster::launch::kubernetes {

struct ServiceRecord {
  std::string uid = {};
  int64_t version = 0;
  bool gone = false;
};

struct TaskStart {
  job::TaskId task = {};
  int64_t incarnation = 0;
};

// Of one job. Pods and services are by name; those of an older job of the same name are not in it.
struct JobView {
  std::shared_ptr<const Json> object = {};  // null: there is no such job
  std::map<std::string, PodRecord> pods = {};
  std::map<std::string, ServiceRecord> services = {};
  // Incarnations of which the API server has said that they have no pod.
  std::vector<TaskStart> gone = {};
};

// Any thread.
class JobCache {
 public:
  // `due` is called with "NAMESPACE/NAME" of a job after a change, under no lock.
  explicit JobCache(std::function<void(const std::string& key)> due) : due_(std::move(due)) {}

  JobView View(const std::string& key) const;
  std::vector<std::string> Keys() const;
  size_t pods() const;

  void SetJob(Json object);
  void RemoveJob(const Json& object);
  void SetPod(const Json& pod);
  void RemovePod(const Json& pod);
  void SetService(const Json& service);
  void RemoveService(const Json& service);
  // What reflectors fill.
  ObjectSink& jobs() { return *jobs_; }
  ObjectSink& pods_sink() { return *pods_; }
  ObjectSink& services() { return *services_; }

 private:
  class Sink;
  struct JobRecord {
    std::shared_ptr<const Json> object = {};
    int64_t version = 0;
  };
  template <typename Record>
  struct Owned {
    std::string owner_uid = {};
    Record record = {};
  };
  template <typename Record>
  using Table = std::map<std::string, std::map<std::string, Owned<Record>>>;  // by key, by name

  enum class Kind : uint8_t { kJob, kPod, kService };
  // Removes what a full list of `version` does not have.
  void Sweep(Kind kind, const std::set<std::string>& seen, int64_t version);

  const std::function<void(const std::string& key)> due_;
  mutable Mutex mutex_;
  std::map<std::string, JobRecord> records_ ABSL_GUARDED_BY(mutex_) = {};
  Table<PodRecord> pod_table_ ABSL_GUARDED_BY(mutex_) = {};
  Table<ServiceRecord> service_table_ ABSL_GUARDED_BY(mutex_) = {};
  const std::unique_ptr<ObjectSink> jobs_ = MakeSink(Kind::kJob);
  const std::unique_ptr<ObjectSink> pods_ = MakeSink(Kind::kPod);
  const std::unique_ptr<ObjectSink> services_ = MakeSink(Kind::kService);
  std::unique_ptr<ObjectSink> MakeSink(Kind kind);
};

}  // namespace muster::launch::kubernetes
