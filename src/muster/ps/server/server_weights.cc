#include "muster/ps/server/server_weights.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>

#include "muster/base/huge_pages.h"
#include "muster/math/rows.h"
#include "muster/math/vector.h"

namespace muster::ps {

namespace {

// Less work takes about as long as waking a thread does.
constexpr size_t kFloatsWorthAThread = size_t{32} << 10;
// Dense variables are divided at these, so that vector instructions begin where they would.
constexpr size_t kDenseGrain = 1024;

}  // namespace

ServerWeights::ServerWeights(std::span<const Variable> variables, const Placement& placement,
                             int server, int threads)
    : variables_(variables),
      placement_(placement),
      server_(server),
      memory_(variables.size()),
      crew_(threads) {
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto n = static_cast<size_t>(placement.part(static_cast<int>(i), server).elements());
    Memory& memory = memory_[i];
    if (variables[i].grows()) {
      memory.dynamic_table = std::make_unique<tables::DynamicTable>(
          variables[i].dynamic_table_spec(), placement.servers());
      continue;
    }
    MakeZeros(n, &memory.weights);
    memory.slots.resize(variables[i].slots());
    for (auto& slot : memory.slots) {
      MakeZeros(n, &slot);
      memory.slot_pointers.push_back(slot.data());
    }
  }
}

template <class Run>
void ServerWeights::Divide(size_t count, size_t floats, size_t grain, const Run& run) const {
  const auto members = static_cast<size_t>(crew_.size());
  if (members == 1 || floats < members * kFloatsWorthAThread) return run(size_t{0}, count);
  const size_t grains = (count + grain - 1) / grain;
  crew_.Run([&](int member) {
    const auto m = static_cast<size_t>(member);
    const size_t first = grains * m / members * grain;
    const size_t last = std::min(count, grains * (m + 1) / members * grain);
    if (first < last) run(first, last);
  });
}

absl::Status ServerWeights::CheckSlice(const Slice& slice) const {
  const bool known = slice.variable < variables_.size() && slice.slot >= -1 &&
                     slice.slot < static_cast<int>(variables_[slice.variable].slots());
  const int64_t elements = known ? std::ssize(memory_[slice.variable].Of(slice.slot)) : 0;
  if (known && slice.first >= 0 && slice.count >= 0 && slice.first <= elements &&
      slice.count <= elements - slice.first) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(StrCat("variable ", slice.variable, ", slot ", slice.slot,
                                           ": ps-", server_, " does not have ", slice.count,
                                           " elements from ", slice.first));
}

