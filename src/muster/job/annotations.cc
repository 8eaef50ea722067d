#include "muster/job/annotations.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "muster/base/nearest.h"
#include "muster/job/signals.h"

namespace muster::job {
namespace {

using formats::YamlReader;

double Duration(const YamlReader& reader) {
  const std::string text = reader.AsString();
  if (!reader.ok()) return 0;
  const auto seconds = ParseDuration(text);
  if (!seconds.ok()) reader.Fail(ToStd(seconds.status().message()));
  return seconds.value_or(0);
}

void ParseBudget(const YamlReader& reader, JobSpec* spec) {
  reader.CheckKeys({"perTask", "perJob", "window", "backoff", "maxBackoff"});
  RestartBudget& budget = spec->restart_budget;
  budget.per_task = static_cast<int>(reader.Int("perTask", budget.per_task, 0, 1 << 30));
  budget.per_job = static_cast<int>(reader.Int("perJob", budget.per_job, 0, 1 << 30));
  if (reader.Has("window")) budget.window_seconds = Duration(reader.At("window"));
  if (reader.Has("backoff")) budget.backoff_seconds = Duration(reader.At("backoff"));
  if (reader.Has("maxBackoff")) budget.max_backoff_seconds = Duration(reader.At("maxBackoff"));
}

FailureRule ParseRule(const YamlReader& reader) {
  using Action = FailureRule::Action;
  reader.CheckKeys({"role", "exitCodes", "signals", "action"});
  FailureRule rule;
  if (reader.Has("role")) {
    const std::string role = reader.At("role").AsString();
    rule.type = ParseTaskType(role);
    if (!rule.type) reader.At("role").Fail(StrCat("'", role, "' is no task type"));
  }
  for (const std::string& text : reader.Strings("exitCodes")) {
    const auto code = ParseDuration(text);  // a plain number
    if (!code.ok() || *code > 255 || *code != static_cast<int>(*code)) {
      reader.At("exitCodes").Fail(StrCat("'", text, "' is no exit code (0 to 255)"));
      return rule;
    }
    rule.exit_codes.push_back(static_cast<int>(*code));
  }
  for (const std::string& text : reader.Strings("signals")) {
    const int signal = SignalNumber(text);
    if (signal == 0) {
      reader.At("signals").Fail(StrCat("'", text, "' is no signal such as SIGKILL"));
      return rule;
    }
    rule.signals.push_back(signal);
  }
  const std::string action = reader.At("action").AsString();
  if (!reader.ok()) return rule;
  std::vector<std::string> known;
  for (const Action member :
       {Action::kRestartTask, Action::kRestartGang, Action::kFailJob, Action::kIgnore}) {
    known.emplace_back(FailureActionName(member));
    if (action != known.back()) continue;
    rule.action = member;
    return rule;
  }
  reader.At("action").Fail(StrCat("unknown action '", action, "'", DidYouMean(action, known)));
  return rule;
}

void ParseWorkerRange(const YamlReader& reader, JobSpec* spec) {
  const std::string text = reader.AsString();
  const size_t dash = text.find('-');
  const auto low = ParseDuration(text.substr(0, dash));
  const auto high = dash == std::string::npos ? low : ParseDuration(text.substr(dash + 1));
  if (!low.ok() || !high.ok() || *low < 0 || *high < 1 || *high > 1e6) {
    return reader.Fail(StrCat("'", text, "' is not a range of workers such as 1-4"));
  }
  spec->min_workers = static_cast<int>(*low);
  spec->max_workers = static_cast<int>(*high);
}

void ParseScope(const YamlReader& reader, JobSpec* spec) {
  const std::string scope = reader.AsString();
  if (scope != "task" && scope != "gang") {
    return reader.Fail(StrCat("'", scope, "' is neither 'task' nor 'gang'"));
  }
  spec->restart_scope = scope == "gang" ? RestartScope::kGang : RestartScope::kTask;
}

// An annotation's value is a text, which here is a YAML (or JSON) document.
void ParseNested(const YamlReader& reader,
                 const std::function<void(const YamlReader& document)>& parse) {
  const std::string text = reader.AsString();
  if (!reader.ok()) return;
  const auto document = YamlReader::Parse(text, "value");
  if (!document.ok()) return reader.Fail(ToStd(document.status().message()));
  parse(*document);
  if (!document->ok()) reader.Fail(ToStd(document->status().message()));
}

struct Annotation {
  std::string_view name;
  void (*parse)(const YamlReader&, JobSpec*);
};

constexpr Annotation kAnnotations[] = {
    {"failurePolicy",
     [](const YamlReader& reader, JobSpec* spec) {
       ParseNested(reader, [&](const YamlReader& document) {
         for (const YamlReader& item : document.Items()) {
           spec->failure_policy.push_back(ParseRule(item));
         }
       });
     }},
    {"restartBudget",
     [](const YamlReader& reader, JobSpec* spec) {
       ParseNested(reader, [&](const YamlReader& document) { ParseBudget(document, spec); });
     }},
    {"restartScope", ParseScope},
    {"progressTimeout", [](const YamlReader& reader,
                           JobSpec* spec) { spec->progress_timeout_seconds = Duration(reader); }},
    {"finishTimeout", [](const YamlReader& reader,
                         JobSpec* spec) { spec->finish_timeout_seconds = Duration(reader); }},
    {"modelDir",
     [](const YamlReader& reader, JobSpec* spec) { spec->model_dir = reader.AsString(); }},
    {"workers", ParseWorkerRange},
    {"needsEvaluator",
     [](const YamlReader& reader, JobSpec* spec) { spec->needs_evaluator = reader.AsBool(); }},
    {"failFast",
     [](const YamlReader& reader, JobSpec* spec) { spec->fail_fast = reader.AsBool(); }},
    {"files",
     [](const YamlReader& reader, JobSpec* spec) {
       ParseNested(reader, [&](const YamlReader& list) { spec->files = list.AsStrings(); });
     }},
    {"archives",
     [](const YamlReader& reader, JobSpec* spec) {
       ParseNested(reader, [&](const YamlReader& list) { spec->archives = list.AsStrings(); });
     }},
    {"legacyLabels",
     [](const YamlReader& reader, JobSpec* spec) { spec->legacy_labels = reader.AsBool(); }},
};

Json RuleJson(const FailureRule& rule) {
  Json json = Json::object();
  if (rule.type) json["role"] = TypeName(*rule.type);
  if (!rule.exit_codes.empty()) json["exitCodes"] = rule.exit_codes;
  for (const int signal : rule.signals) json["signals"].push_back(SignalName(signal));
  json["action"] = FailureActionName(rule.action);
  return json;
}

}  // namespace

void ParseAnnotation(const std::string& name, const YamlReader& reader, JobSpec* spec) {
  std::vector<std::string> known;
  for (const Annotation& annotation : kAnnotations) {
    if (annotation.name == name) return annotation.parse(reader, spec);
    known.emplace_back(annotation.name);
  }
  reader.Fail(StrCat("unknown annotation 'muster/", name, "'", DidYouMean(name, known)));
}

bool IsAnnotation(std::string_view name) {
  return std::any_of(std::begin(kAnnotations), std::end(kAnnotations),
                     [name](const Annotation& annotation) { return annotation.name == name; });
}

void PrintAnnotations(const JobSpec& spec, Json* annotations) {
  const auto add = [&](std::string_view name, std::string value) {
    (*annotations)[StrCat(kAnnotationPrefix, name)] = std::move(value);
  };
  if (!spec.failure_policy.empty()) {
    Json rules = Json::array();
    for (const FailureRule& rule : spec.failure_policy) rules.push_back(RuleJson(rule));
    add("failurePolicy", rules.dump());
  }
  if (const RestartBudget& budget = spec.restart_budget; budget != RestartBudget()) {
    const Json json = {{"perTask", budget.per_task},
                       {"perJob", budget.per_job},
                       {"window", PrintDuration(budget.window_seconds)},
                       {"backoff", PrintDuration(budget.backoff_seconds)},
                       {"maxBackoff", PrintDuration(budget.max_backoff_seconds)}};
    add("restartBudget", json.dump());
  }
  if (spec.restart_scope == RestartScope::kGang) add("restartScope", "gang");
  if (spec.progress_timeout_seconds) {
    add("progressTimeout", PrintDuration(*spec.progress_timeout_seconds));
  }
  if (spec.finish_timeout_seconds) {
    add("finishTimeout", PrintDuration(*spec.finish_timeout_seconds));
  }
  if (!spec.model_dir.empty()) add("modelDir", spec.model_dir);
  if (spec.min_workers) add("workers", StrCat(*spec.min_workers, "-", *spec.max_workers));
  if (spec.needs_evaluator) add("needsEvaluator", "true");
  if (spec.fail_fast) add("failFast", "true");
  if (!spec.files.empty()) add("files", Json(spec.files).dump());
  if (!spec.archives.empty()) add("archives", Json(spec.archives).dump());
  if (spec.legacy_labels) add("legacyLabels", "true");
}

}  // namespace muster::job
