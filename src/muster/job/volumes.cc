#include "muster/job/volumes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"

#include "muster/base/nearest.h"
#include "muster/job/pod_template.h"

namespace muster::job {
namespace {

using Paths = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kFileScheme = "file://";

bool IsPathCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("/._-~+@%").find(c) != std::string_view::npos ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool BeginsPath(std::string_view text, size_t at) {
  return at == 0 || !IsPathCharacter(text[at - 1]) || text.substr(0, at).ends_with(kFileScheme);
}

bool IsWholePart(std::string_view text, size_t end) {
  return end == text.size() || text[end] == '/' || !IsPathCharacter(text[end]);
}

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::string GetText(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// Returns the kind of a volume, such as "persistentVolumeClaim" or "emptyDir": the member other
// than the name.
std::string KindOfVolume(const Json& volume) {
  for (const auto& [key, value] : volume.items()) {
    if (key != "name") return key;
  }
  return "of no kind";
}

void ReplaceIn(Json& text, const Paths& paths) {
  if (text.is_string()) text = ReplacePaths(text.get<std::string>(), paths);
}

void ReplaceInContainer(const Paths& paths, Json* container) {
  for (const char* const key : {"command", "args"}) {
    if (!container->contains(key)) continue;
    for (Json& word : (*container)[key]) ReplaceIn(word, paths);
  }
  if (container->contains("workingDir")) ReplaceIn((*container)["workingDir"], paths);
  if (!container->contains("env")) return;
  for (Json& entry : (*container)["env"]) {
    if (entry.is_object() && entry.contains("value")) ReplaceIn(entry["value"], paths);
  }
}

// Reads NAME=PATH texts, in their order.
absl::StatusOr<Paths> ParseAssignments(const std::vector<std::string>& texts) {
  Paths paths;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
      return absl::InvalidArgumentError(StrCat("'", text, "' is not NAME=PATH"));
    }
    const std::string name = text.substr(0, equals);
    const auto same = [&](const auto& path) { return path.first == name; };
    if (std::any_of(paths.begin(), paths.end(), same)) {
      return absl::InvalidArgumentError(StrCat("'", name, "' is given twice"));
    }
    paths.emplace_back(name, WithoutSlash(text.substr(equals + 1)));
  }
  return paths;
}

class Mapper {
 public:
  Mapper(const std::map<std::string, std::string>& places,
         const std::function<bool(const std::string&)>& exists)
      : places_(places), exists_(exists) {}

  absl::Status Map(TaskType type, Json* pod_template);
  // Returns FAILED_PRECONDITION with all volumes that are not on this machine.
  absl::Status CheckPlaces() const;
  absl::Status CheckNames() const;
  std::vector<std::string> ConsumeNotes() { return {notes_.begin(), notes_.end()}; }

 private:
  absl::Status MapMount(Json& mount, Json& volume, Paths* paths);
  std::string GetPlace(const Json& volume, const std::string& mount_path);
  void SayNowhere(const Json& volume, const std::string& mount_path);

