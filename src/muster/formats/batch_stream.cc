#include "muster/formats/batch_stream.h"

#include <zlib.h>

#include <bit>
#include <cstring>
#include <utility>

#include "muster/base/byte_reader.h"
#include "muster/formats/missing.h"

namespace muster::formats {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kStreamMagic = "MUSTRBAT";
constexpr uint32_t kStreamVersion = 1;

uint32_t ZlibCrc(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

struct StreamColumn {
  std::string name;
  ValueType type = ValueType::kInt;
  bool list = false;
  int field = -1;  // index of a field of the schema; -1: the column is skipped
};

absl::StatusOr<std::vector<StreamColumn>> ParseStreamHeader(std::string_view header) {
  const absl::Status broken = absl::DataLossError("the stream's header is broken");
  uint32_t crc = 0, count = 0;
  if (header.size() < 2 * sizeof crc) return broken;
  std::memcpy(&crc, header.data() + header.size() - sizeof crc, sizeof crc);
  header.remove_suffix(sizeof crc);
  if (crc != ZlibCrc(header)) return absl::DataLossError("the stream's header has a wrong CRC");
  ByteReader cursor(header);
  if (!cursor.Read(&count)) return broken;
  std::vector<StreamColumn> columns;
  for (uint32_t i = 0; i < count; ++i) {
    uint8_t type = 0, list = 0;
    uint16_t size = 0;
    std::string_view name;
    if (!cursor.Read(&type) || !cursor.Read(&list) || !cursor.Read(&size) ||
        !cursor.ReadBytes(size, &name) || type > 2 || list > 1) {
      return broken;
    }
    for (const StreamColumn& other : columns) {
      if (other.name == name) {
        return absl::DataLossError(StrCat("the stream has two columns '", name, "'"));
      }
    }
    columns.push_back({std::string(name), static_cast<ValueType>(type), list == 1, -1});
  }
  if (!cursor.done()) return broken;
  return columns;
}

// Matches fields and columns by name.
absl::Status Bind(const Schema& schema, std::vector<StreamColumn>* columns,
                  std::vector<int>* absent) {
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const Field& field = schema.fields[i];
    StreamColumn* found = nullptr;
    for (StreamColumn& column : *columns) {
      if (column.name == field.name) found = &column;
    }
    if (found == nullptr) {
      if (!field.has_default && !field.list) {
        return absl::InvalidArgumentError(
            StrCat("the stream has no column '", field.name, "', and it has no default"));
      }
      absent->push_back(static_cast<int>(i));
      continue;
    }
    const bool widened = found->type == ValueType::kInt && field.type == ValueType::kFloat;
    if (found->type != field.type && !widened) {
      return absl::InvalidArgumentError(
          StrCat("column '", field.name, "' of the stream is ", ValueTypeName(found->type),
                 ", but the model file says ", ValueTypeName(field.type)));
    }
    if (found->list && !field.list) {
      return absl::InvalidArgumentError(
          StrCat("column '", field.name, "' of the stream is a list, but the model file says ",
                 "one value per row (list: true takes lists)"));
    }
    found->field = static_cast<int>(i);
  }
  return absl::OkStatus();
}

class BatchStreamDecoderImpl : public BatchStreamDecoder {
 public:
  BatchStreamDecoderImpl(const Schema& schema, std::vector<StreamColumn> columns,
                         std::vector<int> absent)
      : schema_(schema),
        missing_(GetMissingValues(schema)),
        stream_(std::move(columns)),
        absent_(std::move(absent)) {}

  absl::Status Decode(const FramePrefix& frame, const std::shared_ptr<const std::string>& payload,
                      Columns* columns) override {
    if (ZlibCrc(*payload) != frame.crc) return absl::DataLossError("the batch has a wrong CRC");
    ByteReader cursor(*payload);
    for (const StreamColumn& column : stream_) {
      if (!DecodeColumn(column, frame.rows, &cursor, columns)) {
        return absl::DataLossError(StrCat("column '", column.name, "' does not fit the batch's ",
                                          payload->size(), " bytes"));
      }
    }
    if (!cursor.done()) return absl::DataLossError("the batch has bytes after its last column");
    MUSTER_RETURN_IF_ERROR(ReplaceMissing(static_cast<int>(frame.rows), columns));
    for (const int i : absent_) FillAbsent(i, frame.rows, columns);
    columns->KeepAlive(payload);
    columns->AddRows(static_cast<int>(frame.rows));
    return absl::OkStatus();
  }

 private:
  bool DecodeColumn(const StreamColumn& from, uint32_t rows, ByteReader* cursor,
                    Columns* columns) const {
    const bool list_field = from.field >= 0 && schema_.fields[from.field].list;
    Column* to = from.field < 0 ? nullptr : &columns->mutable_column(from.field);
    uint64_t values = rows;
    if (from.list) {
      std::string_view lengths;
      if (!cursor->ReadBytes(uint64_t{4} * rows, &lengths)) return false;
      values = 0;
      for (uint32_t row = 0; row < rows; ++row) {
        uint32_t length;
        std::memcpy(&length, lengths.data() + size_t{4} * row, sizeof length);
        values += length;
        if (values > kMaxFrameBytes) return false;
        if (list_field) to->offsets.push_back(to->offsets.back() + length);
      }
    } else if (list_field) {
      for (uint32_t row = 0; row < rows; ++row) to->offsets.push_back(to->offsets.back() + 1);
    }
    return DecodeValues(from, values, cursor, to);
  }

