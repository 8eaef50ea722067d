#include "muster/train/variables.h"

#include <cmath>
#include <cstdlib>
#include <new>

#include "muster/base/random.h"

namespace muster::train {
namespace {

constexpr size_t kAlignment = 64;

void Initialize(const engine::VariableSpec& spec, uint64_t seed, int index, float* data) {
  using Kind = engine::Initializer::Kind;
  const int64_t n = spec.elements();
  RandomStream random(seed, RandomPurpose::kInitialWeights, index);
  switch (spec.initializer.kind) {
    case Kind::kConstant:
      std::fill(data, data + n, static_cast<float>(spec.initializer.value));
      break;
    case Kind::kGlorotUniform: {
      const double fan_sum = static_cast<double>(spec.shape.front() + spec.shape.back());
      const double limit = std::sqrt(6.0 / fan_sum);
      for (int64_t i = 0; i < n; ++i) {
        data[i] = static_cast<float>((2.0 * random.UniformDouble() - 1.0) * limit);
      }
      break;
    }
    case Kind::kTruncatedNormal:
      for (int64_t i = 0; i < n; ++i) {
        data[i] = static_cast<float>(random.TruncatedNormal() * spec.initializer.value);
      }
      break;
  }
}

}  // namespace

void Variables::AlignedDelete::operator()(float* p) const { std::free(p); }

Variables::Variables(const model::Model& model)
    : model_(model), specs_(model.engine->variables()) {}

absl::StatusOr<float*> Variables::Allocate(int64_t elements, const std::string& name) {
  const size_t bytes =
      (static_cast<size_t>(elements) * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, std::max(bytes, kAlignment));
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        StrCat("variable ", name, ": no memory for ", elements, " floats"));
  }
  buffers_.emplace_back(static_cast<float*>(memory));
  return buffers_.back().get();
}

absl::StatusOr<std::unique_ptr<Variables>> Variables::Create(const model::Model& model,
                                                             uint64_t seed, bool with_slots) {
  std::unique_ptr<Variables> variables(new Variables(model));
  for (size_t i = 0; i < variables->specs_.size(); ++i) {
    const engine::VariableSpec& spec = variables->specs_[i];
    MUSTER_ASSIGN_OR_RETURN(float* data, variables->Allocate(spec.elements(), spec.name));
    Initialize(spec, seed, static_cast<int>(i), data);
    const bool matrix = spec.shape.size() > 1;
    variables->views_.push_back(
        {data, matrix ? spec.shape[0] : 1, matrix ? spec.shape[1] : spec.elements()});
    std::vector<float*>& slots = variables->slots_.emplace_back();
    if (!with_slots || spec.kind == engine::VariableKind::kState) continue;
    for (const optim::SlotSpec& slot : model.optimizers[spec.group]->slots()) {
      MUSTER_ASSIGN_OR_RETURN(float* values, variables->Allocate(spec.elements(), spec.name));
      std::fill(values, values + spec.elements(), slot.initial_value);
      slots.push_back(values);
    }
  }
  return variables;
}

std::unique_ptr<Variables> Variables::WithoutMemory(const model::Model& model) {
  std::unique_ptr<Variables> variables(new Variables(model));
  variables->views_.resize(variables->specs_.size());
  variables->slots_.resize(variables->specs_.size());
  return variables;
}

std::vector<checkpoint::Tensor> Variables::Tensors(bool with_slots) const {
  std::vector<checkpoint::Tensor> tensors;
  const auto add = [&](std::string name, size_t variable, float* data) {
    const engine::VariableSpec& spec = specs_[variable];
    tensors.push_back({std::move(name),
                       formats::DataType::kFloat,
                       spec.shape,
                       {reinterpret_cast<char*>(data), spec.elements() * sizeof(float)},
                       static_cast<int>(variable)});
  };
  for (size_t i = 0; i < specs_.size(); ++i) {
    const engine::VariableSpec& spec = specs_[i];
    add(spec.name, i, views_[i].data);
    if (!with_slots || spec.kind == engine::VariableKind::kState) continue;
    const auto slots = model_.optimizers[spec.group]->slots();
    const std::string_view optimizer =
        optim::OptimizerName(model_.optimizer_specs[spec.group].kind);
    for (size_t k = 0; k < slots.size(); ++k) {
      add(StrCat("training/", optimizer, "/", spec.name, "/", slots[k].name), i, slots_[i][k]);
    }
  }
  return tensors;
}

uint64_t Variables::parameters() const {
  uint64_t total = 0;
  for (const engine::VariableSpec& spec : specs_) {
    if (spec.kind != engine::VariableKind::kState) total += spec.elements();
  }
  return total;
}

}  // namespace muster::train