absl::Status ServerWeights::Load(const Slice& slice) {
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

absl::StatusOr<std::span<const float>> ServerWeights::Fetch(const Slice& slice) const {
  MUSTER_RETURN_IF_ERROR(CheckSlice(slice));
  return memory_[slice.variable]
      .Of(slice.slot)
      .subspan(static_cast<size_t>(slice.first), static_cast<size_t>(slice.count));
}

void ServerWeights::ClearKeys() {
  for (Memory& memory : memory_) {
    if (memory.dynamic_table) memory.dynamic_table->Clear();
  }
}

absl::StatusOr<tables::DynamicTable*> ServerWeights::Dynamic(uint32_t variable) const {
  if (variable < variables_.size() && variables_[variable].grows()) {
    return memory_[variable].dynamic_table.get();
  }
  return absl::InvalidArgumentError(StrCat("variable ", variable, " is not a table that grows"));
}

absl::Status ServerWeights::LoadKeys(const KeySlice& slice) {
  MUSTER_ASSIGN_OR_RETURN(tables::DynamicTable* const table, Dynamic(slice.variable));
  MUSTER_RETURN_IF_ERROR(CheckKeys({.variable = slice.variable, .keys = slice.keys}));
  return table->Add({.keys = slice.keys,
                     .counts = slice.counts,
                     .last_steps = slice.last_steps,
                     .values = {slice.values.begin(), slice.values.end()}});
}

absl::StatusOr<tables::DynamicTableEntries> ServerWeights::FetchKeys(const KeySlice& slice) const {
  MUSTER_ASSIGN_OR_RETURN(const tables::DynamicTable* const table, Dynamic(slice.variable));
  if (slice.first < 0 || slice.first > table->size() || slice.count < 1) {
    return absl::InvalidArgumentError(StrCat("table ", variables_[slice.variable].name, ": ",
                                             slice.count, " keys from ", slice.first, ", of ",
                                             table->size(), " in all"));
  }
  return table->Entries(slice.first, slice.count);
}

absl::Status ServerWeights::CheckKeys(const TableRows& table) const {
  const Variable& variable = variables_[table.variable];
  for (const int64_t key : table.keys) {
    if (placement_.GetServerOfKey(key) == server_) continue;
    return absl::InvalidArgumentError(StrCat("key ", key, " of ", variable.name, " is on ps-",
                                             placement_.GetServerOfKey(key), ", not on ps-",
                                             server_));
  }
  if (table.rows.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("rows of ", variable.name, " without keys, by which this table grows"));
}

absl::Status ServerWeights::CheckRows(std::span<const TableRows> tables) const {
  for (const TableRows& table : tables) {
    if (table.variable >= variables_.size() || !variables_[table.variable].is_table()) {
      return absl::InvalidArgumentError(StrCat("variable ", table.variable, " is not a table"));
    }
    if (variables_[table.variable].grows()) {
      MUSTER_RETURN_IF_ERROR(CheckKeys(table));
      continue;
    }
    if (!table.keys.empty()) {
      return absl::InvalidArgumentError(
          StrCat("keys of ", variables_[table.variable].name, ", a table of a fixed size"));
    }
    const int64_t rows = placement_.part(static_cast<int>(table.variable), server_).rows;
    if (const std::optional<int32_t> row = math::RowOutside(table.rows, rows)) {
      return absl::InvalidArgumentError(StrCat("row ", *row, " of ",
                                               variables_[table.variable].name, " on ps-", server_,
                                               ", which has ", rows, " of its rows"));
    }
  }
  return absl::OkStatus();
}

absl::Status ServerWeights::Check(const Gradient& gradient) const {
  MUSTER_RETURN_IF_ERROR(CheckRows(gradient.tables));
  const auto dense = static_cast<size_t>(placement_.dense_floats(server_));
  const bool none = gradient.dense.empty() && gradient.given.empty();
  if (!none && (gradient.dense.size() != dense || gradient.given.size() != variables_.size())) {
    return absl::InvalidArgumentError(StrCat("a gradient of ", gradient.dense.size(),
                                             " dense floats, but ps-", server_, " has ", dense));
  }
  for (const TableRows& table : gradient.tables) {
    const auto cols = static_cast<size_t>(variables_[table.variable].gradient_cols());
    const size_t rows = table.rows.size() + table.keys.size();
    if (table.values.size() == rows * cols) continue;
    return absl::InvalidArgumentError(StrCat(table.values.size(), " floats for ", rows, " rows of ",
                                             variables_[table.variable].name, ", which have ", cols,
                                             " each"));
  }
  return absl::OkStatus();
}

void ServerWeights::Read(std::span<const TableRows> tables, std::vector<float>* dense,
                         std::vector<float>* rows) const {
  dense->clear();
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i].is_table()) continue;
    dense->insert(dense->end(), memory_[i].weights.begin(), memory_[i].weights.end());
  }
  const auto get_floats = [this](const TableRows& table) {
    return (table.rows.size() + table.keys.size()) *
           static_cast<size_t>(variables_[table.variable].cols);
  };
  // Memory of the last request is not filled with zeros first.
  rows->resize(
      std::transform_reduce(tables.begin(), tables.end(), size_t{0}, std::plus(), get_floats));
  float* to = rows->data();
  for (const TableRows& table : tables) {
    const auto cols = static_cast<size_t>(variables_[table.variable].cols);
    const float* const weights = memory_[table.variable].weights.data();
    if (memory_[table.variable].dynamic_table) {
      memory_[table.variable].dynamic_table->Read(table.keys, to);
    }
    Divide(table.rows.size(), table.rows.size() * cols, 1, [&](size_t first, size_t last) {
      math::GatherRows(weights, cols, table.rows.data() + first, last - first, to + first * cols,
                       static_cast<int64_t>(cols));
    });
    to += get_floats(table);
  }
}

std::span<const float> ServerWeights::Clipped(const Variable& variable,
                                              std::span<const float> gradient) {
  if (variable.clip <= 0) return gradient;
  clipped_.assign(gradient.begin(), gradient.end());
  for (float& value : clipped_) value = std::clamp(value, -variable.clip, variable.clip);
  return clipped_;
}

