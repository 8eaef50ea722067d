#include "muster/formats/example.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"

#include "muster/base/utf8.h"
#include "muster/formats/example_wire.h"

namespace muster::formats {
namespace {

size_t EncodedVarintBytes(uint64_t value) { return (std::bit_width(value | 1) + 6) / 7; }

char* EncodeVarint(uint64_t value, char* to) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

// Copies a chunk from the beginning and one from the end, which may overlap.
template <typename Chunk>
void CopyEnds(const char* from, size_t size, char* to) {
  Chunk front, back;
  std::memcpy(&front, from, sizeof front);
  std::memcpy(&back, from + size - sizeof back, sizeof back);
  std::memcpy(to, &front, sizeof front);
  std::memcpy(to + size - sizeof back, &back, sizeof back);
}

// Names and values are short: without calls of memcpy a row takes a quarter less time.
char* EncodeBytes(std::string_view bytes, char* to) {
  const size_t size = bytes.size();
  if (size > 16) {
    std::memcpy(to, bytes.data(), size);
  } else if (size >= 8) {
    CopyEnds<uint64_t>(bytes.data(), size, to);
  } else if (size >= 4) {
    CopyEnds<uint32_t>(bytes.data(), size, to);
  } else {
    for (size_t i = 0; i < size; ++i) to[i] = bytes[i];
  }
  return to + size;
}

char* EncodeField(uint32_t field, uint64_t size, char* to) {
  *to++ = static_cast<char>(WireTag(field, WireType::kBytes));
  return EncodeVarint(size, to);
}

size_t EncodedFieldBytes(size_t size) { return 1 + EncodedVarintBytes(size) + size; }

// The values of one row of a column.
struct Cell {
  const Column& column;
  ValueType type;
  size_t begin, end;

  Cell(const Column& of, ValueType of_type, bool list, int row)
      : column(of),
        type(of_type),
        begin(list ? of.offsets[row] : static_cast<size_t>(row)),
        end(list ? of.offsets[row + 1] : begin + 1) {}

  // Returns the number of bytes of the packed numbers or, for strings, which are not packed, of the
  // whole list.
  size_t PayloadBytes() const {
    size_t size = 0;
    switch (type) {
      case ValueType::kInt:
        for (size_t i = begin; i < end; ++i) {
          size += EncodedVarintBytes(static_cast<uint64_t>(column.ints[i]));
        }
        break;
      case ValueType::kFloat:
        size = (end - begin) * sizeof(float);
        break;
      case ValueType::kString:
        for (size_t i = begin; i < end; ++i) size += EncodedFieldBytes(column.strings[i].size());
        break;
    }
    return size;
  }

  // Returns the same for a cell with one value; for a string without tag and length.
  size_t OnePayloadBytes() const {
    switch (type) {
      case ValueType::kInt:
        return EncodedVarintBytes(static_cast<uint64_t>(column.ints[begin]));
      case ValueType::kFloat:
        return sizeof(float);
      case ValueType::kString:
        break;
    }
    return column.strings[begin].size();
  }

  char* EncodeOnePayload(char* to) const {
    switch (type) {
      case ValueType::kInt:
        return EncodeVarint(static_cast<uint64_t>(column.ints[begin]), to);
      case ValueType::kFloat:
        std::memcpy(to, &column.floats[begin], sizeof(float));
        return to + sizeof(float);
      case ValueType::kString:
        break;
    }
    return EncodeBytes(column.strings[begin], to);
  }

  size_t ListBytes(size_t payload) const {
    return type == ValueType::kString || payload == 0 ? payload : EncodedFieldBytes(payload);
  }

