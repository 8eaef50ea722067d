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
#include "muster/launch/kubernetes/admission.h"
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
  // As the job's status has them.
  AdmittedPods admitted = {};
  // Pods that still exist of an earlier job of this name, by name.
  std::vector<std::string> earlier = {};
  // Incarnations of which the API server has said that they have no pod.
  std::vector<TaskStart> gone = {};
};

// Whether the two objects are the same job with the same settings.
bool AreSameSettings(const Json& a, const Json& b);

// Any thread.
class JobCache {
 public:
  // `due` is called with "NAMESPACE/NAME" of a job after a change, under no lock; `edited` in its
  // place when the job is new, or somebody has changed its settings.
  using Notice = std::function<void(const std::string& key)>;
  explicit JobCache(const Notice& due) : JobCache(due, due) {}
  JobCache(Notice due, Notice edited) : due_(std::move(due)), edited_(std::move(edited)) {}

  JobView View(const std::string& key) const;
  std::vector<std::string> Keys() const;
  // Keeps of each job only its text, a quarter of the object's size, until the job is viewed.
  void Pack();
  size_t pods() const;

  // Of a call's answer, which may be older than all that watches have said, only a pod of the
  // present job is taken.
  enum class Source : uint8_t { kWatch, kAnswer };
  void SetJob(Json object, Source source = Source::kWatch);
  void RemoveJob(const Json& object);
  void SetPod(const Json& pod, Source source = Source::kWatch);
  void RemovePod(const Json& pod);
  void SetService(const Json& service, Source source = Source::kWatch);
  void RemoveService(const Json& service);
  // What reflectors fill.
  ObjectSink& jobs() { return *jobs_; }
  ObjectSink& pods_sink() { return *pods_; }
  ObjectSink& services() { return *services_; }

 private:
  class Sink;
  using Uid = std::shared_ptr<const std::string>;  // one for a job and all that it owns
  struct JobRecord {
    Uid uid = {};
    int64_t version = 0;
    std::shared_ptr<const Json> object = {};  // null while only its text is kept
    std::string text = {};
  };
  static const std::shared_ptr<const Json>& GetObject(JobRecord& record);
  template <typename Record>
  struct Owned {
    Uid owner_uid = std::make_shared<const std::string>();
    Record record = {};
  };
  template <typename Record>
  using Table = std::map<std::string, std::map<std::string, Owned<Record>>>;  // by key, by name

  enum class Kind : uint8_t { kJob, kPod, kService };
  // What an answer has told, before the watch of that kind brings it: its versions. A version is
  // that of one state of one object.
  void Expect(Kind kind, int64_t version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the version was expected; it and older ones are not any more.
  bool TakeExpected(Kind kind, int64_t version);
  // The uid of an owner of that key, shared with the job if it is that one.
  Uid ShareUid(const std::string& key, std::string uid) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes what a full list of `version` does not have.
  void Sweep(Kind kind, const std::set<std::string>& seen, int64_t version);

  // The pod of an earlier job has lost its owner: it is not waited for any more.
  void Disown(const Json& pod);
  // Removes what is known of the job's pods and services but pods that exist: another job may take
  // its name. Forgets the job's pods when none exists.
  void ForgetOwned(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Notice due_, edited_;
  mutable Mutex mutex_;
  mutable std::map<std::string, JobRecord> records_ ABSL_GUARDED_BY(mutex_) = {};
  Table<PodRecord> pod_table_ ABSL_GUARDED_BY(mutex_) = {};
  Table<ServiceRecord> service_table_ ABSL_GUARDED_BY(mutex_) = {};
  std::map<Kind, std::set<int64_t>> expected_ ABSL_GUARDED_BY(mutex_) = {};
  const std::unique_ptr<ObjectSink> jobs_ = MakeSink(Kind::kJob);
  const std::unique_ptr<ObjectSink> pods_ = MakeSink(Kind::kPod);
  const std::unique_ptr<ObjectSink> services_ = MakeSink(Kind::kService);
  std::unique_ptr<ObjectSink> MakeSink(Kind kind);
};

}  // namespace muster::launch::kubernetes
