#include "muster/train/weights/variables.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"

#include "muster/base/huge_pages.h"
#include "muster/engine/updater.h"
#include "muster/process/memory_limit.h"
#include "muster/tables/dynamic_table_columns.h"

namespace muster::train {
namespace {

// Returns the number of floats of so many whole cache lines as `floats` take.
int64_t WholeLines(int64_t floats) {
  constexpr int64_t kLine = 16;
  return (floats + kLine - 1) / kLine * kLine;
}

bool IsSmall(int64_t floats) {
  return floats > 0 && static_cast<uint64_t>(WholeLines(floats)) * sizeof(float) < kWorthHugePages;
}

}  // namespace

InitialWeights::InitialWeights(const engine::VariableSpec& spec, uint64_t seed, size_t index)
    : spec_(spec), random_(seed, RandomPurpose::kInitialWeights, static_cast<int>(index)) {}

void InitialWeights::Next(std::span<float> piece) {
  using Kind = engine::Initializer::Kind;
  switch (spec_.initializer.kind) {
    case Kind::kConstant:
      std::ranges::fill(piece, static_cast<float>(spec_.initializer.value));
      break;
    case Kind::kGlorotUniform: {
      const double fan_sum = static_cast<double>(spec_.shape.front() + spec_.shape.back());
      const double limit = std::sqrt(6.0 / fan_sum);
      for (float& value : piece) {
        value = static_cast<float>((2.0 * random_.UniformDouble() - 1.0) * limit);
      }
      break;
    }
    case Kind::kTruncatedNormal:
      for (float& value : piece) {
        value = static_cast<float>(random_.TruncatedNormal() * spec_.initializer.value);
      }
      break;
  }
}

std::vector<std::string> GetTensorNames(const model::Model& model,
                                        const engine::VariableSpec& spec) {
  std::vector<std::string> names = {spec.name};
  if (model.applies || spec.kind == engine::VariableKind::kState) return names;
  const std::string_view optimizer = optim::OptimizerName(model.optimizer_specs[spec.group].kind);
  for (const optim::SlotSpec& slot : model.optimizers[spec.group]->slots()) {
    names.push_back(StrCat("training/", optimizer, "/", spec.name, "/", slot.name));
  }
  return names;
}

Variables::Variables(const model::Model& model)
    : model_(model), specs_(model.engine->variables()), dynamic_tables_(specs_.size()) {}

size_t Variables::CountSlots(const engine::VariableSpec& spec) const {
  const bool has_own = !model_.applies && spec.kind != engine::VariableKind::kState;
  return has_own ? model_.optimizers[spec.group]->slots().size() : 0;
}

// Many variables of a few pages each share huge pages if they lie side by side. Where they might
// not fit the free memory, each is allocated alone.
absl::Status Variables::AllocateSmall(bool with_slots, const IsElsewhere& is_elsewhere) {
  int64_t floats = 0;
  for (const engine::VariableSpec& spec : specs_) {
    if (spec.growth || !IsSmall(spec.elements()) || (is_elsewhere && is_elsewhere(spec))) continue;
    const auto buffers = static_cast<int64_t>(1 + (with_slots ? CountSlots(spec) : 0));
    floats += buffers * WholeLines(spec.elements());
  }
  const uint64_t bytes = static_cast<uint64_t>(floats) * sizeof(float);
  const uint64_t free = process::GetFreeMemory();
  if (bytes < kWorthHugePages || bytes > free / 2) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(
      WeightMemory memory,
      AllocateWeights(floats, StrCat(specs_.front().name, " with the other small ones"), free));
  small_ = {buffers_.emplace_back(std::move(memory)).get(), static_cast<size_t>(floats)};
  return absl::OkStatus();
}

absl::StatusOr<float*> Variables::Allocate(int64_t elements, const std::string& name) {
  const auto floats = static_cast<size_t>(WholeLines(elements));
  if (IsSmall(elements) && floats <= small_.size()) {
    float* const data = small_.data();
    small_ = small_.subspan(floats);
    return data;
  }
  const uint64_t free = process::GetFreeMemory(), taken = unwritten_ + small_.size_bytes();
  MUSTER_ASSIGN_OR_RETURN(WeightMemory memory,
                          AllocateWeights(elements, name, free - std::min(free, taken)));
  return buffers_.emplace_back(std::move(memory)).get();
}

absl::StatusOr<std::unique_ptr<Variables>> Variables::Create(const model::Model& model,
                                                             uint64_t seed, bool with_slots) {
  std::unique_ptr<Variables> variables(new Variables(model));
  variables->seed_ = seed;
  MUSTER_RETURN_IF_ERROR(variables->AddAll(with_slots, nullptr));
  return variables;
}

absl::StatusOr<std::unique_ptr<Variables>> Variables::CreateWithout(const IsElsewhere& is_elsewhere,
                                                                    const model::Model& model,
                                                                    uint64_t seed) {
  std::unique_ptr<Variables> variables(new Variables(model));
  variables->seed_ = seed;
  MUSTER_RETURN_IF_ERROR(variables->AddAll(/*with_slots=*/true, is_elsewhere));
  return variables;
}

absl::Status Variables::AddAll(bool with_slots, const IsElsewhere& is_elsewhere) {
  views_.resize(specs_.size());
  slots_.resize(specs_.size());
  loaded_rows_.resize(specs_.size());
  MUSTER_RETURN_IF_ERROR(AllocateSmall(with_slots, is_elsewhere));
  for (size_t i = 0; i < specs_.size(); ++i) {
    const engine::VariableSpec& spec = specs_[i];
    if (spec.growth) {
      views_[i].cols = spec.shape[1];
      dynamic_tables_[i] = std::make_unique<tables::DynamicTableImage>();
      if (!with_slots) {
        loaded_rows_[i].reset(  // NOLINT(modernize-make-unique): an aggregate
            new LoadedRows{.name = spec.name, .view = views_[i], .unwritten = unwritten_});
      } else {
        dynamic_tables_[i]->slots.resize(model_.optimizers[spec.group]->slots().size());
      }
      if (is_elsewhere && is_elsewhere(spec)) elsewhere_.push_back(i);
      continue;
    }
    const int64_t rows = spec.shape.size() > 1 ? spec.shape[0] : 1;
    views_[i] = {nullptr, rows, rows > 0 ? spec.elements() / rows : 0};
    if (is_elsewhere && is_elsewhere(spec)) {
      elsewhere_.push_back(i);
    } else {
      MUSTER_RETURN_IF_ERROR(AllocateVariable(i, with_slots));
    }
  }
  return with_slots && model_.applies ? AllocateUpdaterSlots() : absl::OkStatus();
}

absl::Status Variables::AllocateVariable(size_t variable, bool with_slots) {
  const engine::VariableSpec& spec = specs_[variable];
  MUSTER_ASSIGN_OR_RETURN(views_[variable].data, Allocate(spec.elements(), spec.name));
  const std::span<float> weights(views_[variable].data, static_cast<size_t>(spec.elements()));
  if (!with_slots) {
    unwritten_ += weights.size_bytes();
    return absl::OkStatus();
  }
  InitialWeights(spec, seed_, variable).Next(weights);
  if (CountSlots(spec) == 0) return absl::OkStatus();
  for (const optim::SlotSpec& slot : model_.optimizers[spec.group]->slots()) {
    MUSTER_ASSIGN_OR_RETURN(float* values, Allocate(spec.elements(), spec.name));
    std::fill(values, values + spec.elements(), slot.initial_value);
    slots_[variable].push_back(values);
  }
  return absl::OkStatus();
}

absl::Status Variables::AllocateRest() {
  for (const size_t variable : std::exchange(elsewhere_, {})) {
    if (dynamic_tables_[variable] != nullptr) continue;  // its memory grows
    MUSTER_RETURN_IF_ERROR(AllocateVariable(variable, /*with_slots=*/true));
  }
  return absl::OkStatus();
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
    const size_t bytes = data == nullptr ? 0 : spec.elements() * sizeof(float);
    tensors.push_back({.name = std::move(name),
                       .type = formats::DataType::kFloat,
                       .shape = spec.shape,
                       .bytes = {reinterpret_cast<char*>(data), bytes},
                       .variable = static_cast<int>(variable),
                       .is_elsewhere = data == nullptr});
  };
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (dynamic_tables_[i] != nullptr) {
      AddDynamic(i, with_slots, &tensors);
      continue;
    }
    const std::vector<std::string> names = GetTensorNames(model_, specs_[i]);
    add(names.front(), i, views_[i].data);
    for (size_t k = 1; with_slots && k < names.size(); ++k) {
      add(names[k], i, views_[i].data == nullptr ? nullptr : slots_[i][k - 1]);
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
  using Kind = tables::DynamicTableColumn::Kind;
  const engine::VariableSpec& spec = specs_[variable];
  const int64_t cols = spec.shape[1];
  tables::DynamicTableImage& image = *dynamic_tables_[variable];
  const auto add = [&](const tables::DynamicTableColumn& column, std::span<char> bytes,
                       const auto& resize) {
    auto& tensor = tensors->emplace_back();
    tensor.name = column.name;
    tensor.type = column.cols > 0 ? formats::DataType::kFloat : formats::DataType::kInt64;
    tensor.shape = {static_cast<int64_t>(bytes.size() / column.bytes_of_key())};
    if (column.cols > 0) tensor.shape.push_back(column.cols);
    tensor.bytes = bytes;
    tensor.resize = resize;
    tensor.is_elsewhere = OthersHave(variable);
  };
  const auto add_vector = [&]<class T>(const tables::DynamicTableColumn& column,
                                       std::vector<T>* values) {
    const auto get_bytes = [values] {
      return std::span<char>(reinterpret_cast<char*>(values->data()), values->size() * sizeof(T));
    };
    const auto width = static_cast<size_t>(std::max<int64_t>(column.cols, 1));
    add(column, get_bytes(), [=](int64_t rows) -> absl::StatusOr<std::span<char>> {
      values->resize(static_cast<size_t>(rows) * width);
      return get_bytes();
    });
  };
  const auto columns = with_slots
                           ? tables::GetDynamicTableColumns(GetTensorNames(model_, spec), cols)
                           : tables::GetColumnsForInference(spec.name, cols);
  for (const tables::DynamicTableColumn& column : columns) {
    switch (column.kind) {
      case Kind::kValues:
        if (LoadedRows* const loaded = loaded_rows_[variable].get()) {
          add(column, {}, [loaded](int64_t rows) { return loaded->Resize(rows); });
        } else {
          add_vector(column, column.slot < 0 ? &image.weights
                                             : &image.slots[static_cast<size_t>(column.slot)]);
        }
        break;
      case Kind::kKeys:
        add_vector(column, &image.keys);
        break;
      case Kind::kLastSteps:
        add_vector(column, &image.last_steps);
        break;
      case Kind::kWaitingKeys:
        add_vector(column, &image.waiting_keys);
        break;
      case Kind::kWaitingCounts:
        add_vector(column, &image.waiting_counts);
        break;
      case Kind::kWaitingLastSteps:
        add_vector(column, &image.waiting_last_steps);
        break;
    }
  }
}

uint64_t Variables::LoadedRows::GetFreeMemory(int64_t rows) const {
  constexpr uint64_t kIndexBytes = 48;  // the most for a key and its place in a KeyIndex
  const bool is_first = view.data == nullptr;
  const uint64_t wanted = (is_first ? unwritten : 0) + static_cast<uint64_t>(rows) * kIndexBytes;
  const uint64_t free = process::GetFreeMemory();
  return free - std::min(free, wanted);
}

absl::StatusOr<std::span<char>> Variables::LoadedRows::Resize(int64_t rows) {
  memory.reset();
  view.rows = 0;
  const uint64_t free = GetFreeMemory(rows);
  MUSTER_ASSIGN_OR_RETURN(memory, AllocateWeights((rows + 1) * view.cols, name, free));
  view.data = memory.get();
  view.rows = rows + 1;
  const std::span<float> values(view.data, static_cast<size_t>(rows * view.cols));
  std::fill_n(values.data() + values.size(), view.cols, 0.0f);
  return std::span(reinterpret_cast<char*>(values.data()), values.size_bytes());
}

bool Variables::OthersHave(size_t variable) const {
  return std::ranges::find(elsewhere_, variable) != elsewhere_.end();
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
    const LoadedRows* const loaded = loaded_rows_[i].get();
    const size_t weights = loaded == nullptr ? image.weights.size() : loaded->floats();
    const auto fits = [&](const std::vector<float>& slot) { return slot.size() == floats; };
    if (weights == floats && std::ranges::all_of(image.slots, fits) &&
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