  bool DecodeValues(const StreamColumn& from, uint64_t values, ByteReader* cursor,
                    Column* to) const {
    std::string_view bytes;
    switch (from.type) {
      case ValueType::kInt:
        if (!cursor->ReadBytes(8 * values, &bytes)) return false;
        if (to == nullptr) return true;
        if (schema_.fields[from.field].type == ValueType::kFloat) {
          AppendNumbers<int64_t>(bytes, &to->floats);
        } else {
          AppendNumbers<int64_t>(bytes, &to->ints);
        }
        return true;
      case ValueType::kFloat:
        if (!cursor->ReadBytes(4 * values, &bytes)) return false;
        if (to != nullptr) AppendNumbers<float>(bytes, &to->floats);
        return true;
      case ValueType::kString:
        return DecodeStrings(values, cursor, to);
    }
    return false;
  }

  template <typename From, typename To>
  static void AppendNumbers(std::string_view bytes, std::vector<To>* to) {
    const size_t begin = to->size(), count = bytes.size() / sizeof(From);
    to->resize(begin + count);
    for (size_t i = 0; i < count; ++i) {
      From value;
      std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
      (*to)[begin + i] = static_cast<To>(value);
    }
  }

  static bool DecodeStrings(uint64_t values, ByteReader* cursor, Column* to) {
    std::string_view sizes;
    if (!cursor->ReadBytes(4 * values, &sizes)) return false;
    for (uint64_t i = 0; i < values; ++i) {
      uint32_t size;
      std::memcpy(&size, sizes.data() + 4 * i, sizeof size);
      std::string_view text;
      if (!cursor->ReadBytes(size, &text)) return false;
      if (to != nullptr) to->strings.push_back(text);
    }
    return true;
  }

  absl::Status ReplaceMissing(int rows, Columns* columns) const {
    for (const StreamColumn& column : stream_) {
      const int i = column.field;
      if (i < 0) continue;
      MUSTER_RETURN_IF_ERROR(
          missing_[i].ReplaceRows(schema_.fields[i], i, columns->rows(), rows, columns));
    }
    return absl::OkStatus();
  }

  void FillAbsent(int i, uint32_t rows, Columns* columns) const {
    const Field& field = schema_.fields[i];
    Column& column = columns->mutable_column(i);
    for (uint32_t row = 0; row < rows; ++row) {
      if (field.list) {
        column.offsets.push_back(column.offsets.back());
      } else {
        columns->AppendDefault(i, field);
      }
    }
  }

  const Schema schema_;
  const std::vector<MissingValues> missing_;  // by field
  const std::vector<StreamColumn> stream_;
  const std::vector<int> absent_;  // fields without a column
};

}  // namespace

absl::StatusOr<size_t> ParseStreamPrefix(std::string_view prefix) {
  ByteReader cursor(prefix);
  std::string_view magic;
  uint32_t version = 0, bytes = 0;
  if (!cursor.ReadBytes(kStreamMagic.size(), &magic) || magic != kStreamMagic ||
      !cursor.Read(&version) || !cursor.Read(&bytes)) {
    return absl::DataLossError(
        "not a stream of batches, as muster.estimator and muster.keras write them: it does not "
        "begin with MUSTRBAT; rows of other formats are read from files, so write them into one");
  }
  if (version != kStreamVersion) {
    return absl::DataLossError(StrCat("a stream of batches of version ", version,
                                      "; this program reads version ", kStreamVersion));
  }
  if (bytes > kMaxStreamHeaderBytes) {
    return absl::DataLossError(StrCat("the stream's header has ", bytes, " bytes; at most ",
                                      kMaxStreamHeaderBytes, " are read"));
  }
  return bytes;
}

absl::StatusOr<FramePrefix> ParseFramePrefix(std::string_view prefix) {
  ByteReader cursor(prefix);
  FramePrefix frame;
  if (!cursor.Read(&frame.rows) || !cursor.Read(&frame.crc) || !cursor.Read(&frame.bytes)) {
    return absl::DataLossError("the stream is cut before a batch");
  }
  // A row must have at least one byte: rows without bytes would take memory without end.
  if (frame.bytes > kMaxFrameBytes || frame.rows > frame.bytes) {
    return absl::DataLossError(StrCat("a batch of ", frame.rows, " rows in ", frame.bytes,
                                      " bytes: it must be 1 to ", kMaxFrameBytes,
                                      " bytes, and at least one per row"));
  }
  if (frame.rows == 0 && frame.bytes != 0) {
    return absl::DataLossError("the stream's end marker has bytes");
  }
  return frame;
}

absl::StatusOr<Schema> ParseStreamSchema(std::string_view header) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<StreamColumn> columns, ParseStreamHeader(header));
  Schema schema;
  for (const StreamColumn& column : columns) {
    Field field;
    field.name = column.name;
    field.type = column.type;
    field.list = column.list;
    schema.fields.push_back(std::move(field));
  }
  return schema;
}

absl::StatusOr<std::unique_ptr<BatchStreamDecoder>> BatchStreamDecoder::Create(
    std::string_view header, const Schema& schema) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<StreamColumn> columns, ParseStreamHeader(header));
  std::vector<int> absent;
  MUSTER_RETURN_IF_ERROR(Bind(schema, &columns, &absent));
  return std::make_unique<BatchStreamDecoderImpl>(schema, std::move(columns), std::move(absent));
}

}  // namespace muster::formats
