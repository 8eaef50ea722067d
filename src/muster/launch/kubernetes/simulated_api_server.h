// An API server in memory with one TFJob, its pods and its services, and the log of changes that
// watches read. For tests of this layer only.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/launch/kubernetes/admission.h"
#include "muster/launch/kubernetes/api/kube_object.h"

namespace muster::launch::kubernetes {

class SimulatedApiServer {
 public:
  using Object = std::shared_ptr<const Json>;
  struct Change {
    bool deleted = false;
    Object object = {};
  };

  // `changed` is called after each change of an object.
  using Changed = std::function<void(const std::string& plural, const Change& change)>;
  explicit SimulatedApiServer(Changed changed) : changed_(std::move(changed)) {}

  const std::vector<Change>& log(const std::string& plural) { return logs_[plural]; }
  int64_t version() const { return version_; }
  const std::map<std::string, Object>& objects(const std::string& plural) {
    return objects_[plural];
  }
  // Null: there is none.
  Object Find(const std::string& plural, const std::string& name) {
    const auto found = objects_[plural].find(name);
    return found == objects_[plural].end() ? nullptr : found->second;
  }

  absl::StatusOr<Json> Get(const std::string& target) {
    const auto [plural, name] = Split(target);
    const Object found = Find(plural, name);
    if (found == nullptr) return absl::NotFoundError(name);
    return *found;
  }

  // "?dryRun=All" after the target: the answer, and nothing else.
  absl::StatusOr<Json> Create(const std::string& target, Json object) {
    const size_t query = std::min(target.find('?'), target.size());
    const size_t begin = target.rfind('/', query) + 1;
    const std::string plural = target.substr(begin, query - begin);
    const std::string name = GetName(object);
    if (Find(plural, name) != nullptr) return absl::AlreadyExistsError(name);
    if (target.ends_with("?dryRun=All")) return object;
    object["metadata"]["namespace"] = "team";
    object["metadata"]["uid"] = StrCat(name, "-", version_ + 1);
    if (plural == kPods.plural) object["status"]["phase"] = "Pending";
    return Store(plural, std::move(object));
  }

  // Of a job's status.
  absl::StatusOr<Json> Replace(const std::string& target, const Json& object) {
    const auto [plural, name] = Split(target);
    const Object found = Find(plural, name);
    if (found == nullptr) return absl::NotFoundError(name);
    if (GetUid(*found) != GetUid(object) || GetVersion(*found) != GetVersion(object)) {
      return absl::AbortedError("the object has been modified");
    }
    Json changed = *found;
    changed["status"] = Child(object, "status");
    return Store(plural, std::move(changed));
  }

  // A pod's admission.
  absl::StatusOr<Json> Admit(const std::string& target, const Json& patch) {
    const auto [plural, name] = Split(target);
    const Object found = Find(plural, name);
    if (found == nullptr) return absl::NotFoundError(name);
    if (GetUid(*found) != GetUid(patch)) return absl::AbortedError("the uid is another one");
    if (!HasAdmissionGate(*found)) return *found;
    Json changed = *found;
    changed["spec"].erase("schedulingGates");
    return Store(plural, std::move(changed));
  }

  // A pod that runs is marked, and goes when its kubelet says so.
  absl::Status Delete(const std::string& target, const std::string& uid) {
    const auto [plural, name] = Split(target);
    const Object found = Find(plural, name);
    if (found == nullptr) return absl::NotFoundError(name);
    if (GetUid(*found) != uid) return absl::AbortedError("the uid is another one");
    const std::string phase = GetText(Child(*found, "status"), "phase");
    if (plural == kPods.plural && phase != "Pending") {
      if (Child(Child(*found, "metadata"), "deletionTimestamp").is_string()) {
        return absl::OkStatus();
      }
      Json changed = *found;
      changed["metadata"]["deletionTimestamp"] = "now";
      (void)Store(plural, std::move(changed));
    } else {
      Remove(plural, name);
    }
    return absl::OkStatus();
  }

  Json Store(const std::string& plural, Json object) {
    object["metadata"]["resourceVersion"] = StrCat(++version_);
    const auto stored = std::make_shared<const Json>(std::move(object));
    objects_[plural][GetName(*stored)] = stored;
    logs_[plural].push_back({.object = stored});
    changed_(plural, {.object = stored});
    return *stored;
  }

  void Remove(const std::string& plural, const std::string& name) {
    Json last = *objects_[plural].at(name);
    objects_[plural].erase(name);
    last["metadata"]["resourceVersion"] = StrCat(++version_);
    const Change change = {.deleted = true, .object = std::make_shared<const Json>(last)};
    logs_[plural].push_back(change);
    changed_(plural, change);
  }

 private:
  // ".../pods/NAME", ".../tfjobs/NAME/status?fieldValidation=Strict"
  static std::pair<std::string, std::string> Split(std::string target) {
    target.resize(std::min(target.find('?'), target.size()));
    if (target.ends_with("/status")) target.resize(target.rfind('/'));
    const size_t name = target.rfind('/');
    const size_t plural = target.rfind('/', name - 1);
    return {target.substr(plural + 1, name - plural - 1), target.substr(name + 1)};
  }

  const Changed changed_;
  int64_t version_ = 100;
  std::map<std::string, std::map<std::string, Object>> objects_ = {};  // by plural, by name
  std::map<std::string, std::vector<Change>> logs_ = {};               // by plural
};

}  // namespace muster::launch::kubernetes
