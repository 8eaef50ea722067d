#include "muster/job/tf_config_contents.h"

#include <limits>
#include <utility>

#include "absl/strings/numbers.h"

#include "muster/base/json_depth.h"
#include "muster/formats/json_fields.h"

namespace muster::job {
namespace {

using TfConfigJson = formats::Json;

constexpr size_t kMaxTfConfigBytes = size_t{1} << 24;
constexpr int kMaxTfConfigTasks = 1 << 20;
constexpr int kMaxTfConfigDepth = 32;  // the JSON library prints recursively

absl::Status RefuseTfConfig(std::string_view why) {
  return absl::InvalidArgumentError(StrCat("TF_CONFIG: ", why));
}

// Returns null if the member is missing or null.
const TfConfigJson* FindMember(const TfConfigJson& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

// A member that is null counts as "": TensorFlow checks only whether it is present.
absl::Status ReadText(const TfConfigJson& object, const char* key,
                      std::optional<std::string>* text) {
  if (!object.contains(key)) return absl::OkStatus();
  const TfConfigJson* const member = FindMember(object, key);
  if (member != nullptr && !member->is_string()) {
    return RefuseTfConfig(StrCat("\"", key, "\" must be a string, given: ", member->dump()));
  }
  *text = member == nullptr ? "" : member->get<std::string>();
  return absl::OkStatus();
}

// Returns null if the member is missing or null.
absl::StatusOr<const TfConfigJson*> FindObject(const TfConfigJson& parent, const char* key) {
  const TfConfigJson* const member = FindMember(parent, key);
  if (member != nullptr && !member->is_object()) {
    return RefuseTfConfig(StrCat("\"", key, "\" must be an object, given: ", member->dump()));
  }
  return member;
}

// Reads an index: a number, or a text that is one, as Python's int() accepts it.
absl::StatusOr<int> ParseIndex(const TfConfigJson& value, std::string_view what) {
  int64_t index = -1;
  bool sound = false;
  if (value.is_number_integer()) {
    sound = !value.is_number_unsigned() ||
            value.get<uint64_t>() <= uint64_t{std::numeric_limits<int>::max()};
    if (sound) index = value.get<int64_t>();
  } else if (value.is_string()) {
    sound = absl::SimpleAtoi(value.get<std::string>(), &index);
  }
  if (!sound || index > std::numeric_limits<int>::max() ||
      index < std::numeric_limits<int>::min()) {
    return RefuseTfConfig(StrCat(what, " must be a whole number, given: ", value.dump()));
  }
  return static_cast<int>(index);
}

absl::Status PutTask(int index, const TfConfigJson& address, TfConfigJob* job) {
  if (!address.is_string() || address.get<std::string>().empty()) {
    return RefuseTfConfig(StrCat("the address of task ", index, " of job '", job->name,
                                 "' must be a non-empty string, given: ", address.dump()));
  }
  if (index < 0 || index >= kMaxTfConfigTasks) {
    return RefuseTfConfig(StrCat("job '", job->name, "' has no task ", index,
                                 ": indices are from 0 to ", kMaxTfConfigTasks - 1));
  }
  const auto place = static_cast<size_t>(index);
  if (job->addresses.size() <= place) job->addresses.resize(place + 1);
  job->addresses[place] = address.get<std::string>();
  return absl::OkStatus();
}

absl::StatusOr<TfConfigJob> ParseJob(const std::string& name, const TfConfigJson& value) {
  TfConfigJob job = {.name = name, .by_index = value.is_object()};
  if (!value.is_array() && !value.is_object()) {
    return RefuseTfConfig(StrCat("the tasks of job '", name,
                                 "' must be a list of addresses, such as [\"host:2222\"]"));
  }
  int next = 0;
  for (const auto& [key, address] : value.items()) {
    int index = next++;
    if (job.by_index) {
      MUSTER_ASSIGN_OR_RETURN(
          index, ParseIndex(TfConfigJson(key), StrCat("the task index of job '", name, "'")));
    }
    MUSTER_RETURN_IF_ERROR(PutTask(index, address, &job));
  }
  return job;
}

absl::Status ReadModelDir(const TfConfigJson& root, std::string* model_dir) {
  if (FindMember(root, "model_dir") == nullptr) return absl::OkStatus();
  std::optional<std::string> text;
  MUSTER_RETURN_IF_ERROR(ReadText(root, "model_dir", &text));
  if (text->empty()) return RefuseTfConfig("model_dir should be non-empty");
  *model_dir = *std::move(text);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TfConfigContents> ParseTfConfig(std::string_view json) {
  if (json.size() > kMaxTfConfigBytes) return RefuseTfConfig("longer than 16 MiB");
  if (FindDeeperJson(json, kMaxTfConfigDepth) != json.npos) {
    return RefuseTfConfig("nested too deeply");
  }
  const TfConfigJson root = TfConfigJson::parse(json, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) {
    constexpr size_t kShown = 40;
    return RefuseTfConfig(StrCat("not JSON: it begins with ", json.substr(0, kShown)));
  }
  if (!root.is_object()) {
    return RefuseTfConfig("must be a JSON object with \"cluster\" and \"task\"");
  }
  TfConfigContents contents;
  MUSTER_RETURN_IF_ERROR(ReadModelDir(root, &contents.model_dir));
  MUSTER_ASSIGN_OR_RETURN(const TfConfigJson* const service, FindObject(root, "service"));
  if (service != nullptr) contents.service = service->dump();
  MUSTER_ASSIGN_OR_RETURN(const TfConfigJson* const cluster, FindObject(root, "cluster"));
  if (cluster != nullptr) {
    for (const auto& [name, value] : cluster->items()) {
      MUSTER_ASSIGN_OR_RETURN(contents.cluster.emplace_back(), ParseJob(name, value));
    }
  }
  MUSTER_ASSIGN_OR_RETURN(const TfConfigJson* const task, FindObject(root, "task"));
  if (task != nullptr) {
    MUSTER_RETURN_IF_ERROR(ReadText(*task, "type", &contents.type));
    if (const TfConfigJson* const index = FindMember(*task, "index"); index != nullptr) {
      MUSTER_ASSIGN_OR_RETURN(contents.index, ParseIndex(*index, "the task's index"));
    }
  }
  const TfConfigJson* const environment = FindMember(root, "environment");
  if (environment != nullptr && environment->is_string()) {
    contents.environment = environment->get<std::string>();
  }
  MUSTER_RETURN_IF_ERROR(ReadText(root, "session_master", &contents.session_master));
  MUSTER_RETURN_IF_ERROR(ReadText(root, "eval_session_master", &contents.eval_session_master));
  return contents;
}

std::string PrintTfConfig(const TfConfigContents& contents) {
  TfConfigJson json = TfConfigJson::object();
  for (const TfConfigJob& job : contents.cluster) {
    TfConfigJson& tasks = json["cluster"][job.name];
    tasks = job.by_index ? TfConfigJson::object() : TfConfigJson::array();
    for (size_t i = 0; i < job.addresses.size(); ++i) {
      if (!job.by_index) {
        tasks.push_back(job.addresses[i]);
      } else if (!job.addresses[i].empty()) {
        tasks[StrCat(i)] = job.addresses[i];
      }
    }
  }
  if (contents.type) json["task"]["type"] = *contents.type;
  if (contents.index) json["task"]["index"] = *contents.index;
  if (!contents.environment.empty()) json["environment"] = contents.environment;
  if (!contents.model_dir.empty()) json["model_dir"] = contents.model_dir;
  if (!contents.service.empty()) json["service"] = TfConfigJson::parse(contents.service);
  if (contents.session_master) json["session_master"] = *contents.session_master;
  if (contents.eval_session_master) json["eval_session_master"] = *contents.eval_session_master;
  return formats::PrintJson(json);
}

}  // namespace muster::job
