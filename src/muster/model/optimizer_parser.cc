#include "muster/model/optimizer_parser.h"

#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/nearest.h"

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

// A number, or a map of one schedule with a warm-up beside it.
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
    node.Fail("has one schedule: 'constant: RATE', 'exponential: {...}' or another");
  }
  spec->schedule.warm_up_steps = node.Int("warm_up_steps", 0, 0, int64_t{1} << 40);
  spec->schedule.warm_up_from = node.Number("warm_up_from", 0, 0, kHugest);
  if (spec->schedule.warm_up_from != 0 && spec->schedule.warm_up_steps == 0) {
    node.Fail("'warm_up_from' needs 'warm_up_steps'");
  }
}

void ParseFtrl(const YamlReader& node, optim::OptimizerSpec* spec) {
  node.CheckKeys({"learning_rate", "initial_accumulator", "l1", "l2", "l2_shrinkage",
                  "learning_rate_power", "beta"});
  spec->initial_accumulator = node.Number("initial_accumulator", 0.1, 0, kHugest);
  spec->l1 = node.Number("l1", 0, 0, kHugest);
  spec->l2 = node.Number("l2", 0, 0, kHugest);
  spec->l2_shrinkage = node.Number("l2_shrinkage", 0, 0, kHugest);
  spec->learning_rate_power = node.Number("learning_rate_power", -0.5, -kHugest, 0);
  spec->beta = node.Number("beta", 0, 0, kHugest);
}

void ParseOptions(const YamlReader& node, optim::OptimizerSpec* spec) {
  using Kind = optim::OptimizerSpec::Kind;
  switch (spec->kind) {
    case Kind::kFtrl:
      ParseFtrl(node, spec);
      break;
    case Kind::kAdagrad:
      node.CheckKeys({"learning_rate", "initial_accumulator", "epsilon", "weight_decay", "lazy"});
      spec->initial_accumulator = node.Number("initial_accumulator", 0.1, 0, kHugest);
      spec->epsilon = node.Number("epsilon", 1e-7, 0, kHugest);
      break;
    case Kind::kAdam:
      node.CheckKeys({"learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "lazy"});
      spec->beta1 = node.Number("beta1", 0.9, 0, 1);
      spec->beta2 = node.Number("beta2", 0.999, 0, 1);
      spec->epsilon = node.Number("epsilon", 1e-7, 0, kHugest);
      break;
    case Kind::kRmsProp:
      node.CheckKeys(
          {"learning_rate", "rho", "momentum", "epsilon", "centered", "weight_decay", "lazy"});
      spec->rho = node.Number("rho", 0.9, 0, 1);
      spec->momentum = node.Number("momentum", 0, 0, 1);
      spec->epsilon = node.Number("epsilon", 1e-7, 0, kHugest);
      spec->centered = node.Bool("centered", false);
      break;
    case Kind::kSgd:
      node.CheckKeys({"learning_rate", "momentum", "nesterov", "weight_decay", "lazy"});
      spec->momentum = node.Number("momentum", 0, 0, 1);
      spec->nesterov = node.Bool("nesterov", false);
      break;
  }
  if (spec->kind != Kind::kFtrl) {
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
  using Kind = optim::OptimizerSpec::Kind;
  // Keras's rates.
  struct Known {
    std::string_view name;
    Kind kind;
    double learning_rate;
  };
  static constexpr Known kKnown[] = {{"ftrl", Kind::kFtrl, 0.05},
                                     {"adagrad", Kind::kAdagrad, 0.05},
                                     {"adam", Kind::kAdam, 0.001},
                                     {"rmsprop", Kind::kRmsProp, 0.001},
                                     {"sgd", Kind::kSgd, 0.01}};
  optim::OptimizerSpec spec;
  std::string name;
  std::optional<YamlReader> options;
  if (node.IsScalar()) {
    name = node.AsString();
  } else {
    node.ForEach([&](const std::string& key, const YamlReader& child) {
      if (!name.empty()) return node.Fail("has one entry: the optimizer");
      name = key;
      options.emplace(child);
    });
  }
  if (!node.ok()) return spec;
  std::vector<std::string> names;
  for (const Known& known : kKnown) {
    names.emplace_back(known.name);
    if (known.name != name) continue;
    spec.kind = known.kind;
    spec.learning_rate = known.learning_rate;
    if (options && options->IsMap()) {
      ParseOptions(*options, &spec);
    } else if (options && options->IsScalar()) {
      options->Fail("is a map of the optimizer's options");
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
  if (node.ok() && limits != 1) node.Fail("has one of 'value', 'norm' and 'global_norm'");
  return clip;
}

}  // namespace muster::model
