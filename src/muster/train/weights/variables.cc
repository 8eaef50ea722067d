#include "muster/train/weights/variables.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <new>

#include "absl/container/flat_hash_set.h"

#include "muster/base/random.h"
#include "muster/engine/updater.h"

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
    : model_(model), specs_(model.engine->variables()), dynamic_tables_(specs_.size()) {}

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
    if (spec.growth) {
      variables->views_.push_back({.cols = spec.shape[1]});
      variables->slots_.emplace_back();
      variables->dynamic_tables_[i] = std::make_unique<tables::DynamicTableImage>();
      if (with_slots) {
        variables->dynamic_tables_[i]->slots.resize(model.optimizers[spec.group]->slots().size());
      }
      continue;
    }
    MUSTER_ASSIGN_OR_RETURN(float* data, variables->Allocate(spec.elements(), spec.name));
    Initialize(spec, seed, static_cast<int>(i), data);
    const int64_t rows = spec.shape.size() > 1 ? spec.shape[0] : 1;
    variables->views_.push_back({data, rows, rows > 0 ? spec.elements() / rows : 0});
    std::vector<float*>& slots = variables->slots_.emplace_back();
    if (!with_slots || model.applies || spec.kind == engine::VariableKind::kState) continue;
    for (const optim::SlotSpec& slot : model.optimizers[spec.group]->slots()) {
      MUSTER_ASSIGN_OR_RETURN(float* values, variables->Allocate(spec.elements(), spec.name));
      std::fill(values, values + spec.elements(), slot.initial_value);
      slots.push_back(values);
    }
  }
  if (with_slots && model.applies) MUSTER_RETURN_IF_ERROR(variables->AllocateUpdaterSlots());
  return variables;
}

// A slot of any type gets as many floats as its bytes need.
absl::Status Variables::AllocateUpdaterSlots() {
  for (const engine::UpdaterSlot& slot : model_.engine->updater()->slots()) {
    const uint64_t bytes = slot.bytes();
    const auto floats = static_cast<int64_t>((bytes + sizeof(float) - 1) / sizeof(float));
    MUSTER_ASSIGN_OR_RETURN(float* const data, Allocate(floats, slot.name));
    updater_slots_.emplace_back(reinterpret_cast<char*>(data), bytes);
    std::ranges::fill(updater_slots_.back(), 0);
  }
  return absl::OkStatus();
}

void Variables::BeforeChange() const {
  const size_t count = specs_.size() + updater_slots_.size();
  for (size_t i = 0; i < count; ++i) BeforeChange(static_cast<int>(i));
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
    if (dynamic_tables_[i] != nullptr) {
      AddDynamic(i, with_slots, &tensors);
      continue;
    }
    add(spec.name, i, views_[i].data);
    if (!with_slots || model_.applies || spec.kind == engine::VariableKind::kState) continue;
    const auto slots = model_.optimizers[spec.group]->slots();
    const std::string_view optimizer =
        optim::OptimizerName(model_.optimizer_specs[spec.group].kind);
    for (size_t k = 0; k < slots.size(); ++k) {
      add(StrCat("training/", optimizer, "/", spec.name, "/", slots[k].name), i, slots_[i][k]);
    }
  }
  if (with_slots && model_.applies) {
    auto slots = UpdaterTensors(StrCat("training/", model_.engine->updater()->name()));
    std::ranges::move(slots, std::back_inserter(tensors));
  }
  return tensors;
}

// FrozenTensors regards each of these slots as a variable, numbered after those of the model.
std::vector<checkpoint::Tensor> Variables::UpdaterTensors(const std::string& prefix) const {
  std::vector<checkpoint::Tensor> tensors;
  if (updater_slots_.empty()) return tensors;
  const auto slots = model_.engine->updater()->slots();
  for (size_t k = 0; k < slots.size(); ++k) {
    tensors.push_back({.name = StrCat(prefix, "/", slots[k].name),
                       .type = slots[k].type,
                       .shape = slots[k].shape,
                       .bytes = updater_slots_[k],
                       .variable = static_cast<int>(specs_.size() + k)});
  }
  return tensors;
}