  char* EncodeList(size_t payload, char* to) const {
    if (type != ValueType::kString && payload > 0) to = EncodeField(1, payload, to);
    for (size_t i = begin; i < end; ++i) {
      switch (type) {
        case ValueType::kInt:
          to = EncodeVarint(static_cast<uint64_t>(column.ints[i]), to);
          break;
        case ValueType::kFloat:
          std::memcpy(to, &column.floats[i], sizeof(float));
          to += sizeof(float);
          break;
        case ValueType::kString:
          to = EncodeField(1, column.strings[i].size(), to);
          to = EncodeBytes(column.strings[i], to);
          break;
      }
    }
    return to;
  }
};

FeatureKind GetKind(ValueType type) {
  switch (type) {
    case ValueType::kInt:
      return FeatureKind::kInt64;
    case ValueType::kFloat:
      return FeatureKind::kFloat;
    case ValueType::kString:
      break;
  }
  return FeatureKind::kBytes;
}

size_t ShortPayloads(const std::string& key, bool list) {
  constexpr size_t kLengthOfOneByte = 0x80, kFrame = 6;
  const bool fits = key.size() + 8 <= 32 && !list;
  return fits ? kLengthOfOneByte - kFrame - key.size() : 0;
}

// Returns the head of an entry, with lengths of 0.
std::array<char, 32> MakeHead(const std::string& key, ValueType type) {
  std::array<char, 32> head = {};
  if (key.size() + 8 > head.size()) return head;
  head[0] = static_cast<char>(kFirstFieldBytes);
  std::memcpy(&head[2], key.data(), key.size());
  head[key.size() + 2] = static_cast<char>(kSecondFieldBytes);
  head[key.size() + 4] =
      static_cast<char>(WireTag(static_cast<uint32_t>(GetKind(type)), WireType::kBytes));
  head[key.size() + 6] = static_cast<char>(kFirstFieldBytes);
  return head;
}

// Returns the shortest text that reads back as the same float.
std::string FloatText(float value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

FeatureText DescribeValues(std::string_view name, const FeatureValues& values) {
  FeatureText text;
  text.name = name;
  text.kind = FeatureKindName(values.kind);
  text.values.reserve(values.size());
  for (const std::string_view value : values.bytes) {
    text.values.push_back(IsUtf8(value) ? std::string(value) : absl::CHexEscape(ToAbsl(value)));
  }
  for (const float value : values.floats) text.values.push_back(FloatText(value));
  for (const int64_t value : values.ints) text.values.push_back(StrCat(value));
  return text;
}

}  // namespace

ExampleEncoder::ExampleEncoder(const Schema& schema) {
  for (const Field& field : schema.fields) {
    std::string key(1, static_cast<char>(kFirstFieldBytes));
    char size[10];
    key.append(size, EncodeVarint(field.name.size(), size));
    key += field.name;
    const int index = static_cast<int>(parts_.size());
    parts_.push_back({index, key, MakeHead(key, field.type), ShortPayloads(key, field.list),
                      field.type, field.list});
  }
  std::sort(parts_.begin(), parts_.end(), [&schema](const Part& a, const Part& b) {
    return schema.fields[a.field].name < schema.fields[b.field].name;
  });
}

// The entry of one value whose lengths all fit in a byte is
//   0A E | key | 12 F | kind L | 0A P | P bytes of payload
// where the lengths are L = P + 2, F = P + 4, E = key + P + 6. Only the lengths and the payload
// differ from row to row.
size_t ExampleEncoder::EntryBytes(const Part& part, const Columns& columns, int row) {
  const Cell cell(columns.column(part.field), part.type, part.list, row);
  if (part.short_payloads > 0) {
    const size_t payload = cell.OnePayloadBytes();
    if (payload < part.short_payloads) return part.key.size() + payload + 8;
  }
  const size_t feature = EncodedFieldBytes(cell.ListBytes(cell.PayloadBytes()));
  return EncodedFieldBytes(part.key.size() + EncodedFieldBytes(feature));
}

// May write past the entry, up to the size of a head.
char* ExampleEncoder::EncodeEntry(const Part& part, const Columns& columns, int row, char* to) {
  const Cell cell(columns.column(part.field), part.type, part.list, row);
  const size_t key = part.key.size();
  const size_t one = part.short_payloads > 0 ? cell.OnePayloadBytes() : 0;
  if (one < part.short_payloads) {
    std::memcpy(to, part.head.data(), part.head.size());
    to[1] = static_cast<char>(key + one + 6);
    to[key + 3] = static_cast<char>(one + 4);
    to[key + 5] = static_cast<char>(one + 2);
    to[key + 7] = static_cast<char>(one);
    return cell.EncodeOnePayload(to + key + 8);
  }
  const size_t payload = cell.PayloadBytes();
  const size_t list = cell.ListBytes(payload);
  const size_t feature = EncodedFieldBytes(list);
  to = EncodeField(1, key + EncodedFieldBytes(feature), to);
  to = EncodeBytes(part.key, to);
  to = EncodeField(2, feature, to);
  to = EncodeField(static_cast<uint32_t>(GetKind(cell.type)), list, to);
  return cell.EncodeList(payload, to);
}

void ExampleEncoder::Encode(const Columns& columns, int row, std::string* record) const {
  size_t features = 0;
  for (const Part& part : parts_) features += EntryBytes(part, columns, row);
  const size_t size = EncodedFieldBytes(features);
  record->resize(size + sizeof(Part::head));  // EncodeEntry may write this much more
  char* to = EncodeField(1, features, record->data());
  for (const Part& part : parts_) to = EncodeEntry(part, columns, row, to);
  record->resize(size);
}

absl::StatusOr<std::vector<FeatureText>> DescribeExample(std::string_view record) {
  std::vector<FeatureText> features;
  absl::flat_hash_map<std::string, size_t> places;
  FeatureValues values;
  const bool sound = ForEachEntry(record, [&](std::string_view entry) {
    std::string_view name;
    if (!ParseEntryName(entry, &name) || !ParseEntryValues(entry, &values)) return false;
    const auto [place, is_new] = places.try_emplace(std::string(name), features.size());
    if (is_new) features.emplace_back();
    features[place->second] = DescribeValues(name, values);
    return true;
  });
  if (!sound) {
    return absl::DataLossError(
        StrCat("not a tf.Example: the ", record.size(), " bytes of the record do not parse"));
  }
  return features;
}

}  // namespace muster::formats
