// MemoryColumns: ColumnChunks in memory, for the tests of column decoders.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "muster/formats/column_decoder_conformance.h"

namespace muster::formats {

// Provides buffers in memory. `sliced`: they are slices of larger ones, and everything that may be
// left out is.
class MemoryColumns : public ColumnFormat {
 public:
  explicit MemoryColumns(bool sliced) : sliced_(sliced) {}
  std::string name() const override { return sliced_ ? "Sliced" : "Plain"; }

  ColumnData Make(const std::vector<TestColumn>& table) const override {
    auto made = std::make_shared<std::vector<Buffers>>();
    ColumnData data;
    data.chunk.rows = table.empty() ? 0 : static_cast<uint32_t>(table[0].rows.size());
    made->reserve(table.size());
    for (const TestColumn& column : table) {
      data.shapes.push_back({column.name, column.type, column.list});
      Buffers& buffers = made->emplace_back();
      if (sliced_) buffers.strings = "before";
      buffers.string_offsets.push_back(static_cast<int32_t>(buffers.strings.size()));
      buffers.list_offsets.push_back(0);
      if (sliced_ && column.list) {
        Append(Value(), column.type, &buffers);
        buffers.list_offsets = {1};
      }
      bool all_valid = true;
      for (const std::vector<Value>& row : column.rows) {
        buffers.validity.push_back(!row.empty());
        all_valid = all_valid && !row.empty();
        for (const Value& value : row) Append(value, column.type, &buffers);
        if (row.empty() && !column.list) Append(Value(), column.type, &buffers);
        buffers.list_offsets.push_back(buffers.count);
      }
      buffers.bits = Bits(buffers.validity);
      buffers.value_bits = Bits(std::vector<bool>(static_cast<size_t>(buffers.count), true));
      if (column.type == BufferType::kBool) buffers.numbers = Bits(buffers.bools);
      ColumnBuffers& view = data.chunk.columns.emplace_back();
      if (sliced_ || !all_valid) view.validity = buffers.bits;
      if (column.list) view.list_offsets = buffers.list_offsets;
      if (sliced_ && column.list) view.value_validity = buffers.value_bits;
      const bool strings = column.type == BufferType::kString;
      view.values = strings ? buffers.strings : buffers.numbers;
      if (strings) view.string_offsets = buffers.string_offsets;
    }
    data.chunk.memory = std::move(made);
    return data;
  }

 private:
  struct Buffers {
    std::vector<bool> validity, bools;
    std::vector<int32_t> list_offsets, string_offsets;
    std::string bits, value_bits, numbers, strings;
    int32_t count = 0;
  };

  static std::string Bits(const std::vector<bool>& values) {
    std::string bits((values.size() + 7) / 8, '\0');
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i]) bits[i / 8] = static_cast<char>(bits[i / 8] | 1 << i % 8);
    }
    return bits;
  }

  template <typename T>
  static void AppendNumber(const Value& value, Buffers* buffers) {
    const T number = std::visit(
        [](const auto& held) {
          if constexpr (std::is_arithmetic_v<std::decay_t<decltype(held)>>) {
            return static_cast<T>(held);
          } else {
            return T{};
          }
        },
        value);
    buffers->numbers.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  static void Append(const Value& value, BufferType type, Buffers* buffers) {
    ++buffers->count;
    switch (type) {
      case BufferType::kBool:
        buffers->bools.push_back(std::get<int64_t>(value) != 0);
        break;
      case BufferType::kInt8:
        return AppendNumber<int8_t>(value, buffers);
      case BufferType::kInt16:
        return AppendNumber<int16_t>(value, buffers);
      case BufferType::kInt32:
        return AppendNumber<int32_t>(value, buffers);
      case BufferType::kInt64:
        return AppendNumber<int64_t>(value, buffers);
      case BufferType::kUint8:
        return AppendNumber<uint8_t>(value, buffers);
      case BufferType::kUint16:
        return AppendNumber<uint16_t>(value, buffers);
      case BufferType::kUint32:
        return AppendNumber<uint32_t>(value, buffers);
      case BufferType::kUint64:
        return AppendNumber<uint64_t>(value, buffers);
      case BufferType::kFloat:
        return AppendNumber<float>(value, buffers);
      case BufferType::kDouble:
        return AppendNumber<double>(value, buffers);
      case BufferType::kString:
        if (const auto* text = std::get_if<std::string>(&value)) buffers->strings += *text;
        buffers->string_offsets.push_back(static_cast<int32_t>(buffers->strings.size()));
    }
  }

  const bool sliced_;
};

}  // namespace muster::formats