// These tensors belong to no variable of FrozenTensors: an image does not change while it is saved.
void Variables::AddDynamic(size_t variable, bool with_slots,
                           std::vector<checkpoint::Tensor>* tensors) const {
  const engine::VariableSpec& spec = specs_[variable];
  tables::DynamicTableImage& image = *dynamic_tables_[variable];
  const auto add = [tensors]<class T>(const std::string& name, formats::DataType type, int64_t cols,
                                      std::vector<T>* values) {
    const auto bytes_of = [values] {
      return std::span<char>(reinterpret_cast<char*>(values->data()), values->size() * sizeof(T));
    };
    std::vector<int64_t> shape = {std::ssize(*values) / std::max<int64_t>(cols, 1)};
    if (cols > 0) shape.push_back(cols);
    tensors->push_back({.name = name,
                        .type = type,
                        .shape = std::move(shape),
                        .bytes = bytes_of(),
                        .resize = [values, cols, bytes_of](int64_t rows) {
                          values->resize(static_cast<size_t>(rows * std::max<int64_t>(cols, 1)));
                          return bytes_of();
                        }});
  };
  const auto add_ints = [&](std::string_view part, std::vector<int64_t>* values) {
    add(StrCat(spec.name, "/", part), formats::DataType::kInt64, 0, values);
  };
  add(spec.name, formats::DataType::kFloat, spec.shape[1], &image.weights);
  add_ints("keys", &image.keys);
  if (!with_slots) return;
  const auto slots = model_.optimizers[spec.group]->slots();
  const std::string_view optimizer = optim::OptimizerName(model_.optimizer_specs[spec.group].kind);
  for (size_t k = 0; k < slots.size(); ++k) {
    add(StrCat("training/", optimizer, "/", spec.name, "/", slots[k].name),
        formats::DataType::kFloat, spec.shape[1], &image.slots[k]);
  }
  add_ints("last_steps", &image.last_steps);
  add_ints("waiting_keys", &image.waiting_keys);
  add_ints("waiting_counts", &image.waiting_counts);
  add_ints("waiting_last_steps", &image.waiting_last_steps);
}

absl::Status Variables::StartDynamic(int variable, std::vector<int64_t> keys,
                                     std::vector<float> weights) const {
  const engine::VariableSpec& spec = specs_[static_cast<size_t>(variable)];
  const absl::flat_hash_set<int64_t> distinct(keys.begin(), keys.end());
  if (weights.size() != keys.size() * static_cast<size_t>(spec.shape[1]) ||
      distinct.size() != keys.size()) {
    return absl::InvalidArgumentError(StrCat("table ", spec.name, " of rows of ", spec.shape[1],
                                             " floats: ", keys.size(), " keys, ", distinct.size(),
                                             " of them distinct, and ", weights.size(), " floats"));
  }
  tables::DynamicTableImage& image = *dynamic_tables_[static_cast<size_t>(variable)];
  const auto slots = model_.optimizers[spec.group]->slots();
  for (size_t k = 0; k < image.slots.size(); ++k) {
    image.slots[k].assign(weights.size(), slots[k].initial_value);
  }
  image.last_steps.assign(keys.size(), 0);
  image.keys = std::move(keys);
  image.weights = std::move(weights);
  return absl::OkStatus();
}

absl::Status Variables::CheckDynamic() const {
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (dynamic_tables_[i] == nullptr) continue;
    const tables::DynamicTableImage& image = *dynamic_tables_[i];
    const size_t rows = image.keys.size(), waiting = image.waiting_keys.size();
    const size_t floats = rows * static_cast<size_t>(specs_[i].shape[1]);
    // Without slots there are no steps either.
    const bool whole = image.slots.empty() && image.last_steps.empty();
    const auto fits = [&](const std::vector<float>& slot) { return slot.size() == floats; };
    if (image.weights.size() == floats && std::ranges::all_of(image.slots, fits) &&
        (whole || image.last_steps.size() == rows) && image.waiting_counts.size() == waiting &&
        image.waiting_last_steps.size() == waiting) {
      continue;
    }
    return absl::DataLossError(StrCat("table ", specs_[i].name, ": the checkpoint has ", rows,
                                      " keys, but other numbers of rows, slots or steps"));
  }
  return absl::OkStatus();
}

uint64_t Variables::parameters() const {
  uint64_t total = 0;
  for (const engine::VariableSpec& spec : specs_) {
    if (spec.kind != engine::VariableKind::kState) total += spec.elements();
  }
  return total;
}

}  // namespace muster::train
