#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "muster/base/same_bytes.h"
#include "muster/formats/dates.h"
#include "muster/formats/example.h"
#include "muster/formats/example_wire.h"
#include "muster/formats/missing.h"
#include "muster/formats/value_errors.h"

namespace muster::formats {
namespace {

// The names of features that the schema does not have are remembered too, up to this many.
constexpr size_t kMaxIgnoredNames = 1000;
constexpr int kIgnored = -1;

// Shows the first value with its kind.
std::string ShowFirst(const FeatureValues& values) {
  switch (values.kind) {
    case FeatureKind::kBytes:
      return ShowValue(values.bytes.front());
    case FeatureKind::kFloat:
      return ShowValue(values.floats.front());
    case FeatureKind::kInt64:
      return ShowValue(values.ints.front());
    case FeatureKind::kNone:
      break;
  }
  return "no value";
}

// The beginning of a map entry as every known writer writes it: the key field and the value's tag.
class EntryPrefix {
 public:
  EntryPrefix() = default;  // matches nothing
  explicit EntryPrefix(std::string_view name) {
    if (name.size() > kMaxName) return;
    bytes_ = StrCat("\x0a", std::string(1, static_cast<char>(name.size())), name, "\x12");
    const size_t size = std::min(bytes_.size(), sizeof word_);
    std::memcpy(&word_, bytes_.data(), size);
    mask_ = size == sizeof word_ ? ~uint64_t{0} : (uint64_t{1} << 8 * size) - 1;
  }

  // Whether [entry, end) begins with a map entry (including its tag) with one-byte lengths that has
  // this name, then a value, and nothing more. *value is the Feature message.
  bool Match(const char* entry, const char* end, std::string_view* value) const {
    constexpr ptrdiff_t kLeast = 2 + sizeof word_;
    if (end - entry < kLeast || entry[0] != '\x0a') return false;
    const auto entry_size = static_cast<uint8_t>(entry[1]);
    const size_t prefix_size = bytes_.size();
    uint64_t word;
    std::memcpy(&word, entry + 2, sizeof word);
    if (((word ^ word_) & mask_) != 0 || prefix_size == 0) return false;
    if (entry_size >= 0x80 || entry_size > end - entry - 2 || entry_size <= prefix_size) {
      return false;
    }
    if (prefix_size > sizeof word && !SameBytes(entry + 2, bytes_.data(), prefix_size))
      return false;
    const char* size = entry + 2 + prefix_size;
    if (static_cast<uint8_t>(*size) != entry_size - prefix_size - 1) return false;
    *value = {size + 1, entry_size - prefix_size - 1};
    return true;
  }

 private:
  static constexpr size_t kMaxName = 100;
  std::string bytes_;
  uint64_t word_ = 0, mask_ = 0;  // the first eight bytes
};

// Matches a Feature of one short value as TensorFlow writes it: kind, list length, packed.
bool MatchOneString(std::string_view feature, std::string_view* value) {
  const size_t size = feature.size();
  if (size < 4 || feature[0] != '\x0a' || static_cast<uint8_t>(feature[1]) != size - 2 ||
      feature[2] != '\x0a' || static_cast<uint8_t>(feature[3]) != size - 4) {
    return false;
  }
  *value = {feature.data() + 4, size - 4};
  return true;
}

bool MatchOneFloat(std::string_view feature, float* value) {
  constexpr char kStart[] = {'\x12', 6, '\x0a', 4};
  if (feature.size() != 8 || std::memcmp(feature.data(), kStart, 4) != 0) return false;
  std::memcpy(value, feature.data() + 4, 4);
  return true;
}

bool MatchOneInt(std::string_view feature, int64_t* value) {
  const size_t size = feature.size();
  if (size < 5 || feature[0] != '\x1a' || static_cast<uint8_t>(feature[1]) != size - 2 ||
      feature[2] != '\x0a' || static_cast<uint8_t>(feature[3]) != size - 4) {
    return false;
  }
  WireReader reader(feature.substr(4));
  uint64_t bits;
  if (!reader.ReadVarint(&bits) || !reader.done()) return false;
  *value = static_cast<int64_t>(bits);
  return true;
}

class ExampleDecoder : public RowDecoder {
 public:
  explicit ExampleDecoder(const Schema& schema)
      : fields_(schema.fields), missing_(GetMissingValues(schema)), last_row_(fields_.size(), 0) {
    names_.emplace_back();  // stands for the beginning, before the first feature
    for (size_t i = 0; i < fields_.size(); ++i) {
      Remember(fields_[i].name, static_cast<int>(i));
      if (!fields_[i].list) ++scalars_;
    }
  }

