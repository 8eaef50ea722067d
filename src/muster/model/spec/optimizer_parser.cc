#include "muster/model/spec/optimizer_parser.h"

#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/nearest.h"
#include "muster/optim/optimizer_kind.h"

namespace muster::model {
namespace {

using formats::YamlReader;

constexpr double kHugest = 1e30;
constexpr double kLeastRate = 1e-30;

std::vector<int64_t> ParseBoundaries(const YamlReader& node) {
  std::vector<int64_t> boundaries;
  for (const std::string& text : node.AsStrings()) {
    int64_t step = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), step);
    if (result.ptr != text.data() + text.size() || step < 0) {
      node.Fail(StrCat("'", text, "' is not a step (0 or more)"));
    }
    boundaries.push_back(step);
  }
  return boundaries;
}

void ParsePiecewise(const YamlReader& node, optim::OptimizerSpec* spec) {
  node.CheckKeys({"boundaries", "values"});
  optim::ScheduleSpec& schedule = spec->schedule;
  schedule.boundaries = ParseBoundaries(node.At("boundaries"));
  const std::vector<float> values = node.At("values").AsFloats();
  schedule.values.assign(values.begin(), values.end());
  if (!values.empty()) spec->learning_rate = schedule.values[0];
}

void ParseDecay(const YamlReader& node, optim::OptimizerSpec* spec) {
  using Kind = optim::ScheduleSpec::Kind;
  optim::ScheduleSpec& schedule = spec->schedule;
  schedule.decay_steps = node.At("decay_steps").AsNumber(1e-6, kHugest);
  switch (schedule.kind) {
    case Kind::kExponential:
    case Kind::kInverseTime:
      node.CheckKeys({"initial", "decay_steps", "decay_rate", "staircase"});
      schedule.decay_rate = node.At("decay_rate").AsNumber(0, kHugest);
      schedule.staircase = node.Bool("staircase", false);
      break;
    case Kind::kPolynomial:
      node.CheckKeys({"initial", "decay_steps", "end", "power", "cycle"});
      schedule.end = node.Number("end", schedule.end, 0, kHugest);
      schedule.power = node.Number("power", schedule.power, 0, kHugest);
      schedule.cycle = node.Bool("cycle", false);
      break;
    case Kind::kCosineRestarts:
      node.CheckKeys({"initial", "decay_steps", "alpha", "t_mul", "m_mul"});
      schedule.t_mul = node.Number("t_mul", schedule.t_mul, 1, kHugest);
      schedule.m_mul = node.Number("m_mul", schedule.m_mul, 0, kHugest);
      schedule.alpha = node.Number("alpha", 0, 0, 1);
      break;
    default:
      node.CheckKeys({"initial", "decay_steps", "alpha"});
      schedule.alpha = node.Number("alpha", 0, 0, 1);
  }
  spec->learning_rate = node.At("initial").AsNumber(kLeastRate, kHugest);
}

// Reads a number, or a map with one schedule and possibly a warm-up.
void ParseRate(const YamlReader& node, optim::OptimizerSpec* spec) {
  using Kind = optim::ScheduleSpec::Kind;
  if (node.IsScalar()) {
    spec->learning_rate = node.AsNumber(0, kHugest);
    return;
  }
  node.CheckKeys({"constant", "exponential", "inverse_time", "polynomial", "cosine",
                  "cosine_restarts", "piecewise", "warm_up_steps", "warm_up_from"});
  int schedules = 0;
  for (const Kind kind :
       {Kind::kConstant, Kind::kExponential, Kind::kInverseTime, Kind::kPolynomial, Kind::kCosine,
        Kind::kCosineRestarts, Kind::kPiecewise}) {
    const std::string_view name = optim::ScheduleName(kind);
    if (!node.ok() || !node.Has(name)) continue;
    ++schedules;
    spec->schedule.kind = kind;
    const YamlReader child = node.At(name);
    if (kind == Kind::kConstant) {
      spec->learning_rate = child.AsNumber(0, kHugest);
    } else if (kind == Kind::kPiecewise) {
      ParsePiecewise(child, spec);
    } else {
      ParseDecay(child, spec);
    }
  }
  if (node.ok() && schedules != 1) {
    node.Fail("must have one schedule: 'constant: RATE', 'exponential: {...}' or another");
  }
  spec->schedule.warm_up_steps = node.Int("warm_up_steps", 0, 0, int64_t{1} << 40);
  spec->schedule.warm_up_from = node.Number("warm_up_from", 0, 0, kHugest);
  if (spec->schedule.warm_up_from != 0 && spec->schedule.warm_up_steps == 0) {
    node.Fail("'warm_up_from' needs 'warm_up_steps'");
  }
}

