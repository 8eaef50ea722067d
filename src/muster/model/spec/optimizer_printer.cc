#include "muster/model/spec/optimizer_printer.h"

#include <string>
#include <vector>

#include "muster/formats/yaml_emitter.h"
#include "muster/optim/optimizer_kind.h"

namespace muster::model {
namespace {

using formats::BeginFlowMap;
using formats::EmitFlag;
using formats::EmitNumber;
using formats::EmitNumbers;

void EmitSchedule(YAML::Emitter& out, double initial, const optim::ScheduleSpec& schedule) {
  using Kind = optim::ScheduleSpec::Kind;
  BeginFlowMap(out, optim::ScheduleName(schedule.kind));
  if (schedule.kind == Kind::kPiecewise) {
    EmitNumbers(out, "boundaries", schedule.boundaries);
    EmitNumbers(out, "values", std::vector<float>(schedule.values.begin(), schedule.values.end()));
    out << YAML::EndMap;
    return;
  }
  EmitNumber(out, "initial", initial);
  EmitNumber(out, "decay_steps", schedule.decay_steps);
  switch (schedule.kind) {
    case Kind::kExponential:
    case Kind::kInverseTime:
      EmitNumber(out, "decay_rate", schedule.decay_rate);
      EmitFlag(out, "staircase", schedule.staircase);
      break;
    case Kind::kPolynomial:
      EmitNumber(out, "end", schedule.end);
      EmitNumber(out, "power", schedule.power);
      EmitFlag(out, "cycle", schedule.cycle);
      break;
    case Kind::kCosineRestarts:
      EmitNumber(out, "t_mul", schedule.t_mul);
      EmitNumber(out, "m_mul", schedule.m_mul);
      EmitNumber(out, "alpha", schedule.alpha);
      break;
    default:
      EmitNumber(out, "alpha", schedule.alpha);
  }
  out << YAML::EndMap;
}

void EmitRate(YAML::Emitter& out, const optim::OptimizerSpec& spec) {
  const optim::ScheduleSpec& schedule = spec.schedule;
  if (schedule == optim::ScheduleSpec()) {
    return EmitNumber(out, "learning_rate", spec.learning_rate);
  }
  BeginFlowMap(out, "learning_rate");
  if (schedule.kind == optim::ScheduleSpec::Kind::kConstant) {
    EmitNumber(out, "constant", spec.learning_rate);
  } else {
    EmitSchedule(out, spec.learning_rate, schedule);
  }
  if (schedule.warm_up_steps > 0) {
    EmitNumber(out, "warm_up_steps", schedule.warm_up_steps);
    EmitNumber(out, "warm_up_from", schedule.warm_up_from);
  }
  out << YAML::EndMap;
}

}  // namespace

void EmitOptimizer(YAML::Emitter& out, const optim::OptimizerSpec& spec) {
  BeginFlowMap(out, "optimizer");
  BeginFlowMap(out, spec.kind);
  for (const optim::OptimizerParameter& each : optim::FindKind(spec.kind)->parameters) {
    const double value = spec.Get(each.name);
    if (each.is_flag()) {
      EmitFlag(out, each.name, value != 0);
    } else {
      EmitNumber(out, each.name, value);
    }
  }
  if (spec.weight_decay != 0) EmitNumber(out, "weight_decay", spec.weight_decay);
  EmitFlag(out, "lazy", spec.lazy);
  EmitRate(out, spec);
  out << YAML::EndMap << YAML::EndMap;
}

void EmitClip(YAML::Emitter& out, const optim::ClipSpec& clip) {
  if (clip.kind == optim::ClipSpec::Kind::kNone) return;
  BeginFlowMap(out, "clip_gradients");
  EmitNumber(out, std::string(optim::ClipName(clip.kind)), clip.limit);
  out << YAML::EndMap;
}

}  // namespace muster::model
