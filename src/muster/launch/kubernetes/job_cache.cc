#include "muster/launch/kubernetes/job_cache.h"

#include "muster/formats/json_fields.h"
#include "muster/launch/kubernetes/pod_plan.h"

namespace muster::launch::kubernetes {
namespace {

std::string GetKey(const Json& object) {
  return StrCat(GetNamespace(object), "/", GetName(object));
}

std::string GetJobKey(const Json& object, const OwnerRecord& owner) {
  return StrCat(GetNamespace(object), "/", owner.name);
}

}  // namespace

bool AreSameSettings(const Json& a, const Json& b) {
  const Json& one = Child(a, "metadata");
  const Json& other = Child(b, "metadata");
  return GetUid(a) == GetUid(b) && Child(a, "spec") == Child(b, "spec") &&
         Child(one, "annotations") == Child(other, "annotations") &&
         Child(one, "labels") == Child(other, "labels");
}

// Marks what a list has and sweeps the rest at its end.
class JobCache::Sink : public ObjectSink {
 public:
  Sink(JobCache* cache, Kind kind) : cache_(cache), kind_(kind) {}

  void BeginList() override {
    seen_.clear();
    listing_ = true;
  }
  void Set(Json object) override {
    if (listing_) seen_.insert(GetUid(object));
    switch (kind_) {
      case Kind::kJob:
        return cache_->SetJob(std::move(object));
      case Kind::kPod:
        return cache_->SetPod(object);
      case Kind::kService:
        return cache_->SetService(object);
    }
  }
  bool IsKnown(int64_t version) override { return cache_->TakeExpected(kind_, version); }
  void Remove(const Json& object) override {
    switch (kind_) {
      case Kind::kJob:
        return cache_->RemoveJob(object);
      case Kind::kPod:
        return cache_->RemovePod(object);
      case Kind::kService:
        return cache_->RemoveService(object);
    }
  }
  void EndList(int64_t version) override {
    cache_->Sweep(kind_, seen_, version);
    seen_.clear();
    listing_ = false;
  }

