#include "muster/model/keras/keras_optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "muster/io/file_system.h"
#include "muster/optim/optimizer_kind.h"

namespace muster::model {
namespace {

using engine::tensorflow::KerasExport;
using formats::Json;
using formats::JsonFields;
using optim::OptimizerSpec;
using optim::ScheduleSpec;
using optim::ValueRange;
using ScheduleKind = ScheduleSpec::Kind;

// Returns 0, with an error in the status, if the number is missing or out of range.
double ReadNumber(JsonFields& fields, const char* name, ValueRange range) {
  if (!fields.Has(name)) fields.Fail(StrCat("\"", name, "\" is missing"));
  const double value = fields.Number(name, 0);
  if (!fields.status().ok()) return 0;
  if (IsIn(range, value)) return value;
  fields.Fail(StrCat("\"", name, "\" is ", value, ": it must be ", RangeText(range)));
  return 0;
}

// Reads a list of numbers, all of which must be in range.
std::vector<double> ReadNumbers(JsonFields& fields, const char* name, ValueRange range) {
  std::vector<double> numbers;
  for (const Json& each : fields.List(name)) {
    numbers.push_back(each.is_number() ? each.get<double>()
                                       : std::numeric_limits<double>::quiet_NaN());
    if (std::isfinite(numbers.back()) && IsIn(range, numbers.back())) continue;
    fields.Fail(StrCat("\"", name, "\" must be numbers, each ", RangeText(range)));
    return {};
  }
  return numbers;
}

// Keras casts the number to the type of a step.
int64_t StepAt(double number) {
  return static_cast<int64_t>(std::min(number, std::ldexp(1.0, 62)));
}

// An argument of Keras's class, and the field that it sets here.
struct ScheduleNumber {
  const char* name;
  double ScheduleSpec::*member;
  ValueRange range;
};
struct KerasScheduleEntry {
  std::string_view name;
  ScheduleKind kind;
  std::vector<ScheduleNumber> numbers;
};

const std::vector<KerasScheduleEntry>& KerasSchedules() {
  using Spec = ScheduleSpec;
  static const std::vector<ScheduleNumber> kDecay = {
      {"decay_steps", &Spec::decay_steps, ValueRange::kPositive},
      {"decay_rate", &Spec::decay_rate, ValueRange::kNotNegative}};
  static const std::vector<KerasScheduleEntry> kSchedules = {
      {"ExponentialDecay", ScheduleKind::kExponential, kDecay},
      {"InverseTimeDecay", ScheduleKind::kInverseTime, kDecay},
      {"PolynomialDecay",
       ScheduleKind::kPolynomial,
       {{"decay_steps", &Spec::decay_steps, ValueRange::kPositive},
        {"end_learning_rate", &Spec::end, ValueRange::kNotNegative},
        {"power", &Spec::power, ValueRange::kNotNegative}}},
      {"PiecewiseConstantDecay", ScheduleKind::kPiecewise, {}},
      {"CosineDecay",
       ScheduleKind::kCosine,
       {{"decay_steps", &Spec::decay_steps, ValueRange::kPositive},
        {"alpha", &Spec::alpha, ValueRange::kUpToOne}}},
      {"CosineDecayRestarts",
       ScheduleKind::kCosineRestarts,
       {{"first_decay_steps", &Spec::decay_steps, ValueRange::kPositive},
        {"t_mul", &Spec::t_mul, ValueRange::kPositive},
        {"m_mul", &Spec::m_mul, ValueRange::kNotNegative},
        {"alpha", &Spec::alpha, ValueRange::kUpToOne}}}};
  return kSchedules;
}

void ReadPiecewise(JsonFields& fields, OptimizerSpec* spec) {
  for (const double boundary : ReadNumbers(fields, "boundaries", ValueRange::kNotNegative)) {
    spec->schedule.boundaries.push_back(StepAt(boundary));
  }
  spec->schedule.values = ReadNumbers(fields, "values", ValueRange::kPositive);
  if (fields.status().ok() && spec->schedule.values.empty()) fields.Fail("\"values\" is missing");
  if (!spec->schedule.values.empty()) spec->learning_rate = spec->schedule.values.front();
}

void ReadSchedule(JsonFields& fields, OptimizerSpec* spec) {
  const std::string name = fields.Text("schedule");
  const auto found = std::ranges::find(KerasSchedules(), name, &KerasScheduleEntry::name);
  if (found == KerasSchedules().end()) {
    return fields.Update(absl::UnimplementedError(
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
    // The rate rises from initial_learning_rate to the target, and decays from there.
    spec->learning_rate = ReadNumber(fields, "warmup_target", ValueRange::kPositive);
    schedule.warm_up_steps = StepAt(ReadNumber(fields, "warmup_steps", ValueRange::kNotNegative));
    schedule.warm_up_from = ReadNumber(fields, "initial_learning_rate", ValueRange::kNotNegative);
  } else {
    spec->learning_rate = ReadNumber(fields, "initial_learning_rate", ValueRange::kPositive);
  }
}

void ReadLearningRate(JsonFields& fields, const Json& optimizer, OptimizerSpec* spec,
                      KerasOptimizer* out) {
  const auto rate = optimizer.find("learning_rate");
  if (rate == optimizer.end() || !rate->is_object()) {
    spec->learning_rate = ReadNumber(fields, "learning_rate", ValueRange::kPositive);
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
  fields.Update(schedule.status());
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
    spec = {.kind = kind, .limit = ReadNumber(clip, name, ValueRange::kPositive)};
  }
  if (given > 1) clip.Fail("has more than one of clipnorm, clipvalue and global_clipnorm");
  fields.Update(clip.status());
  return spec;
}

// Sets the weight decay of out->specs; the variables that it excludes get a second spec.
void ReadWeightDecay(JsonFields& fields, KerasOptimizer* out) {
  if (!fields.Has("weight_decay")) return;
  const Json& object = fields.Object("weight_decay");
  JsonFields decay(object, StrCat(fields.where(), ".weight_decay"));
  out->specs[0].weight_decay = ReadNumber(decay, "rate", ValueRange::kNotNegative);
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
  fields.Update(decay.status());
}

void ReadRule(JsonFields& fields, OptimizerSpec* spec) {
  const std::string name = fields.Text("name");
  const optim::OptimizerKind* const kind = optim::FindKerasClass(name);
  if (fields.Text("rule") != "keras" || kind == nullptr) {
    return fields.Update(absl::UnimplementedError(StrCat(
        fields.where(), ": ", name,
        ": this muster does not know such a rule: export the model with the muster.keras of the "
        "same version, which exports an optimizer that it does not know as a function")));
  }
  spec->rule = OptimizerSpec::Rule::kKeras;
  spec->kind = kind->name;
  for (const auto& each : kind->parameters) {
    spec->parameters[each.name] = each.is_flag() ? (fields.Bool(each.keras_name, false) ? 1 : 0)
                                                 : ReadNumber(fields, each.keras_name, each.range);
  }
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
  // From sums alone the norm of their entries cannot be computed.
  spec.squares = out.clip.by_norm();
  out.specs = {spec};
  ReadWeightDecay(fields, &out);
  MUSTER_RETURN_IF_ERROR(fields.status());
  for (const OptimizerSpec& each : out.specs) {
    MUSTER_RETURN_IF_ERROR(Annotate(optim::NewOptimizer(each).status(), fields.where()));
  }
  return out;
}

}  // namespace muster::model
