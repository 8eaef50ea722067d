#include "muster/launch/kubernetes/pod_groups.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"

#include "muster/launch/kubernetes/api/quantity.h"
#include "muster/launch/kubernetes/pod_plan.h"

namespace muster::launch::kubernetes {
namespace {

constexpr KubeKind kVolcanoGroups = {"scheduling.volcano.sh/v1beta1", "podgroups"};
constexpr KubeKind kPluginGroups = {"scheduling.x-k8s.io/v1alpha1", "podgroups"};
constexpr char kGroupAnnotation[] = "scheduling.k8s.io/group-name";
constexpr char kTaskAnnotation[] = "volcano.sh/task-spec";
constexpr char kGroupLabel[] = "scheduling.x-k8s.io/pod-group";

std::string GroupKey(const Json& object) {
  return StrCat(GetNamespace(object), "/", GetName(object));
}

std::string GroupKey(const TrainingJob& job) {
  return StrCat(job.spec.name_space, "/", job.spec.name);
}

// What the first `members` pods of the job ask for.
Json GetMinResources(const job::JobSpec& spec, int64_t members) {
  ResourceList sum;
  for (const auto& [type, replica] : spec.replicas) {
    const Json& containers = Child(Child(replica.pod_template, "spec"), "containers");
    for (int i = 0; i < replica.replicas && members > 0; ++i, --members) {
      for (const Json& container : containers) AddRequests(container, &sum);
    }
  }
  return PrintResources(sum);
}

bool HasAll(const Json& object, const Json& wanted) {
  return std::all_of(wanted.items().begin(), wanted.items().end(),
                     [&](const auto& item) { return Child(object, item.key()) == item.value(); });
}

}  // namespace

PodGroups::PodGroups(KubeClient& client, std::string scheduler,
                     std::function<void(const std::string& key)> due)
    : client_(client),
      scheduler_(absl::EqualsIgnoreCase(ToAbsl(scheduler), "volcano") ? "volcano"
                                                                      : std::move(scheduler)),
      due_(std::move(due)) {}

const KubeKind& PodGroups::kind() const { return is_volcano() ? kVolcanoGroups : kPluginGroups; }

absl::Status PodGroups::CheckKind(const std::string& name_space) {
  const auto listed = client_.Get(StrCat(GetTarget(kind(), name_space), "?limit=1"));
  if (!absl::IsNotFound(listed.status())) return listed.status();
  return absl::FailedPreconditionError(StrCat(
      "the cluster has no PodGroups of ", kind().group_version, ", which the gang scheduler ",
      scheduler_, " needs: install ", is_volcano() ? "Volcano" : "scheduler-plugins",
      ", or start without --gang-scheduler-name"));
}

// The fields that Kubeflow sets, with its defaults.
Json PodGroups::MakeSpec(const TrainingJob& job, const Json& existing) const {
  const Json& policy = job.spec.scheduling_policy;
  const int64_t members = GetNumber(policy, "minAvailable", job.spec.total());
  Json spec = {{"minMember", members}};
  const Json& given = Child(policy, "minResources");
  spec["minResources"] = given.is_object() ? given : GetMinResources(job.spec, members);
  for (auto& [name, value] : spec["minResources"].items()) {
    const auto quantity =
        Quantity::Parse(value.is_string() ? value.get<std::string>() : value.dump());
    if (quantity) value = quantity->Print();
  }
  if (!is_volcano()) {
    const int64_t seconds = GetNumber(policy, "scheduleTimeoutSeconds", -1);
    if (seconds >= 0) spec["scheduleTimeoutSeconds"] = seconds;
    return spec;
  }
  // The queue of a group that exists stays.
  std::string queue = GetText(Child(existing, "spec"), "queue");
  if (queue.empty()) queue = GetText(policy, "queue");
  spec["queue"] = queue.empty() ? "default" : queue;
  const std::string priority = GetText(policy, "priorityClass");
  if (!priority.empty()) spec["priorityClassName"] = priority;
  return spec;
}

absl::Status PodGroups::Check(const Json& group) const {
  if (!is_volcano()) return absl::OkStatus();
  const std::string phase = GetText(Child(group, "status"), "phase");
  if (!phase.empty() && phase != "Pending") return absl::OkStatus();
  return absl::UnavailableError(
      StrCat("waits for Volcano to admit its PodGroup, which is ", phase.empty() ? "new" : phase));
}

absl::Status PodGroups::Sync(const TrainingJob& job, const Json& object) {
  const std::string& name_space = job.spec.name_space;
  Json group = Find(GroupKey(job));
  if (group.is_null()) {
    auto read = client_.Get(GetTarget(kind(), name_space, job.spec.name));
    if (read.ok()) {
      group = *std::move(read);
    } else if (!absl::IsNotFound(read.status())) {
      return read.status();
    }
  }
  Json spec = MakeSpec(job, group);
  if (!group.is_null()) {
    const Json& owners = Child(Child(group, "metadata"), "ownerReferences");
    if (!owners.is_array() || owners.empty() || GetText(owners[0], "uid") != job.uid) {
      return absl::UnavailableError(StrCat("there is a PodGroup ", job.spec.name,
                                           " which is not of this job: remove it, or give the job "
                                           "another name"));
    }
    if (HasAll(Child(group, "spec"), spec)) return Check(group);
    group["spec"].update(spec);
    auto changed = client_.Replace(GetTarget(kind(), name_space, job.spec.name), group);
    MUSTER_RETURN_IF_ERROR(changed.status());
    Keep(*changed);
    return Check(*changed);
  }
  Json made = {{"apiVersion", kind().group_version}, {"kind", "PodGroup"}};
  made["metadata"] = {{"name", job.spec.name}, {"ownerReferences", MakeOwner(job)}};
  const Json& annotations = Child(Child(object, "metadata"), "annotations");
  if (annotations.is_object()) made["metadata"]["annotations"] = annotations;
  made["spec"] = std::move(spec);
  auto created = client_.Create(GetTarget(kind(), name_space), made);
  MUSTER_RETURN_IF_ERROR(created.status());
  Keep(*created);
  return Check(*created);
}

absl::StatusOr<bool> PodGroups::Delete(const TrainingJob& job) {
  const Json group = Find(GroupKey(job));
  if (group.is_null()) return false;
  const absl::Status deleted =
      client_.Delete(GetTarget(kind(), job.spec.name_space, job.spec.name), GetUid(group));
  if (!deleted.ok() && !absl::IsNotFound(deleted) && !absl::IsAborted(deleted)) return deleted;
  {
    const MutexLock lock(&mutex_);
    groups_.erase(GroupKey(job));
  }
  return deleted.ok();
}

void PodGroups::Decorate(const TrainingJob& job, job::TaskId task, Json* pod) const {
  Json& metadata = (*pod)["metadata"];
  Json& spec = (*pod)["spec"];
  if (GetText(spec, "schedulerName").empty()) spec["schedulerName"] = scheduler_;
  if (is_volcano()) {
    metadata["annotations"][kGroupAnnotation] = job.spec.name;
    metadata["annotations"][kTaskAnnotation] = job::TypeName(task.type);
  } else {
    metadata["labels"][kGroupLabel] = job.spec.name;
  }
}

bool PodGroups::HasOtherScheduler(const TrainingJob& job) const {
  return std::any_of(job.spec.replicas.begin(), job.spec.replicas.end(), [this](const auto& entry) {
    const std::string name = GetText(Child(entry.second.pod_template, "spec"), "schedulerName");
    return !name.empty() && name != scheduler_;
  });
}

Json PodGroups::Find(const std::string& key) const {
  const MutexLock lock(&mutex_);
  const auto found = groups_.find(key);
  return found == groups_.end() ? Json() : found->second;
}

bool PodGroups::Keep(Json object) {
  object["metadata"].erase("managedFields");
  const MutexLock lock(&mutex_);
  Json& known = groups_[GroupKey(object)];
  if (GetVersion(object) <= GetVersion(known)) return false;
  known = std::move(object);
  return true;
}

void PodGroups::BeginList() {
  listed_.clear();
  listing_ = true;
}

void PodGroups::Set(Json object) {
  const std::string key = GroupKey(object);
  if (listing_) listed_.insert(key);
  if (Keep(std::move(object))) due_(key);
}

void PodGroups::Remove(const Json& object) {
  const std::string key = GroupKey(object);
  {
    const MutexLock lock(&mutex_);
    const auto found = groups_.find(key);
    if (found == groups_.end() || GetUid(found->second) != GetUid(object)) return;
    groups_.erase(found);
  }
  due_(key);
}

void PodGroups::EndList(int64_t version) {
  std::vector<std::string> gone;
  {
    const MutexLock lock(&mutex_);
    for (const auto& [key, group] : groups_) {
      if (!listed_.contains(key) && GetVersion(group) <= version) gone.push_back(key);
    }
    for (const std::string& key : gone) groups_.erase(key);
  }
  for (const std::string& key : gone) due_(key);
  listing_ = false;
}

}  // namespace muster::launch::kubernetes