  absl::Status Decode(std::string_view record, Columns* columns) override {
    ++row_;
    filled_ = 0;
    absl::Status status = DecodeRow(record, columns);
    if (status.ok()) [[likely]] {
      columns->AddRow();
    } else {
      columns->DropPartialRow();
    }
    return status;
  }

 private:
  // The name of a feature that was read before, and the name that followed it last time.
  struct Name {
    Name() = default;
    Name(std::string_view text, int schema_field) : name(text), prefix(text), field(schema_field) {}
    std::string name;
    EntryPrefix prefix;
    int field = kIgnored;  // index in the schema
    int successor = 0;
  };

  int Remember(std::string_view name, int field) {
    const int known = static_cast<int>(names_.size());
    names_.emplace_back(name, field);
    by_name_.emplace(name, known);
    return known;
  }

  absl::Status DecodeRow(std::string_view record, Columns* columns) {
    int previous = 0;
    WireReader example(record);
    while (!example.done()) {
      const char* const begin = example.position();
      uint32_t tag;
      if (!example.ReadTag(&tag)) return Broken(record, begin);
      if (tag != kFirstFieldBytes) {
        if (!example.Skip(tag)) return Broken(record, begin);
        continue;
      }
      std::string_view features;
      if (!example.ReadBytes(&features)) return Broken(record, begin);
      MUSTER_RETURN_IF_ERROR(DecodeFeatures(record, features, &previous, columns));
    }
    return filled_ == scalars_ ? absl::OkStatus() : FillDefaults(columns);
  }

  absl::Status DecodeFeatures(std::string_view record, std::string_view features, int* previous,
                              Columns* columns) {
    const char* next = features.data();
    const char* const end = next + features.size();
    while (next != end) {
      const Name& expected = names_[names_[*previous].successor];
      std::string_view value;
      if (expected.prefix.Match(next, end, &value) && DecodeOne(expected.field, value, columns)) {
        *previous = names_[*previous].successor;
        next = value.data() + value.size();
        continue;
      }
      WireReader reader({next, static_cast<size_t>(end - next)});
      uint32_t tag;
      std::string_view entry;
      if (!reader.ReadTag(&tag)) return Broken(record, next);
      if (tag != kFirstFieldBytes) {
        if (!reader.Skip(tag)) return Broken(record, next);
      } else {
        std::string_view name;
        if (!reader.ReadBytes(&entry) || !ParseEntryName(entry, &name)) return Broken(record, next);
        const int field = Find(name, previous);
        if (field != kIgnored) {
          if (!ParseEntryValues(entry, &values_)) return Broken(record, next);
          MUSTER_RETURN_IF_ERROR(DecodeAll(field, columns));
        }
      }
      next = reader.position();
    }
    return absl::OkStatus();
  }

  // Returns the field of a name, and records that the name followed *previous.
  int Find(std::string_view name, int* previous) {
    int known = names_[*previous].successor;
    if (known == 0 || names_[known].name != name) {
      const auto found = by_name_.find(ToAbsl(name));
      if (found != by_name_.end()) {
        known = found->second;
      } else if (names_.size() < fields_.size() + kMaxIgnoredNames) {
        known = Remember(name, kIgnored);
      } else {
        return kIgnored;
      }
      names_[*previous].successor = known;
    }
    *previous = known;
    return names_[known].field;
  }

  // Decodes a scalar's value in the usual form; returns false to leave other forms to DecodeAll.
  bool DecodeOne(int field, std::string_view feature, Columns* columns) {
    if (field == kIgnored) return true;
    if (fields_[field].list || last_row_[field] == row_) return false;
    Column& column = columns->mutable_column(field);
    switch (fields_[field].type) {
      case ValueType::kString: {
        std::string_view value;
        if (!MatchOneString(feature, &value)) return false;
        if (missing_[field].Has(value)) return true;
        column.strings.push_back(value);
        break;
      }
      case ValueType::kFloat: {
        float value;
        if (!MatchOneFloat(feature, &value)) return false;
        if (missing_[field].Has(value)) return true;
        column.floats.push_back(value);
        break;
      }
      case ValueType::kInt: {
        int64_t value;
        if (!MatchOneInt(feature, &value)) return false;
        if (missing_[field].Has(value)) return true;
        column.ints.push_back(value);
        break;
      }
    }
    last_row_[field] = row_;
    ++filled_;
    return true;
  }