 private:
  JobCache* const cache_;
  const Kind kind_;
  bool listing_ = false;
  std::set<std::string> seen_ = {};  // uids
};

std::unique_ptr<ObjectSink> JobCache::MakeSink(Kind kind) {
  return std::make_unique<Sink>(this, kind);
}

JobCache::Uid JobCache::ShareUid(const std::string& key, std::string uid) const {
  const auto job = records_.find(key);
  if (job != records_.end() && *job->second.uid == uid) return job->second.uid;
  return std::make_shared<const std::string>(std::move(uid));
}

const std::shared_ptr<const Json>& JobCache::GetObject(JobRecord& record) {
  if (record.object == nullptr) {
    record.object = std::make_shared<const Json>(Json::parse(record.text));
    record.text = {};
  }
  return record.object;
}

void JobCache::Pack() {
  const MutexLock lock(&mutex_);
  for (auto& [key, record] : records_) {
    if (record.object == nullptr || record.object.use_count() > 1) continue;
    record.text = formats::PrintJson(*record.object);
    record.text.shrink_to_fit();
    record.object = nullptr;
  }
}

JobView JobCache::View(const std::string& key) const {
  const MutexLock lock(&mutex_);
  JobView view;
  const auto found = records_.find(key);
  if (found == records_.end()) return view;
  view.object = GetObject(found->second);
  view.admitted = ReadAdmitted(*view.object);
  const std::string& uid = *found->second.uid;
  if (const auto pods = pod_table_.find(key); pods != pod_table_.end()) {
    for (const auto& [name, pod] : pods->second) {
      if (*pod.owner_uid == uid) {
        view.pods[name] = pod.record;
      } else if (!IsGone(pod.record)) {
        view.earlier.push_back(name);
      }
    }
  }
  if (const auto services = service_table_.find(key); services != service_table_.end()) {
    for (const auto& [name, service] : services->second) {
      if (*service.owner_uid == uid && !service.record.gone) view.services[name] = service.record;
    }
  }
  return view;
}

std::vector<std::string> JobCache::Keys() const {
  const MutexLock lock(&mutex_);
  std::vector<std::string> keys;
  for (const auto& [key, record] : records_) keys.push_back(key);
  return keys;
}

size_t JobCache::pods() const {
  const MutexLock lock(&mutex_);
  size_t count = 0;
  for (const auto& [key, pods] : pod_table_) count += pods.size();
  return count;
}

void JobCache::Expect(Kind kind, int64_t version) { expected_[kind].insert(version); }

bool JobCache::TakeExpected(Kind kind, int64_t version) {
  const MutexLock lock(&mutex_);
  std::set<int64_t>& versions = expected_[kind];
  const bool is_expected = versions.contains(version);
  versions.erase(versions.begin(), versions.upper_bound(version));
  return is_expected;
}

void JobCache::SetJob(Json object, Source source) {
  if (GetName(object).empty()) return;  // this is no object
  const std::string key = GetKey(object);
  object["metadata"].erase("managedFields");  // the larger half of the object
  bool is_edit = true;
  {
    const MutexLock lock(&mutex_);
    const auto known = records_.find(key);
    const int64_t version = GetVersion(object);
    if (version <= (known == records_.end() ? 0 : known->second.version)) return;
    if (known != records_.end()) is_edit = !AreSameSettings(*GetObject(known->second), object);
    if (source == Source::kAnswer) Expect(Kind::kJob, version);
    // The copy has no room to grow, of which a parsed object has as much again.
    records_[key] = {.uid = ShareUid(key, GetUid(object)),
                     .version = version,
                     .object = std::make_shared<const Json>(std::as_const(object))};
  }
  (is_edit ? edited_ : due_)(key);
}

void JobCache::RemoveJob(const Json& object) {
  const std::string key = GetKey(object);
  {
    const MutexLock lock(&mutex_);
    const auto known = records_.find(key);
    if (known == records_.end() || *known->second.uid != GetUid(object)) return;
    records_.erase(known);
    ForgetOwned(key);
  }
  due_(key);
}

void JobCache::ForgetOwned(const std::string& key) {
  service_table_.erase(key);
  const auto pods = pod_table_.find(key);
  if (pods == pod_table_.end()) return;
  std::erase_if(pods->second, [](const auto& each) { return IsGone(each.second.record); });
  if (pods->second.empty()) pod_table_.erase(pods);
}

void JobCache::SetPod(const Json& pod, Source source) {
  const auto owner = FindOwner(pod);
  if (!owner) return Disown(pod);
  auto record = ReadPod(pod);
  if (!record) return;
  const std::string key = GetJobKey(pod, *owner);
  {
    const MutexLock lock(&mutex_);
    const auto job = records_.find(key);
    const bool is_present = job != records_.end() && *job->second.uid == owner->uid;
    if (source == Source::kAnswer && !is_present) return;
    Owned<PodRecord>& known = pod_table_[key][GetName(pod)];
    if (record->version <= known.record.version) return;
    if (source == Source::kAnswer) Expect(Kind::kPod, record->version);
    known = {.owner_uid = ShareUid(key, owner->uid), .record = *std::move(record)};
  }
  due_(key);
}

void JobCache::Disown(const Json& pod) {
  const std::string key =
      StrCat(GetNamespace(pod), "/", GetText(Child(Child(pod, "metadata"), "labels"), kJobLabel));
  {
    const MutexLock lock(&mutex_);
    const auto table = pod_table_.find(key);
    if (table == pod_table_.end()) return;
    const auto known = table->second.find(GetName(pod));
    const bool is_known = known != table->second.end() && known->second.record.uid == GetUid(pod);
    const auto job = records_.find(key);
    const bool is_present =
        is_known && job != records_.end() && *job->second.uid == *known->second.owner_uid;
    if (!is_known || is_present) return;
    table->second.erase(known);
    if (table->second.empty()) pod_table_.erase(table);
  }
  due_(key);
}

void JobCache::RemovePod(const Json& pod) {
  const auto owner = FindOwner(pod);
  auto record = ReadPod(pod);
  if (!owner || !record) return;
  const std::string key = GetJobKey(pod, *owner);
  {
    const MutexLock lock(&mutex_);
    const auto table = pod_table_.find(key);
    if (table == pod_table_.end()) return;
    const auto known = table->second.find(GetName(pod));
    if (known == table->second.end() || known->second.record.uid != record->uid) return;
    known->second.record = MakeGone(*std::move(record));
    if (!records_.contains(key)) ForgetOwned(key);
  }
  due_(key);
}

void JobCache::SetService(const Json& service, Source source) {
  const auto owner = FindOwner(service);
  if (!owner) return;
  const std::string key = GetJobKey(service, *owner);
  {
    const MutexLock lock(&mutex_);
    Owned<ServiceRecord>& known = service_table_[key][GetName(service)];
    const int64_t version = GetVersion(service);
    if (version <= known.record.version) return;
    if (source == Source::kAnswer) Expect(Kind::kService, version);
    known = {.owner_uid = ShareUid(key, owner->uid),
             .record = {.uid = GetUid(service), .version = version}};
  }
  due_(key);  // a late call may have made it for a job that has ended
}

void JobCache::RemoveService(const Json& service) {
  const auto owner = FindOwner(service);
  if (!owner) return;
  const std::string key = GetJobKey(service, *owner);
  {
    const MutexLock lock(&mutex_);
    const auto table = service_table_.find(key);
    if (table == service_table_.end()) return;
    const auto known = table->second.find(GetName(service));
    if (known == table->second.end() || known->second.record.uid != GetUid(service)) return;
    known->second.record.gone = true;
    known->second.record.version = GetVersion(service);
  }
  due_(key);
}

void JobCache::Sweep(Kind kind, const std::set<std::string>& seen, int64_t version) {
  std::set<std::string> keys;
  {
    const MutexLock lock(&mutex_);
    const auto is_absent = [&](const std::string& uid, int64_t known) {
      return known <= version && !seen.contains(uid);
    };
    if (kind == Kind::kJob) {
      for (auto entry = records_.begin(); entry != records_.end();) {
        if (!is_absent(*entry->second.uid, entry->second.version)) {
          ++entry;
          continue;
        }
        keys.insert(entry->first);
        ForgetOwned(entry->first);
        entry = records_.erase(entry);
      }
    } else if (kind == Kind::kPod) {
      for (auto& [key, pods] : pod_table_) {
        for (auto& [name, pod] : pods) {
          if (pod.record.phase == job::TaskObservation::Phase::kGone) continue;
          if (!is_absent(pod.record.uid, pod.record.version)) continue;
          pod.record = MakeGone(pod.record);
          keys.insert(key);
        }
      }
      for (const std::string& key : keys) {
        if (!records_.contains(key)) ForgetOwned(key);
      }
    } else {
      for (auto& [key, services] : service_table_) {
        for (auto& [name, service] : services) {
          if (service.record.gone || !is_absent(service.record.uid, service.record.version)) {
            continue;
          }
          service.record.gone = true;
          keys.insert(key);
        }
      }
    }
  }
  for (const std::string& key : keys) due_(key);
}

}  // namespace muster::launch::kubernetes