std::span<const float> ServerWeights::Scaled(float scale, optim::RowLayout layout,
                                             std::span<const float> gradient) {
  if (scale == 1) return gradient;
  scaled_.assign(gradient.begin(), gradient.end());
  optim::ScaleEntries(scale, layout, scaled_);
  return scaled_;
}

template <class Visit>
void ServerWeights::ForEachDense(const Gradient& gradient, Visit visit) const {
  size_t at = 0;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i].is_table()) continue;
    const size_t n = memory_[i].weights.size();
    if (!gradient.given.empty() && gradient.given[i] != 0 && n > 0) {
      visit(i, gradient.dense.subspan(at, n));
    }
    at += n;
  }
}

std::vector<double> ServerWeights::Squares(const Gradient& gradient) const {
  std::vector<double> squares(variables_.size());
  ForEachDense(gradient, [&](size_t i, std::span<const float> values) {
    if (variables_[i].kind == Variable::Kind::kState) return;
    squares[i] = math::SumOfSquares(values.data(), values.size());
  });
  for (const TableRows& table : gradient.tables) {
    squares[table.variable] +=
        optim::SumOfSquaredEntries(variables_[table.variable].gradient_layout(), table.values);
  }
  return squares;
}

void ServerWeights::Apply(const Gradient& gradient, int64_t step, std::span<const float> scales) {
  const auto scale = [&](size_t i) { return scales.empty() ? 1 : scales[i]; };
  ForEachDense(gradient, [&](size_t i, std::span<const float> values) {
    ApplyDense(i, Scaled(scale(i), variables_[i].gradient_layout(), values), step);
  });
  for (TableRows table : gradient.tables) {
    table.values =
        Scaled(scale(table.variable), variables_[table.variable].gradient_layout(), table.values);
    ApplyTable(table.variable, table, step);
  }
}

void ServerWeights::ApplyDense(size_t variable, std::span<const float> gradient, int64_t step) {
  const Variable& spec = variables_[variable];
  Memory& memory = memory_[variable];
  if (spec.kind == Variable::Kind::kDense) {
    const std::span<const float> clipped = Clipped(spec, gradient);
    const std::span<float> weights = memory.weights;
    Divide(weights.size(), weights.size(), kDenseGrain, [&](size_t first, size_t last) {
      std::vector<float*> slots = memory.slot_pointers;
      for (float*& slot : slots) slot += first;
      spec.optimizer->ApplyDense(weights.subspan(first, last - first), slots,
                                 clipped.subspan(first, last - first), step);
    });
    return;
  }
  // As in Keras: moving -= (moving - batch) * (1 - momentum).
  const auto decay = static_cast<float>(1.0 - spec.momentum);
  for (size_t i = 0; i < gradient.size(); ++i) {
    memory.weights[i] -= (memory.weights[i] - gradient[i]) * decay;
  }
}

void ServerWeights::ApplyTable(size_t variable, const TableRows& table, int64_t step) {
  const Variable& spec = variables_[variable];
  Memory& memory = memory_[variable];
  if (memory.dynamic_table)
    return memory.dynamic_table->Apply(table.keys, Clipped(spec, table.values), step);
  if (memory.weights.empty()) return;
  const std::span<float> weights = memory.weights;
  if (spec.optimizer->moves_untouched_rows()) {
    const size_t rows = weights.size() / static_cast<size_t>(spec.cols);
    optim::TouchedRows touched;
    touched.Assign(static_cast<int64_t>(rows), table.rows);
    Divide(rows, weights.size(), 1, [&](size_t first, size_t last) {
      spec.optimizer->Walk(weights, spec.cols, memory.slot_pointers, static_cast<int64_t>(first),
                           static_cast<int64_t>(last), touched, step);
    });
  }
  const std::span<const float> clipped = Clipped(spec, table.values);
  const auto width = static_cast<size_t>(spec.gradient_cols());
  Divide(table.rows.size(), table.rows.size() * width, 1, [&](size_t first, size_t last) {
    spec.optimizer->ApplyRows(weights, spec.cols, memory.slot_pointers,
                              table.rows.subspan(first, last - first),
                              clipped.subspan(first * width, (last - first) * width), step);
  });
}

}  // namespace muster::ps
