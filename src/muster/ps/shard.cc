#include "muster/ps/shard.h"

#include <algorithm>
#include <cstring>

namespace muster::ps {

Shard::Shard(std::span<const Variable> variables, const Placement& placement, int server)
    : variables_(variables), placement_(placement), server_(server), memory_(variables.size()) {
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto n = static_cast<size_t>(placement.part(static_cast<int>(i), server).elements());
    Memory& memory = memory_[i];
    memory.weights.resize(n);
    memory.slots.resize(variables[i].slots());
    for (auto& slot : memory.slots) {
      slot.resize(n);
      memory.slot_pointers.push_back(slot.data());
    }
  }
}

absl::Status Shard::CheckSlice(const Slice& slice) const {
  const bool known = slice.variable < variables_.size() && slice.slot >= -1 &&
                     slice.slot < static_cast<int>(variables_[slice.variable].slots());
  const int64_t elements =
      known ? placement_.part(static_cast<int>(slice.variable), server_).elements() : 0;
  if (known && slice.first >= 0 && slice.count >= 0 && slice.first <= elements &&
      slice.count <= elements - slice.first) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(StrCat("variable ", slice.variable, ", slot ", slice.slot, ": ",
                                           slice.count, " elements from ", slice.first,
                                           " on are not on ps-", server_));
}

absl::Status Shard::Load(const Slice& slice) {
  MUSTER_RETURN_IF_ERROR(CheckSlice(slice));
  if (slice.values.size() != static_cast<size_t>(slice.count)) {
    return absl::InvalidArgumentError(
        StrCat(slice.values.size(), " values for ", slice.count, " elements"));
  }
  if (slice.count > 0) {
    std::memcpy(memory_[slice.variable].Of(slice.slot).data() + slice.first, slice.values.data(),
                slice.values.size_bytes());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::span<const float>> Shard::Fetch(const Slice& slice) const {
  MUSTER_RETURN_IF_ERROR(CheckSlice(slice));
  const Memory& memory = memory_[slice.variable];
  const auto& values =
      slice.slot < 0 ? memory.weights : memory.slots[static_cast<size_t>(slice.slot)];
  return std::span(values).subspan(static_cast<size_t>(slice.first),
                                   static_cast<size_t>(slice.count));
}

absl::Status Shard::CheckRows(std::span<const TableRows> tables) const {
  for (const TableRows& table : tables) {
    if (table.variable >= variables_.size() || !variables_[table.variable].is_table()) {
      return absl::InvalidArgumentError(StrCat("variable ", table.variable, " is no table"));
    }
    const int64_t rows = placement_.part(static_cast<int>(table.variable), server_).rows;
    for (const int32_t row : table.rows) {
      if (row >= 0 && row < rows) continue;
      return absl::InvalidArgumentError(StrCat("row ", row, " of ", variables_[table.variable].name,
                                               " on ps-", server_, ", which has ", rows,
                                               " of its rows"));
    }
  }
  return absl::OkStatus();
}

absl::Status Shard::Check(const Gradient& gradient) const {
  MUSTER_RETURN_IF_ERROR(CheckRows(gradient.tables));
  const auto dense = static_cast<size_t>(placement_.dense_floats(server_));
  const bool none = gradient.dense.empty() && gradient.given.empty();
  if (!none && (gradient.dense.size() != dense || gradient.given.size() != variables_.size())) {
    return absl::InvalidArgumentError(StrCat("a gradient of ", gradient.dense.size(),
                                             " dense floats, where ps-", server_, " has ", dense));
  }
  for (const TableRows& table : gradient.tables) {
    const auto cols = static_cast<size_t>(variables_[table.variable].cols);
    if (table.values.size() == table.rows.size() * cols) continue;
    return absl::InvalidArgumentError(StrCat(table.values.size(), " floats for ", table.rows.size(),
                                             " rows of ", variables_[table.variable].name, " of ",
                                             cols));
  }
  return absl::OkStatus();
}

void Shard::Read(std::span<const TableRows> tables, std::vector<float>* dense,
                 std::vector<float>* rows) const {
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i].is_table()) continue;
    dense->insert(dense->end(), memory_[i].weights.begin(), memory_[i].weights.end());
  }
  for (const TableRows& table : tables) {
    const auto cols = static_cast<size_t>(variables_[table.variable].cols);
    const float* const weights = memory_[table.variable].weights.data();
    size_t at = rows->size();
    rows->resize(at + table.rows.size() * cols);
    for (const int32_t row : table.rows) {
      std::memcpy(rows->data() + at, weights + static_cast<size_t>(row) * cols,
                  cols * sizeof(float));
      at += cols;
    }
  }
}

std::span<const float> Shard::Clipped(const Variable& variable, std::span<const float> gradient) {
  if (variable.clip <= 0) return gradient;
  clipped_.assign(gradient.begin(), gradient.end());
  for (float& value : clipped_) value = std::clamp(value, -variable.clip, variable.clip);
  return clipped_;
}

void Shard::Apply(const Gradient& gradient, int64_t step) {
  size_t at = 0;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i].is_table()) continue;
    const size_t n = memory_[i].weights.size();
    if (!gradient.given.empty() && gradient.given[i] != 0 && n > 0) {
      ApplyDense(i, gradient.dense.subspan(at, n), step);
    }
    at += n;
  }
  for (const TableRows& table : gradient.tables) ApplyTable(table.variable, table, step);
}

void Shard::ApplyDense(size_t variable, std::span<const float> gradient, int64_t step) {
  const Variable& spec = variables_[variable];
  Memory& memory = memory_[variable];
  if (spec.kind == Variable::Kind::kDense) {
    spec.optimizer->ApplyDense(memory.weights, memory.slot_pointers, Clipped(spec, gradient), step);
    return;
  }
  // Keras: moving -= (moving - batch) * (1 - momentum).
  const auto decay = static_cast<float>(1.0 - spec.momentum);
  for (size_t i = 0; i < gradient.size(); ++i) {
    memory.weights[i] -= (memory.weights[i] - gradient[i]) * decay;
  }
}

void Shard::ApplyTable(size_t variable, const TableRows& table, int64_t step) {
  const Variable& spec = variables_[variable];
  Memory& memory = memory_[variable];
  if (memory.weights.empty()) return;
  if (table.rows.empty() && !spec.optimizer->moves_untouched_rows()) return;
  optim::StepTable(*spec.optimizer, memory.weights, spec.cols, memory.slot_pointers, table.rows,
                   Clipped(spec, table.values), step);
}

}  // namespace muster::ps
