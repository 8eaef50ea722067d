#include "muster/launch/kubernetes/job_cache.h"

namespace muster::launch::kubernetes {
namespace {

std::string KeyOf(const Json& object) { return StrCat(NamespaceOf(object), "/", NameOf(object)); }

std::string JobKeyOf(const Json& object, const OwnerRecord& owner) {
  return StrCat(NamespaceOf(object), "/", owner.name);
}

}  // namespace

// Marks what a list has and sweeps the rest at its end.
class JobCache::Sink : public ObjectSink {
 public:
  Sink(JobCache* cache, Kind kind) : cache_(cache), kind_(kind) {}

  void BeginList() override {
    seen_.clear();
    listing_ = true;
  }
  void Set(Json object) override {
    if (listing_) seen_.insert(UidOf(object));
    switch (kind_) {
      case Kind::kJob:
        return cache_->SetJob(std::move(object));
      case Kind::kPod:
        return cache_->SetPod(object);
      case Kind::kService:
        return cache_->SetService(object);
    }
  }
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

JobView JobCache::View(const std::string& key) const {
  const MutexLock lock(&mutex_);
  JobView view;
  const auto found = records_.find(key);
  if (found == records_.end()) return view;
  view.object = found->second.object;
  const std::string uid = UidOf(*view.object);
  if (const auto pods = pod_table_.find(key); pods != pod_table_.end()) {
    for (const auto& [name, pod] : pods->second) {
      if (pod.owner_uid == uid) view.pods[name] = pod.record;
    }
  }
  if (const auto services = service_table_.find(key); services != service_table_.end()) {
    for (const auto& [name, service] : services->second) {
      if (service.owner_uid == uid && !service.record.gone) view.services[name] = service.record;
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

void JobCache::SetJob(Json object) {
  const std::string key = KeyOf(object);
  object["metadata"].erase("managedFields");  // the larger half of the object
  {
    const MutexLock lock(&mutex_);
    JobRecord& known = records_[key];
    const int64_t version = VersionOf(object);
    if (version <= known.version) return;
    known = {.object = std::make_shared<const Json>(std::move(object)), .version = version};
  }
  due_(key);
}

void JobCache::RemoveJob(const Json& object) {
  const std::string key = KeyOf(object);
  {
    const MutexLock lock(&mutex_);
    const auto known = records_.find(key);
    if (known == records_.end() || UidOf(*known->second.object) != UidOf(object)) return;
    records_.erase(known);
    // The pods that the garbage collector has yet to remove are of no interest any more.
    pod_table_.erase(key);
    service_table_.erase(key);
  }
  due_(key);
}

void JobCache::SetPod(const Json& pod) {
  const auto owner = FindOwner(pod);
  if (!owner) return;
  auto record = ReadPod(pod);
  if (!record) return;
  const std::string key = JobKeyOf(pod, *owner);
  {
    const MutexLock lock(&mutex_);
    Owned<PodRecord>& known = pod_table_[key][NameOf(pod)];
    if (record->version <= known.record.version) return;
    known = {.owner_uid = owner->uid, .record = *std::move(record)};
  }
  due_(key);
}

void JobCache::RemovePod(const Json& pod) {
  const auto owner = FindOwner(pod);
  auto record = ReadPod(pod);
  if (!owner || !record) return;
  const std::string key = JobKeyOf(pod, *owner);
  {
    const MutexLock lock(&mutex_);
    const auto table = pod_table_.find(key);
    if (table == pod_table_.end()) return;
    const auto known = table->second.find(NameOf(pod));
    if (known == table->second.end() || known->second.record.uid != record->uid) return;
    known->second.record = MakeGone(*std::move(record));
    // The pods of a job that is gone itself need not be remembered.
    if (!records_.contains(key)) pod_table_.erase(table);
  }
  due_(key);
}

void JobCache::SetService(const Json& service) {
  const auto owner = FindOwner(service);
  if (!owner) return;
  const std::string key = JobKeyOf(service, *owner);
  const MutexLock lock(&mutex_);
  Owned<ServiceRecord>& known = service_table_[key][NameOf(service)];
  const int64_t version = VersionOf(service);
  if (version <= known.record.version) return;
  known = {.owner_uid = owner->uid, .record = {.uid = UidOf(service), .version = version}};
}

void JobCache::RemoveService(const Json& service) {
  const auto owner = FindOwner(service);
  if (!owner) return;
  const std::string key = JobKeyOf(service, *owner);
  {
    const MutexLock lock(&mutex_);
    const auto table = service_table_.find(key);
    if (table == service_table_.end()) return;
    const auto known = table->second.find(NameOf(service));
    if (known == table->second.end() || known->second.record.uid != UidOf(service)) return;
    known->second.record.gone = true;
    known->second.record.version = VersionOf(service);
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
        if (!is_absent(UidOf(*entry->second.object), entry->second.version)) {
          ++entry;
          continue;
        }
        keys.insert(entry->first);
        pod_table_.erase(entry->first);
        service_table_.erase(entry->first);
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