double ParseParameter(const YamlReader& node, const optim::OptimizerParameter& parameter) {
  using Range = optim::ValueRange;
  if (parameter.is_flag()) return node.Bool(parameter.name, parameter.fallback != 0) ? 1 : 0;
  if (parameter.range == Range::kNotPositive) {
    return node.Number(parameter.name, parameter.fallback, -kHugest, 0);
  }
  const bool is_share = parameter.range == Range::kUpToOne || parameter.range == Range::kBelowOne;
  return node.Number(parameter.name, parameter.fallback, 0, is_share ? 1 : kHugest);
}

void ParseOptions(const YamlReader& node, const optim::OptimizerKind& kind,
                  optim::OptimizerSpec* spec) {
  std::vector<std::string_view> keys = {"learning_rate"};
  for (const auto& parameter : kind.parameters) keys.emplace_back(parameter.name);
  if (kind.decays) keys.insert(keys.end(), {"weight_decay", "lazy"});
  node.CheckKeys(keys);
  for (const auto& parameter : kind.parameters) {
    spec->parameters[parameter.name] = ParseParameter(node, parameter);
  }
  if (kind.decays) {
    spec->weight_decay = node.Number("weight_decay", 0, 0, kHugest);
    spec->lazy = node.Bool("lazy", false);
  }
  if (node.Has("learning_rate")) ParseRate(node.At("learning_rate"), spec);
  if (!node.ok()) return;
  const auto built = optim::NewOptimizer(*spec);
  if (!built.ok()) node.Fail(ToStd(built.status().message()));
}

}  // namespace

optim::OptimizerSpec ParseOptimizer(const YamlReader& node) {
  optim::OptimizerSpec spec;
  std::string name;
  std::optional<YamlReader> options;
  if (node.IsScalar()) {
    name = node.AsString();
  } else {
    node.ForEach([&](const std::string& key, const YamlReader& child) {
      if (!name.empty()) {
        return node.Fail(
            StrCat("must have one entry: the optimizer; it has '", name, "' and '", key, "'"));
      }
      name = key;
      options.emplace(child);
    });
  }
  if (!node.ok()) return spec;
  std::vector<std::string> names;
  for (const optim::OptimizerKind* const kind : optim::OptimizerKinds()) {
    names.emplace_back(kind->name);
    if (kind->name != name) continue;
    spec = optim::DefaultOptimizer(name);
    if (options && options->IsMap()) {
      ParseOptions(*options, *kind, &spec);
    } else if (options && options->IsScalar()) {
      options->Fail("must be a map of the optimizer's options");
    }
    return spec;
  }
  node.Fail(StrCat("unknown optimizer '", name, "'", DidYouMean(name, names)));
  return spec;
}

optim::ClipSpec ParseClip(const YamlReader& node) {
  using Kind = optim::ClipSpec::Kind;
  node.CheckKeys({"value", "norm", "global_norm"});
  optim::ClipSpec clip;
  int limits = 0;
  for (const Kind kind : {Kind::kValue, Kind::kNorm, Kind::kGlobalNorm}) {
    const std::string_view name = optim::ClipName(kind);
    if (!node.ok() || !node.Has(name)) continue;
    ++limits;
    clip = {kind, node.At(name).AsNumber(kLeastRate, kHugest)};
  }
  if (node.ok() && limits != 1) node.Fail("must have one of 'value', 'norm' and 'global_norm'");
  return clip;
}

}  // namespace muster::model
