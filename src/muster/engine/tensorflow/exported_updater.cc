#include <algorithm>
#include <cstring>
#include <utility>

#include "muster/engine/step_checks.h"
#include "muster/engine/tensorflow/exported_engine.h"
#include "muster/engine/tensorflow/tensor_layout.h"

namespace muster::engine::tensorflow {

namespace {

using host::TensorPlace;
using Role = KerasPort::Role;

}  // namespace

size_t ExportedEngine::GetSpec(int variable) const {
  return static_cast<size_t>(std::ranges::lower_bound(exported_, variable) - exported_.begin());
}

absl::StatusOr<ExportedEngine::Places> ExportedEngine::RunOn(const Function& function,
                                                             std::span<const Given> given) {
  std::vector<TensorPlace> places;
  uint64_t total = 0;
  for (const Given& each : given) {
    places.push_back(each.place);
    places.back().offset = total;
    total += Aligned(each.place.bytes);
  }
  MUSTER_ASSIGN_OR_RETURN(const uint64_t begin, update_block_.Reserve(host_->segment(), total));
  for (size_t i = 0; i < places.size(); ++i) {
    places[i].offset += begin;
    if (places[i].bytes == 0) continue;
    std::memcpy(host_->segment().at(places[i].offset), given[i].from, places[i].bytes);
  }
  return host_->Run(function.number, places);
}

absl::StatusOr<float> ExportedEngine::LearningRate(int64_t step) {
  MUSTER_RETURN_IF_ERROR(Begin());
  const std::vector<Given> given(learning_rate_.signature->inputs.size(),
                                 {MakePlace(formats::DataType::kInt64, {}), &step});
  absl::StatusOr<Places> results = RunOn(learning_rate_, given);
  if (!results.ok()) return Annotate(results.status(), StrCat("learning rate of step ", step));
  const auto& outputs = learning_rate_.signature->outputs;
  const auto port = std::ranges::find(outputs, Role::kLearningRate, &KerasPort::role);
  const TensorPlace& place = (*results)[static_cast<size_t>(port - outputs.begin())];
  if (place.type != kFloatType || place.bytes != sizeof(float)) {
    return absl::DataLossError(StrCat("the learning rate of ", model_.folder,
                                      " is not one number of float32: export the model again"));
  }
  return Floats(place)[0];
}

absl::StatusOr<ExportedEngine::Given> ExportedEngine::GivenTo(
    const KerasPort& port, std::span<const VariableView> weights,
    std::span<const std::span<char>> slots, std::span<const VariableGradient> gradients,
    const int64_t* step) const {
  const auto i = static_cast<size_t>(port.index);
  if (port.role == Role::kStep) {
    return Given{MakePlace(formats::DataType::kInt64, {}), step};
  }
  if (port.role == Role::kSlot) {
    return Given{MakePlace(slots_[i].type, slots_[i].shape), slots[i].data()};
  }
  const KerasVariable& variable = model_.variables[i];
  const size_t spec = GetSpec(port.index);
  if (port.role == Role::kVariable) {
    return Given{MakePlace(variable.type, variable.shape), weights[spec].data};
  }
  const VariableGradient& gradient = gradients[spec];
  const auto rows = static_cast<int64_t>(gradient.rows.size());
  if (port.role == Role::kRows) {
    return Given{MakePlace(formats::DataType::kInt32, std::span(&rows, 1)), gradient.rows.data()};
  }
  std::vector<int64_t> shape = variable.shape;
  if (variable.kind == KerasVariable::Kind::kTable) shape[0] = rows;
  const TensorPlace place = MakePlace(variable.type, shape);
  if (place.bytes == gradient.values.size_bytes()) return Given{place, gradient.values.data()};
  return absl::InvalidArgumentError(StrCat("the gradient of ", variable.name, " has ",
                                           gradient.values.size(), " values, not ",
                                           place.bytes / sizeof(float)));
}

absl::Status ExportedEngine::Apply(std::span<const VariableView> weights,
                                   std::span<const std::span<char>> slots,
                                   std::span<const VariableGradient> gradients, int64_t step) {
  MUSTER_RETURN_IF_ERROR(Begin());
  MUSTER_RETURN_IF_ERROR(CheckWeights(specs_, weights));
  if (gradients.size() != specs_.size() ||
      !std::ranges::equal(slots, slots_, {}, &std::span<char>::size, &UpdaterSlot::bytes)) {
    return absl::InvalidArgumentError("slots and gradients are not those of the model");
  }
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].kind == VariableKind::kTable && weights[i].rows != specs_[i].shape[0]) {
      return absl::InvalidArgumentError(
          StrCat("the optimizer ", name(), " needs table ", specs_[i].name, " as a whole"));
    }
  }
  std::vector<Given> given;
  for (const KerasPort& port : apply_.signature->inputs) {
    MUSTER_ASSIGN_OR_RETURN(given.emplace_back(), GivenTo(port, weights, slots, gradients, &step));
  }
  absl::StatusOr<Places> results = RunOn(apply_, given);
  const std::string what = StrCat("step ", step, ": the optimizer ", name());
  if (!results.ok()) return Annotate(results.status(), what);
  // All values are checked before the first one is used.
  std::vector<std::pair<void*, const TensorPlace*>> taken;
  for (size_t k = 0; k < results->size(); ++k) {
    const KerasPort& port = apply_.signature->outputs[k];
    const auto i = static_cast<size_t>(port.index);
    const TensorPlace& place = (*results)[k];
    const bool is_slot = port.role == Role::kSlot;
    if (!is_slot && port.role != Role::kNewVariable) continue;
    const auto type = is_slot ? slots_[i].type : model_.variables[i].type;
    const auto& shape = is_slot ? slots_[i].shape : model_.variables[i].shape;
    const TensorPlace wanted = MakePlace(type, shape);
    if (place.type != wanted.type || place.bytes != wanted.bytes) {
      return absl::DataLossError(StrCat(
          what, " gives a new value of ", is_slot ? slots_[i].name : model_.variables[i].name,
          " that does not have its type and shape: export the model again"));
    }
    taken.emplace_back(
        is_slot ? static_cast<void*>(slots[i].data()) : weights[GetSpec(port.index)].data, &place);
  }
  for (const auto& [to, place] : taken) {
    if (place->bytes > 0) std::memcpy(to, host_->segment().at(place->offset), place->bytes);
  }
  return absl::OkStatus();
}

}  // namespace muster::engine::tensorflow
