#include "muster/tune/search_file.h"

#include <limits>

#include "absl/strings/numbers.h"

#include "muster/base/nearest.h"
#include "muster/tune/sampler.h"

namespace muster::tune {
namespace {

using formats::YamlReader;

constexpr int64_t kMostTrials = 1'000'000;
constexpr int64_t kMostResource = std::numeric_limits<int64_t>::max();

// A value that is a name, or a map of one name to its settings. Returns the settings' reader, or
// that of the name.
YamlReader ParseNamed(const YamlReader& reader, const std::vector<std::string>& known,
                      std::string* name) {
  YamlReader settings = reader;
  if (reader.IsMap()) {
    reader.ForEach([&](const std::string& key, const YamlReader& value) {
      if (!name->empty()) reader.Fail("must name one");
      *name = key;
      settings = value;
    });
  } else {
    *name = reader.AsString();
  }
  if (reader.ok() && std::ranges::find(known, *name) == known.end()) {
    reader.Fail(StrCat("unknown '", *name, "'", DidYouMean(*name, known)));
  }
  return settings;
}

SamplerSpec ParseSampler(const YamlReader& reader) {
  using Kind = SamplerSpec::Kind;
  SamplerSpec spec;
  std::string name;
  const YamlReader settings = ParseNamed(reader, {"random", "grid", "tpe"}, &name);
  spec.kind = name == "random" ? Kind::kRandom : name == "grid" ? Kind::kGrid : Kind::kTpe;
  if (!reader.ok() || !settings.IsMap()) return spec;
  if (spec.kind != Kind::kTpe) return settings.Fail("has no settings"), spec;
  settings.CheckKeys({"startup_trials", "candidates"});
  spec.startup_trials = static_cast<int>(settings.Int("startup_trials", 10, 1, kMostTrials));
  spec.candidates = static_cast<int>(settings.Int("candidates", 24, 1, 100'000));
  return spec;
}

// The settings of population based training, which `settings` has unless it is only the name.
void ParsePbt(const YamlReader& settings, SchedulerSpec* spec) {
  if (!settings.IsMap()) return;
  settings.CheckKeys({"population", "interval", "truncation", "resample"});
  spec->population = static_cast<int>(settings.Int("population", spec->population, 2, 10'000));
  spec->interval = settings.Int("interval", 0, 1, kMostResource / 1000);
  spec->truncation = settings.Number("truncation", spec->truncation, 0, 0.5);
  spec->resample = settings.Number("resample", spec->resample, 0, 1);
}

SchedulerSpec ParseScheduler(const YamlReader& reader) {
  using Kind = SchedulerSpec::Kind;
  SchedulerSpec spec;
  std::string name;
  const YamlReader settings =
      ParseNamed(reader, {"none", "median", "asha", "hyperband", "pbt"}, &name);
  spec.kind = name == "median"      ? Kind::kMedian
              : name == "asha"      ? Kind::kAsha
              : name == "hyperband" ? Kind::kHyperband
              : name == "pbt"       ? Kind::kPbt
                                    : Kind::kNone;
  if (!reader.ok()) return spec;
  if (spec.kind == Kind::kPbt) return ParsePbt(settings, &spec), spec;
  if (!settings.IsMap()) {
    if (spec.kind == Kind::kHyperband) {
      reader.Fail("needs what a whole trial uses: {hyperband: {max_resource: 27}}");
    }
    return spec;
  }
  if (spec.kind == Kind::kNone) return settings.Fail("has no settings"), spec;
  if (spec.kind == Kind::kMedian) {
    settings.CheckKeys({"min_resource", "startup_trials"});
    spec.startup_trials = static_cast<int>(settings.Int("startup_trials", 5, 1, kMostTrials));
  } else if (spec.kind == Kind::kAsha) {
    settings.CheckKeys({"min_resource", "factor"});
  } else {
    settings.CheckKeys({"min_resource", "max_resource", "factor"});
  }
  spec.min_resource = settings.Int("min_resource", 1, 1, kMostResource / 1000);
  if (spec.kind == Kind::kMedian) return spec;
  spec.factor = static_cast<int>(settings.Int("factor", 3, 2, 1000));
  if (spec.kind == Kind::kHyperband) {
    spec.max_resource = settings.At("max_resource").AsInt(spec.min_resource, kMostResource / 1000);
  }
  return spec;
}

// What population based training asks of the rest of the file.
void CheckPbt(const YamlReader& reader, bool is_of_command, StudySpec* study) {
  if (!reader.ok() || study->scheduler.kind != SchedulerSpec::Kind::kPbt) return;
  if (!is_of_command && study->scheduler.interval == 0) {
    reader.At("scheduler")
        .Fail(
            "needs the records that a trial reads before it is compared: {pbt: {interval: 20000}}");
  }
  if (is_of_command && study->scheduler.interval > 0) {
    reader.At("scheduler")
        .Fail(
            "has an interval, which is for trainings of a model file: a command ends its trial "
            "itself");
  }
  if (!reader.Has("sampler")) study->sampler.kind = SamplerSpec::Kind::kRandom;
  if (study->sampler.kind != SamplerSpec::Kind::kRandom) {
    reader.At("sampler").Fail("must be random, or absent: pbt draws its first points at random");
  }
}

// Whether the grid of the sampler, if it is one, has finitely many points.
void CheckGrid(const YamlReader& space, const StudySpec& study) {
  if (!space.ok() || study.sampler.kind != SamplerSpec::Kind::kGrid) return;
  for (const Parameter& parameter : study.space.parameters) {
    const std::string why = WhyNoGrid(parameter);
    if (!why.empty()) return space.At(parameter.name).Fail(why);
  }
  const auto sampler = NewSampler(study.sampler, study.space, study.goal, study.seed);
  if (!sampler.ok()) space.Fail(ToStd(sampler.status().message()));
}

Budget ParseBudget(const YamlReader& reader) {
  reader.CheckKeys({"trials", "records", "time"});
  Budget budget = {.trials = reader.Int("trials", 0, 1, kMostTrials),
                   .records = static_cast<uint64_t>(reader.Int("records", 0, 1, kMostResource))};
  if (!reader.Has("time")) return budget;
  const auto seconds = ParseSeconds(reader.At("time").AsString());
  if (seconds.ok()) {
    budget.seconds = *seconds;
  } else {
    reader.At("time").Fail(ToStd(seconds.status().message()));
  }
  return budget;
}

Goal ParseGoal(const YamlReader& reader) {
  Goal goal;
  reader.CheckKeys({"maximize", "minimize"});
  if (!reader.ok()) return goal;
  if (reader.Has("maximize") == reader.Has("minimize")) {
    reader.Fail("must be {maximize: METRIC} or {minimize: METRIC}");
    return goal;
  }
  goal.maximize = reader.Has("maximize");
  goal.metric = reader.At(goal.maximize ? "maximize" : "minimize").AsString();
  return goal;
}

Json SamplerJson(const SamplerSpec& spec) {
  switch (spec.kind) {
    case SamplerSpec::Kind::kRandom:
      return "random";
    case SamplerSpec::Kind::kGrid:
      return "grid";
    case SamplerSpec::Kind::kTpe:
      return {{"tpe", {{"startup_trials", spec.startup_trials}, {"candidates", spec.candidates}}}};
  }
  return nullptr;
}

Json SchedulerJson(const SchedulerSpec& spec) {
  static constexpr const char* kNames[] = {"none", "median", "asha", "hyperband"};
  if (spec.kind == SchedulerSpec::Kind::kNone) return "none";
  if (spec.kind == SchedulerSpec::Kind::kPbt) {
    return {{"pbt",
             {{"population", spec.population},
              {"interval", spec.interval},
              {"truncation", spec.truncation},
              {"resample", spec.resample}}}};
  }
  return {{kNames[static_cast<size_t>(spec.kind)],
           {{"min_resource", spec.min_resource},
            {"max_resource", spec.max_resource},
            {"factor", spec.factor},
            {"startup_trials", spec.startup_trials}}}};
}

}  // namespace

absl::StatusOr<SearchFile> ParseSearchFile(std::string_view text, const std::string& name,
                                           bool is_of_command) {
  MUSTER_ASSIGN_OR_RETURN(const YamlReader reader, YamlReader::Parse(text, name));
  SearchFile search;
  reader.CheckKeys({"model", "train", "eval", "flags", "space", "metric", "sampler", "scheduler",
                    "budget", "seed"});
  for (const char* const key : {"model", "train", "eval", "flags"}) {
    if (is_of_command && reader.Has(key)) {
      reader.At(key).Fail("is not for the search of a command, which stands after --");
    }
  }
  if (!is_of_command && reader.ok()) {
    if (!reader.Has("model")) {
      reader.Fail(
          "must have a model (a model file, with train and eval), or a command after --: "
          "muster tune search.yaml -- python train.py --lr {lr}");
    }
    search.model = reader.String("model");
    search.train = reader.At("train").AsStrings();
    search.eval = reader.At("eval").AsStrings();
    search.flags_place = StrCat(name, ": flags");
    if (reader.Has("flags")) search.flags = reader.Strings("flags");
  }
  StudySpec& study = search.study;
  if (reader.ok()) study.space = ParseSpace(reader.At("space"));
  if (reader.ok()) study.goal = ParseGoal(reader.At("metric"));
  if (reader.Has("sampler")) study.sampler = ParseSampler(reader.At("sampler"));
  if (reader.Has("scheduler")) study.scheduler = ParseScheduler(reader.At("scheduler"));
  CheckPbt(reader, is_of_command, &study);
  if (reader.ok()) CheckGrid(reader.At("space"), study);
  if (reader.Has("budget")) study.budget = ParseBudget(reader.At("budget"));
  if (reader.Has("seed")) study.seed = reader.At("seed").AsSeed();
  MUSTER_RETURN_IF_ERROR(reader.status());
  return search;
}

Json SearchJson(const SearchFile& search, const std::vector<std::string>& command) {
  const StudySpec& study = search.study;
  Json json = {{"space", SpaceJson(study.space)},
               {"metric", {{study.goal.maximize ? "maximize" : "minimize", study.goal.metric}}},
               {"sampler", SamplerJson(study.sampler)},
               {"scheduler", SchedulerJson(study.scheduler)},
               {"seed", study.seed}};
  if (search.model.empty()) {
    json["command"] = command;
  } else {
    json["model"] = search.model;
    json["train"] = search.train;
    json["eval"] = search.eval;
    json["flags"] = search.flags;
  }
  return json;
}

absl::StatusOr<double> ParseSeconds(const std::string& text) {
  double unit = 1;
  std::string number = text;
  if (!number.empty()) {
    const char last = number.back();
    unit = last == 'h' ? 3600 : last == 'm' ? 60 : 1;
    if (last == 'h' || last == 'm' || last == 's') number.pop_back();
  }
  double value = 0;
  if (!absl::SimpleAtod(number, &value) || !(value > 0) || value > 1e9) {
    return absl::InvalidArgumentError(StrCat("'", text, "' is no time such as 90s, 10m or 1.5h"));
  }
  return value * unit;
}

}  // namespace muster::tune
