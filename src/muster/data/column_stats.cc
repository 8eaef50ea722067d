#include "muster/data/column_stats.h"

#include <algorithm>

#include "muster/base/strings.h"

namespace muster::data {

ColumnStats::ColumnStats(const formats::Schema& schema)
    : given_(schema), schema_(schema), states_(schema.fields.size()) {
  for (formats::Field& field : schema_.fields) {
    if (!field.list) field.separator = '\0';  // the cell of a scalar is one value
    field.list = true;
    field.has_default = false;
    field.default_value = {};
  }
}

void ColumnStats::AddString(std::string_view value, State* state) {
  const auto found = state->strings.find(ToAbsl(value));
  if (found != state->strings.end()) {
    ++found->second;
  } else if (distinct_ < kMaxDistinct) {
    state->strings.emplace(value, 1);
    ++distinct_;
  } else {
    state->more_distinct = true;
  }
}

void ColumnStats::Add(const formats::Columns& columns) {
  rows_ += columns.rows();
  for (size_t c = 0; c < states_.size(); ++c) {
    const formats::Column& column = columns.column(static_cast<int>(c));
    State& state = states_[c];
    for (int row = 0; row < columns.rows(); ++row) {
      const uint32_t begin = column.offsets[row], end = column.offsets[row + 1];
      state.missing += begin == end;
      state.values += end - begin;
    }
    for (const int64_t value : column.ints) state.numbers.Add(static_cast<double>(value));
    for (const float value : column.floats) state.numbers.Add(value);
    for (const std::string_view value : column.strings) AddString(value, &state);
  }
}

void ColumnStats::FillScalars(const formats::Columns& columns, formats::Columns* out) const {
  // The strings are views into `columns`, which must live as long as *out is used.
  for (int row = 0; row < columns.rows(); ++row) {
    for (size_t c = 0; c < given_.fields.size(); ++c) {
      const formats::Field& field = given_.fields[c];
      const formats::Column& from = columns.column(static_cast<int>(c));
      formats::Column& to = out->mutable_column(static_cast<int>(c));
      const uint32_t begin = from.offsets[row];
      const uint32_t end =
          field.list ? from.offsets[row + 1] : std::min(begin + 1, from.offsets[row + 1]);
      if (!field.list && begin == end && field.has_default) {
        out->AppendDefault(static_cast<int>(c), field);
        continue;
      }
      const auto copy = [&](const auto& values, auto& target, auto none) {
        target.insert(target.end(), values.begin() + begin, values.begin() + end);
        if (!field.list && begin == end) target.push_back(none);
      };
      if (field.type == formats::ValueType::kInt) copy(from.ints, to.ints, int64_t{-1});
      if (field.type == formats::ValueType::kFloat) copy(from.floats, to.floats, -1.0f);
      if (field.type == formats::ValueType::kString) copy(from.strings, to.strings, "");
    }
    out->AddRow();
  }
}

std::vector<ColumnStats::Column> ColumnStats::Summarize(size_t top) const {
  std::vector<Column> columns;
  for (size_t c = 0; c < states_.size(); ++c) {
    const State& state = states_[c];
    const NumberSums& numbers = state.numbers;
    Column& column = columns.emplace_back();
    column.name = schema_.fields[c].name;
    column.type = schema_.fields[c].type;
    column.values = state.values;
    column.missing = state.missing;
    column.min = numbers.min;
    column.max = numbers.max;
    column.mean = numbers.mean;
    column.stddev = numbers.stddev();
    column.distinct = state.strings.size();
    column.more_distinct = state.more_distinct;
    column.top.assign(state.strings.begin(), state.strings.end());
    const size_t kept = std::min(top, column.top.size());
    std::partial_sort(column.top.begin(), column.top.begin() + kept, column.top.end(),
                      [](const auto& a, const auto& b) {
                        return a.second != b.second ? a.second > b.second : a.first < b.first;
                      });
    column.top.resize(kept);
  }
  return columns;
}

}  // namespace muster::data