  // Decodes values_ for a field; replaces an earlier feature of the same name in this record.
  absl::Status DecodeAll(int field_index, Columns* columns) {
    const Field& field = fields_[field_index];
    Column& column = columns->mutable_column(field_index);
    if (last_row_[field_index] == row_) {
      Forget(field, columns->rows(), &column);
      last_row_[field_index] = 0;
      if (!field.list) --filled_;
    }
    if (values_.size() == 0 || IsMissingDate(field_index)) return absl::OkStatus();
    if (!field.list && values_.size() != 1) {
      return ManyValuesError(field, values_.size(), ShowFirst(values_));
    }
    MUSTER_RETURN_IF_ERROR(Append(field, &column));
    const size_t begin = field.list ? column.offsets.back() : static_cast<size_t>(columns->rows());
    if (missing_[field_index].RemoveOnly(begin, &column)) return absl::OkStatus();
    last_row_[field_index] = row_;
    if (!field.list) ++filled_;
    return absl::OkStatus();
  }

  static void Forget(const Field& field, int rows, Column* column) {
    const size_t keep = field.list ? column->offsets.back() : static_cast<size_t>(rows);
    if (field.type == ValueType::kInt) column->ints.resize(keep);
    if (field.type == ValueType::kFloat) column->floats.resize(keep);
    if (field.type == ValueType::kString) column->strings.resize(keep);
  }

  absl::Status Append(const Field& field, Column* column) {
    const auto append = [](const auto& values, auto* to) {
      to->insert(to->end(), values.begin(), values.end());
      return absl::OkStatus();
    };
    if (field.type == ValueType::kString && values_.kind == FeatureKind::kBytes) {
      return append(values_.bytes, &column->strings);
    }
    if (field.type == ValueType::kInt && values_.kind == FeatureKind::kInt64) {
      return append(values_.ints, &column->ints);
    }
    if (field.type == ValueType::kFloat && values_.kind == FeatureKind::kFloat) {
      return append(values_.floats, &column->floats);
    }
    if (field.type == ValueType::kFloat && values_.kind == FeatureKind::kInt64) {
      for (const int64_t value : values_.ints) column->floats.push_back(static_cast<float>(value));
      return absl::OkStatus();
    }
    if (field.type == ValueType::kInt && values_.kind == FeatureKind::kFloat && field.truncate) {
      return AppendTruncated(field, column);
    }
    if (field.date && values_.kind == FeatureKind::kBytes) return AppendDates(field, column);
    return ColumnError(field, StrCat("the record has ", ShowFirst(values_),
                                     ", but the schema says ", ValueTypeName(field.type)));
  }

  // Whether a word stands in place of a date: date fields may hold text.
  bool IsMissingDate(int field_index) const {
    if (!fields_[field_index].date || values_.kind != FeatureKind::kBytes) return false;
    const auto& texts = values_.bytes;
    return texts.size() == 1 && (texts[0].empty() || missing_[field_index].Has(texts[0]));
  }

  absl::Status AppendDates(const Field& field, Column* column) {
    for (const std::string_view text : values_.bytes) {
      const std::optional<int64_t> seconds = ParseDateCell(text, field.date_order);
      if (!seconds) {
        return ColumnError(field, StrCat("the record has ", ShowFirst(values_),
                                         ", which is not a date or an int"));
      }
      column->ints.push_back(*seconds);
    }
    return absl::OkStatus();
  }

  absl::Status AppendTruncated(const Field& field, Column* column) {
    constexpr float kLimit = 9223372036854775808.0f;  // 2^63
    for (const float value : values_.floats) {
      if (!(value >= -kLimit && value < kLimit)) {
        return DoesNotFitError(field, ShowValue(value));
      }
      column->ints.push_back(static_cast<int64_t>(value));
    }
    return absl::OkStatus();
  }

  absl::Status FillDefaults(Columns* columns) {
    for (size_t i = 0; i < fields_.size(); ++i) {
      const Field& field = fields_[i];
      if (field.list || last_row_[i] == row_) continue;
      if (!field.has_default) {
        return NoValueError(field);
      }
      columns->AppendDefault(static_cast<int>(i), field);
    }
    return absl::OkStatus();
  }

  static absl::Status Broken(std::string_view record, const char* at) {
    return absl::DataLossError(StrCat("not a tf.Example: the field that begins at byte ",
                                      at - record.data(), " of the ", record.size(),
                                      " bytes of the record is broken"));
  }

  std::vector<Field> fields_;
  std::vector<MissingValues> missing_;  // by field
  int scalars_ = 0;
  std::vector<Name> names_;
  absl::flat_hash_map<std::string, int> by_name_;  // index in names_
  FeatureValues values_;                           // scratch
  // row_ is the row being decoded, counted from 1. By field: the row for which it last had a value.
  // Then the number of scalar fields of the row that have one.
  uint64_t row_ = 0;
  std::vector<uint64_t> last_row_;
  int filled_ = 0;
};

}  // namespace

std::unique_ptr<RowDecoder> NewExampleDecoder(const Schema& schema) {
  return std::make_unique<ExampleDecoder>(schema);
}

}  // namespace muster::formats
