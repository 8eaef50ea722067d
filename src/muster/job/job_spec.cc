#include "muster/job/job_spec.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"

#include "muster/job/job_name.h"

namespace muster::job {

std::string_view TypeName(TaskType type) {
  switch (type) {
    case TaskType::kChief:
      return "chief";
    case TaskType::kEvaluator:
      return "evaluator";
    case TaskType::kMaster:
      return "master";
    case TaskType::kPs:
      return "ps";
    case TaskType::kWorker:
      return "worker";
  }
  return "";
}

std::string_view TypeFieldName(TaskType type) {
  switch (type) {
    case TaskType::kChief:
      return "Chief";
    case TaskType::kEvaluator:
      return "Evaluator";
    case TaskType::kMaster:
      return "Master";
    case TaskType::kPs:
      return "PS";
    case TaskType::kWorker:
      return "Worker";
  }
  return "";
}

std::optional<TaskType> ParseTaskType(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower(ToAbsl(name));
  for (const TaskType type : kTaskTypes) {
    if (lower == TypeName(type)) return type;
  }
  return std::nullopt;
}

std::string TaskName(TaskId id) { return StrCat(TypeName(id.type), "-", id.index); }

std::optional<TaskId> ParseTaskName(std::string_view name) {
  const size_t dash = name.rfind('-');
  TaskId id;
  if (dash != std::string_view::npos) {
    const std::string_view digits = name.substr(dash + 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), id.index);
    if (error != std::errc() || end != digits.data() + digits.size() || id.index < 0) {
      return std::nullopt;
    }
  }
  const auto type = ParseTaskType(name.substr(0, dash));
  if (!type) return std::nullopt;
  id.type = *type;
  return id;
}

std::string_view RestartPolicyName(RestartPolicy policy) {
  switch (policy) {
    case RestartPolicy::kAlways:
      return "Always";
    case RestartPolicy::kOnFailure:
      return "OnFailure";
    case RestartPolicy::kNever:
      return "Never";
    case RestartPolicy::kExitCode:
      return "ExitCode";
  }
  return "";
}

std::string_view CleanPodPolicyName(CleanPodPolicy policy) {
  switch (policy) {
    case CleanPodPolicy::kAll:
      return "All";
    case CleanPodPolicy::kRunning:
      return "Running";
    case CleanPodPolicy::kNone:
      return "None";
  }
  return "";
}

std::string_view FailureActionName(FailureRule::Action action) {
  switch (action) {
    case FailureRule::Action::kRestartTask:
      return "restartTask";
    case FailureRule::Action::kRestartGang:
      return "restartGang";
    case FailureRule::Action::kFailJob:
      return "failJob";
    case FailureRule::Action::kIgnore:
      return "ignore";
  }
  return "";
}

int JobSpec::count(TaskType type) const {
  const auto found = replicas.find(type);
  return found == replicas.end() ? 0 : found->second.replicas;
}

int JobSpec::total() const {
  int sum = 0;
  for (const auto& [type, replica] : replicas) sum += replica.replicas;
  return sum;
}

std::optional<TaskType> JobSpec::leader() const {
  for (const TaskType type : {TaskType::kChief, TaskType::kMaster}) {
    if (count(type) > 0) return type;
  }
  return std::nullopt;
}

absl::Status Validate(const JobSpec& spec, std::string_view where) {
  const auto fail = [&](const auto&... parts) {
    return absl::InvalidArgumentError(StrCat(where, ": ", parts...));
  };
  if (const absl::Status name = CheckName(spec.name); !name.ok()) {
    return fail(ToStd(name.message()));
  }
  if (spec.total() == 0) return fail("the job has no tasks");
  for (const TaskType type : {TaskType::kChief, TaskType::kMaster}) {
    if (spec.count(type) > 1) {
      return fail(spec.count(type), " replicas of ", TypeFieldName(type), "; a job has one ",
                  TypeName(type), " at most");
    }
  }
  if (spec.count(TaskType::kChief) > 0 && spec.count(TaskType::kMaster) > 0) {
    return fail("Chief and Master are two names of one task; keep Chief");
  }
  if (spec.count(TaskType::kMaster) > 0 && spec.count(TaskType::kEvaluator) > 0) {
    return fail(
        "an Estimator program with a Master evaluates there and refuses an Evaluator; "
        "make the Master a Chief, or leave the Evaluator out");
  }
  if (!spec.leader() && spec.count(TaskType::kWorker) == 0) {
    return fail("there is neither a Chief nor a Worker, whose end would be the job's end");
  }
  if (spec.min_workers && spec.max_workers && *spec.min_workers > *spec.max_workers) {
    return fail("muster/workers: ", *spec.min_workers, " is more than ", *spec.max_workers);
  }
  return absl::OkStatus();
}

absl::StatusOr<double> ParseDuration(std::string_view text) {
  const auto bad = [&] {
    return absl::InvalidArgumentError(
        StrCat("'", text, "' is not a duration such as 90s, 5m or 1h30m"));
  };
  double total = 0;
  const bool is_bare = text.find_first_not_of("0123456789.") == std::string_view::npos;
  std::string_view rest = text;
  if (rest.empty()) return bad();
  while (!rest.empty()) {
    double value = 0;
    const auto parsed =
        std::from_chars(rest.data(), rest.data() + rest.size(), value, std::chars_format::fixed);
    if (parsed.ec != std::errc() || value < 0) return bad();
    rest.remove_prefix(static_cast<size_t>(parsed.ptr - rest.data()));
    size_t letters = 0;
    while (letters < rest.size() &&
           absl::ascii_isalpha(static_cast<unsigned char>(rest[letters]))) {
      ++letters;
    }
    const std::string_view unit = rest.substr(0, letters);
    rest.remove_prefix(letters);
    if (unit == "ms") {
      total += value / 1000;
    } else if (unit == "s" || (unit.empty() && rest.empty() && is_bare)) {
      total += value;
    } else if (unit == "m") {
      total += value * 60;
    } else if (unit == "h") {
      total += value * 3600;
    } else {
      return bad();
    }
  }
  if (!(total <= 1e10)) return bad();
  return total;
}

std::string PrintDuration(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  if (seconds != static_cast<double>(whole)) {
    return StrCat(static_cast<int64_t>(std::llround(seconds * 1000)), "ms");
  }
  std::string text;
  if (whole >= 3600) text += StrCat(whole / 3600, "h");
  if (whole % 3600 >= 60) text += StrCat(whole % 3600 / 60, "m");
  if (whole % 60 > 0 || whole == 0) text += StrCat(whole % 60, "s");
  return text;
}

}  // namespace muster::job
