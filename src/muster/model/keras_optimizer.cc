#include "muster/model/keras_optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "muster/io/file_system.h"

namespace muster::model {
namespace {

using engine::tensorflow::KerasExport;
using formats::Json;
using formats::JsonFields;
using optim::OptimizerSpec;
using optim::ScheduleSpec;
using OptimizerKind = OptimizerSpec::Kind;
using ScheduleKind = ScheduleSpec::Kind;

// What a number must be.
enum class KerasRange { kPositive, kNotNegative, kNotPositive, kUpToOne, kBelowOne };

bool IsIn(KerasRange range, double value) {
  switch (range) {
    case KerasRange::kPositive:
      return value > 0;
    case KerasRange::kNotNegative:
      return value >= 0;
    case KerasRange::kNotPositive:
      return value <= 0;
    case KerasRange::kUpToOne:
      return value >= 0 && value <= 1;
    case KerasRange::kBelowOne:
      return value >= 0 && value < 1;
  }
  return false;
}

std::string_view TextOf(KerasRange range) {
  switch (range) {
    case KerasRange::kPositive:
      return "over 0";
    case KerasRange::kNotNegative:
      return "0 or more";
    case KerasRange::kNotPositive:
      return "0 or less";
    case KerasRange::kUpToOne:
      return "from 0 to 1";
    case KerasRange::kBelowOne:
      return "at least 0 and under 1";
  }
  return "";
}

// 0 with a status that says why.
double ReadNumber(JsonFields& fields, const char* name, KerasRange range) {
  if (!fields.Has(name)) fields.Fail(StrCat("\"", name, "\" is missing"));
  const double value = fields.Number(name, 0);
  if (!fields.status().ok()) return 0;
  if (IsIn(range, value)) return value;
  fields.Fail(StrCat("\"", name, "\" is ", value, ": it must be ", TextOf(range)));
  return 0;
}

// Numbers of a list, all in their range.
std::vector<double> ReadNumbers(JsonFields& fields, const char* name, KerasRange range) {
  std::vector<double> numbers;
  for (const Json& each : fields.List(name)) {
    numbers.push_back(each.is_number() ? each.get<double>()
                                       : std::numeric_limits<double>::quiet_NaN());
    if (std::isfinite(numbers.back()) && IsIn(range, numbers.back())) continue;
    fields.Fail(StrCat("\"", name, "\" must be numbers, each ", TextOf(range)));
    return {};
  }
  return numbers;
}

// Keras casts it to the type of a step.
int64_t StepAt(double number) {
  return static_cast<int64_t>(std::min(number, std::ldexp(1.0, 62)));
}

// Arguments of Keras's class and what they are here.
struct RuleNumber {
  const char* name;
  double OptimizerSpec::*member;
  KerasRange range;
};
struct ScheduleNumber {
  const char* name;
  double ScheduleSpec::*member;
  KerasRange range;
};
struct KerasRuleEntry {
  std::string_view name;
  OptimizerKind kind;
  std::vector<RuleNumber> numbers;
};
struct KerasScheduleEntry {
  std::string_view name;
  ScheduleKind kind;
  std::vector<ScheduleNumber> numbers;
};

const std::vector<KerasRuleEntry>& KerasRules() {
  using Spec = OptimizerSpec;
  static const std::vector<RuleNumber> kAdam = {{"beta_1", &Spec::beta1, KerasRange::kBelowOne},
                                                {"beta_2", &Spec::beta2, KerasRange::kBelowOne},
                                                {"epsilon", &Spec::epsilon, KerasRange::kPositive}};
  static const std::vector<KerasRuleEntry> kRules = {
      {"SGD", OptimizerKind::kSgd, {{"momentum", &Spec::momentum, KerasRange::kUpToOne}}},
      {"Adagrad",
       OptimizerKind::kAdagrad,
       {{"initial_accumulator_value", &Spec::initial_accumulator, KerasRange::kNotNegative},
        {"epsilon", &Spec::epsilon, KerasRange::kPositive}}},
      {"Adam", OptimizerKind::kAdam, kAdam},
      {"AdamW", OptimizerKind::kAdam, kAdam},
      {"RMSprop",
       OptimizerKind::kRmsProp,
       {{"rho", &Spec::rho, KerasRange::kBelowOne},
        {"momentum", &Spec::momentum, KerasRange::kUpToOne},
        {"epsilon", &Spec::epsilon, KerasRange::kPositive}}},
      {"Ftrl",
       OptimizerKind::kFtrl,
       {{"learning_rate_power", &Spec::learning_rate_power, KerasRange::kNotPositive},
        {"initial_accumulator_value", &Spec::initial_accumulator, KerasRange::kNotNegative},
        {"l1_regularization_strength", &Spec::l1, KerasRange::kNotNegative},
        {"l2_regularization_strength", &Spec::l2, KerasRange::kNotNegative},
        {"l2_shrinkage_regularization_strength", &Spec::l2_shrinkage, KerasRange::kNotNegative},
        {"beta", &Spec::beta, KerasRange::kNotNegative}}}};
  return kRules;
}

const std::vector<KerasScheduleEntry>& KerasSchedules() {
  using Spec = ScheduleSpec;
  static const std::vector<ScheduleNumber> kDecay = {
      {"decay_steps", &Spec::decay_steps, KerasRange::kPositive},
      {"decay_rate", &Spec::decay_rate, KerasRange::kNotNegative}};
  static const std::vector<KerasScheduleEntry> kSchedules = {
      {"ExponentialDecay", ScheduleKind::kExponential, kDecay},
      {"InverseTimeDecay", ScheduleKind::kInverseTime, kDecay},
      {"PolynomialDecay",
       ScheduleKind::kPolynomial,
       {{"decay_steps", &Spec::decay_steps, KerasRange::kPositive},
        {"end_learning_rate", &Spec::end, KerasRange::kNotNegative},
        {"power", &Spec::power, KerasRange::kNotNegative}}},
      {"PiecewiseConstantDecay", ScheduleKind::kPiecewise, {}},
      {"CosineDecay",
       ScheduleKind::kCosine,
       {{"decay_steps", &Spec::decay_steps, KerasRange::kPositive},
        {"alpha", &Spec::alpha, KerasRange::kUpToOne}}},
      {"CosineDecayRestarts",
       ScheduleKind::kCosineRestarts,
       {{"first_decay_steps", &Spec::decay_steps, KerasRange::kPositive},
        {"t_mul", &Spec::t_mul, KerasRange::kPositive},
        {"m_mul", &Spec::m_mul, KerasRange::kNotNegative},
        {"alpha", &Spec::alpha, KerasRange::kUpToOne}}}};
  return kSchedules;
}

void ReadPiecewise(JsonFields& fields, OptimizerSpec* spec) {
  for (const double boundary : ReadNumbers(fields, "boundaries", KerasRange::kNotNegative)) {
    spec->schedule.boundaries.push_back(StepAt(boundary));
  }
  spec->schedule.values = ReadNumbers(fields, "values", KerasRange::kPositive);
  if (fields.status().ok() && spec->schedule.values.empty()) fields.Fail("\"values\" is missing");
  if (!spec->schedule.values.empty()) spec->learning_rate = spec->schedule.values.front();
}

void ReadSchedule(JsonFields& fields, OptimizerSpec* spec) {
  const std::string name = fields.Text("schedule");
  const auto found = std::ranges::find(KerasSchedules(), name, &KerasScheduleEntry::name);
  if (found == KerasSchedules().end()) {
    return fields.Take(absl::UnimplementedError(
        StrCat(fields.where(), ": muster has no schedule \"", name,
               "\": export with a learning rate that is a number or one of Keras's schedules")));
  }
  ScheduleSpec& schedule = spec->schedule;
  schedule.kind = found->kind;
  if (schedule.kind == ScheduleKind::kPiecewise) return ReadPiecewise(fields, spec);
  for (const ScheduleNumber& number : found->numbers) {
    schedule.*number.member = ReadNumber(fields, number.name, number.range);
  }
  schedule.staircase = fields.Bool("staircase", false);
  schedule.cycle = fields.Bool("cycle", false);
  if (schedule.kind == ScheduleKind::kCosine && fields.Has("warmup_target")) {
    // From initial_learning_rate to the target, and down from there.
    spec->learning_rate = ReadNumber(fields, "warmup_target", KerasRange::kPositive);
    schedule.warm_up_steps = StepAt(ReadNumber(fields, "warmup_steps", KerasRange::kNotNegative));
    schedule.warm_up_from = ReadNumber(fields, "initial_learning_rate", KerasRange::kNotNegative);
  } else {
    spec->learning_rate = ReadNumber(fields, "initial_learning_rate", KerasRange::kPositive);
  }
}

void ReadLearningRate(JsonFields& fields, const Json& optimizer, OptimizerSpec* spec,
                      KerasOptimizer* out) {
  const auto rate = optimizer.find("learning_rate");
  if (rate == optimizer.end() || !rate->is_object()) {
    spec->learning_rate = ReadNumber(fields, "learning_rate", KerasRange::kPositive);
    return;
  }
  JsonFields schedule(*rate, StrCat(fields.where(), ".learning_rate"));
  if (schedule.Has("signature")) {
    out->rate = std::make_shared<optim::StepRate>();
    spec->rate = out->rate;
    if (schedule.Text("signature") != "learning_rate") {
      schedule.Fail("\"signature\" must be \"learning_rate\"");
    }
  } else {
    ReadSchedule(schedule, spec);
  }
  fields.Take(schedule.status());
}

optim::ClipSpec ReadClip(JsonFields& fields, double clip_value) {
  using Kind = optim::ClipSpec::Kind;
  JsonFields clip(fields.Object("clip"), StrCat(fields.where(), ".clip"));
  optim::ClipSpec spec;
  int given = 0;
  if (clip_value > 0) {
    ++given;
    spec = {.kind = Kind::kValue, .limit = clip_value, .tables_are_cut = true};
  }
  constexpr std::pair<const char*, Kind> kNorms[] = {{"clipnorm", Kind::kNorm},
                                                     {"global_clipnorm", Kind::kGlobalNorm}};
  for (const auto& [name, kind] : kNorms) {
    if (!clip.Has(name)) continue;
    ++given;
    spec = {.kind = kind, .limit = ReadNumber(clip, name, KerasRange::kPositive)};
  }
  if (given > 1) clip.Fail("has more than one of clipnorm, clipvalue and global_clipnorm");
  fields.Take(clip.status());
  return spec;
}

// Gives out->specs its weight decay, and those variables that it leaves out another one.
void ReadWeightDecay(JsonFields& fields, KerasOptimizer* out) {
  if (!fields.Has("weight_decay")) return;
  const Json& object = fields.Object("weight_decay");
  JsonFields decay(object, StrCat(fields.where(), ".weight_decay"));
  out->specs[0].weight_decay = ReadNumber(decay, "rate", KerasRange::kNotNegative);
  const Json& excluded = decay.List("excluded");
  if (!excluded.empty()) {
    out->specs.push_back(out->specs[0]);
    out->specs[1].weight_decay = 0;
  }
  for (const Json& each : excluded) {
    const bool known = each.is_number_unsigned() && each.get<uint64_t>() < out->groups.size();
    if (!known) {
      decay.Fail("\"excluded\" must be numbers of variables");
      break;
    }
    out->groups[each.get<size_t>()] = 1;
  }
  fields.Take(decay.status());
}

void ReadRule(JsonFields& fields, OptimizerSpec* spec) {
  const std::string name = fields.Text("name");
  const auto found = std::ranges::find(KerasRules(), name, &KerasRuleEntry::name);
  if (fields.Text("rule") != "keras" || found == KerasRules().end()) {
    return fields.Take(absl::UnimplementedError(
        StrCat(fields.where(), ": ", name,
               ": this muster has no such rule: export the model with the muster.keras that "
               "belongs to it, which writes an optimizer that it does not know as a function")));
  }
  spec->rule = OptimizerSpec::Rule::kKeras;
  spec->kind = found->kind;
  for (const RuleNumber& number : found->numbers) {
    spec->*number.member = ReadNumber(fields, number.name, number.range);
  }
  spec->centered = fields.Bool("centered", false);
  // Without momentum Keras does not look at it.
  spec->nesterov = fields.Bool("nesterov", false) && spec->momentum > 0;
}

}  // namespace

absl::StatusOr<KerasOptimizer> ParseKerasOptimizer(const KerasExport& model) {
  JsonFields fields(model.optimizer,
                    StrCat(io::JoinPath(model.folder, "model.json"), ".optimizer"));
  KerasOptimizer out;
  out.groups.assign(model.variables.size(), 0);
  out.applies = model.applies;
  if (out.applies) return out;
  OptimizerSpec spec;
  ReadRule(fields, &spec);
  MUSTER_RETURN_IF_ERROR(fields.status());
  ReadLearningRate(fields, model.optimizer, &spec, &out);
  out.clip = ReadClip(fields, model.clip_value);
  // Of sums alone nobody can tell the norm of their entries.
  spec.squares = spec.kind == OptimizerKind::kSgd && out.clip.by_norm();
  out.specs = {spec};
  ReadWeightDecay(fields, &out);
  MUSTER_RETURN_IF_ERROR(fields.status());
  for (const OptimizerSpec& each : out.specs) {
    MUSTER_RETURN_IF_ERROR(Annotate(optim::NewOptimizer(each).status(), fields.where()));
  }
  return out;
}

}  // namespace muster::model