  const std::map<std::string, std::string>& places_;
  const std::function<bool(const std::string&)>& exists_;
  std::set<std::string> known_, notes_;  // names of volumes and claims; lines, once for all tasks
  std::map<std::string, std::vector<std::string>> missing_;  // what is nowhere -> of which replicas
  TaskType type_ = TaskType::kWorker;                        // of the template that is being mapped
};

// Returns "" if the volume is not on this machine, and the mount path itself if that exists.
std::string Mapper::GetPlace(const Json& volume, const std::string& mount_path) {
  const std::string name = GetText(volume, "name");
  const std::string claim =
      GetText(volume.value("persistentVolumeClaim", Json::object()), "claimName");
  known_.insert(name);
  if (!claim.empty()) known_.insert(claim);
  for (const std::string& each : {name, claim}) {
    if (const auto place = places_.find(each); place != places_.end()) return place->second;
  }
  const std::string host_path = GetText(volume.value("hostPath", Json::object()), "path");
  if (!host_path.empty() && exists_(host_path)) return WithoutSlash(host_path);
  return exists_(mount_path) ? mount_path : "";
}

void Mapper::SayNowhere(const Json& volume, const std::string& mount_path) {
  const std::string name = GetText(volume, "name");
  const std::string kind = KindOfVolume(volume);
  const std::string what = StrCat("volume '", name, "' (", kind, "), mounted at ", mount_path);
  if (kind == "persistentVolumeClaim" || kind == "hostPath") {
    missing_[StrCat(what, ", is not on this machine: say where with --volume ", name, "=PATH")]
        .emplace_back(TypeFieldName(type_));
  } else {
    notes_.insert(
        StrCat(what, ", is not made on this machine; --volume ", name, "=PATH gives it one"));
  }
}

absl::Status Mapper::MapMount(Json& mount, Json& volume, Paths* paths) {
  const std::string from = WithoutSlash(GetText(mount, "mountPath"));
  if (!from.starts_with('/') || from == "/") {
    return absl::InvalidArgumentError(StrCat("template: volumeMounts: mountPath '", from,
                                             "' must be an absolute path other than /"));
  }
  const std::string place = GetPlace(volume, from);
  if (place.empty()) {
    SayNowhere(volume, from);
    return absl::OkStatus();
  }
  const std::string part = GetText(mount, "subPath");
  const std::string to = place == from || part.empty() ? place : StrCat(place, "/", part);
  if (!exists_(to)) return absl::FailedPreconditionError(StrCat("there is no ", to));
  if (to == from) return absl::OkStatus();
  const std::string name = GetText(volume, "name");
  notes_.insert(StrCat("volume '", name, "': ", from, " is ", to));
  paths->emplace_back(from, to);
  mount["mountPath"] = to;
  mount.erase("subPath");
  volume = {{"name", name}, {"hostPath", {{"path", place}}}};
  return absl::OkStatus();
}

absl::Status Mapper::Map(TaskType type, Json* pod_template) {
  type_ = type;
  const Json* const found = GetContainer(pod_template);
  if (found == nullptr || !found->contains("volumeMounts")) return absl::OkStatus();
  // Checks that each mount names a volume of the template.
  MUSTER_RETURN_IF_ERROR(ParseProcess(*pod_template).status());
  Json& spec = (*pod_template)["spec"];
  if (!spec.contains("volumes")) spec["volumes"] = Json::array();
  // From here on no member may be added to `spec`: that would move its other members in memory.
  Json& volumes = spec["volumes"];
  Json* const container = GetContainer(pod_template);
  const Json given = volumes;  // two mounts of one volume are mapped alike
  Paths paths;
  for (Json& mount : (*container)["volumeMounts"]) {
    if (!mount.is_object() || !given.is_array()) {
      return absl::InvalidArgumentError("template: volumeMounts and volumes must be lists of maps");
    }
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i].is_object() || GetText(given[i], "name") != GetText(mount, "name")) continue;
      Json volume = given[i];
      MUSTER_RETURN_IF_ERROR(MapMount(mount, volume, &paths));
      volumes[i] = std::move(volume);
      break;
    }
  }
  ReplaceInContainer(paths, container);
  return absl::OkStatus();
}

absl::Status Mapper::CheckPlaces() const {
  if (missing_.empty()) return absl::OkStatus();
  std::vector<std::string> lines;
  for (const auto& [what, types] : missing_) {
    lines.push_back(StrCat(absl::StrJoin(types, ", "), ": template: ", what));
  }
  return absl::FailedPreconditionError(absl::StrJoin(lines, "\n"));
}

absl::Status Mapper::CheckNames() const {
  const std::vector<std::string> known(known_.begin(), known_.end());
  for (const auto& [name, path] : places_) {
    if (known_.contains(name)) continue;
    return absl::NotFoundError(
        StrCat("no container mounts a volume '", name, "'", DidYouMean(name, known)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ParseVolumes(
    const std::vector<std::string>& texts) {
  MUSTER_ASSIGN_OR_RETURN(const Paths places, ParseAssignments(texts));
  return std::map<std::string, std::string>(places.begin(), places.end());
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParsePaths(
    const std::vector<std::string>& texts) {
  MUSTER_ASSIGN_OR_RETURN(Paths paths, ParseAssignments(texts));
  for (auto& [from, to] : paths) {
    from = WithoutSlash(from);
    if (!from.starts_with('/') || from == "/") {
      return absl::InvalidArgumentError(
          StrCat("'", from, "' must be an absolute path of the image other than /"));
    }
  }
  return paths;
}

void MapPaths(const Paths& paths, JobSpec* spec) {
  for (auto& [type, replica] : spec->replicas) {
    Json* const container = GetContainer(&replica.pod_template);
    if (container != nullptr) ReplaceInContainer(paths, container);
  }
}

std::string ReplacePaths(std::string_view text, const Paths& paths) {
  Paths longest_first = paths;
  std::sort(longest_first.begin(), longest_first.end(),
            [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto fits = [&](const auto& path) {
      return text.substr(at).starts_with(path.first) && IsWholePart(text, at + path.first.size());
    };
    const auto found = BeginsPath(text, at)
                           ? std::find_if(longest_first.begin(), longest_first.end(), fits)
                           : longest_first.end();
    if (found == longest_first.end()) {
      out += text[at++];
    } else {
      out += found->second;
      at += found->first.size();
    }
  }
  return out;
}

absl::Status MapVolumes(const std::map<std::string, std::string>& places,
                        const std::function<bool(const std::string& path)>& exists, JobSpec* spec,
                        std::vector<std::string>* notes) {
  Mapper mapper(places, exists);
  for (auto& [type, replica] : spec->replicas) {
    MUSTER_RETURN_IF_ERROR(Annotate(mapper.Map(type, &replica.pod_template), TypeFieldName(type)));
  }
  MUSTER_RETURN_IF_ERROR(mapper.CheckNames());
  MUSTER_RETURN_IF_ERROR(mapper.CheckPlaces());
  for (std::string& note : mapper.ConsumeNotes()) notes->push_back(std::move(note));
  return absl::OkStatus();
}

}  // namespace muster::job
