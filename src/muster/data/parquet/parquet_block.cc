#include "muster/data/parquet/parquet_block.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

#include "muster/base/strings.h"

namespace muster::data {
namespace {

using formats::Json;
using formats::JsonFields;
using Kind = ParquetColumn::Kind;

constexpr const char* kWhere = "an answer of muster-parquet";
constexpr int64_t kMaxValues = std::numeric_limits<int32_t>::max();
constexpr uint64_t kAlignment = 8;

struct KindName {
  std::string_view name;
  Kind kind;
  uint64_t width;  // bytes of a value
};
constexpr std::array kKinds = {
    KindName{"i8", Kind::kI8, 1},   KindName{"i16", Kind::kI16, 2},
    KindName{"i32", Kind::kI32, 4}, KindName{"i64", Kind::kI64, 8},
    KindName{"u8", Kind::kU8, 1},   KindName{"u16", Kind::kU16, 2},
    KindName{"u32", Kind::kU32, 4}, KindName{"f32", Kind::kF32, 4},
    KindName{"f64", Kind::kF64, 8}, KindName{"text", Kind::kText, 1},
};

absl::Status DoesNotFit(std::string_view what) {
  return absl::DataLossError(StrCat(kWhere, ": ", what, " does not fit its memory"));
}

class ColumnParser {
 public:
  ColumnParser(const Json& described, std::string_view memory, uint64_t rows)
      : fields_(described, kWhere), memory_(memory), rows_(rows) {}

  absl::StatusOr<ParquetColumn> Parse() {
    ParquetColumn column;
    const std::string name = fields_.Text("kind");
    const auto kind = std::find_if(kKinds.begin(), kKinds.end(),
                                   [&](const KindName& each) { return each.name == name; });
    if (kind == kKinds.end()) return DoesNotFit(StrCat("the kind '", name, "'"));
    column.kind = kind->kind;
    const auto count = static_cast<uint64_t>(fields_.Int("count", -1, 0, kMaxValues));
    MUSTER_RETURN_IF_ERROR(fields_.status());
    if (fields_.Has("lengths")) {
      MUSTER_RETURN_IF_ERROR(ParseLists(count, &column));
    } else if (count != rows_) {
      return DoesNotFit("a column of another number of rows");
    }
    if (fields_.Has("valid")) {
      column.first_bit = static_cast<uint32_t>(fields_.Int("bit", 0, 0, 7));
      MUSTER_ASSIGN_OR_RETURN(const char* const bits,
                              Find("valid", (column.first_bit + count + 7) / 8, 1));
      column.valid = reinterpret_cast<const uint8_t*>(bits);
    }
    if (column.kind == Kind::kText) {
      MUSTER_RETURN_IF_ERROR(ParseTexts(count, &column));
    } else {
      MUSTER_ASSIGN_OR_RETURN(column.values, Find("values", count * kind->width, kAlignment));
    }
    MUSTER_RETURN_IF_ERROR(fields_.status());
    return column;
  }

 private:
  absl::StatusOr<const char*> Find(const char* name, uint64_t size, uint64_t alignment) {
    const int64_t at = fields_.Int(name, -1, 0, std::numeric_limits<int64_t>::max());
    MUSTER_RETURN_IF_ERROR(fields_.status());
    const auto begin = static_cast<uint64_t>(at);
    if (at < 0 || begin > memory_.size() || size > memory_.size() - begin ||
        begin % alignment != 0) {
      return DoesNotFit(name);
    }
    return memory_.data() + begin;
  }

  absl::Status ParseLists(uint64_t count, ParquetColumn* column) {
    MUSTER_ASSIGN_OR_RETURN(const char* const bytes, Find("lengths", 4 * rows_, kAlignment));
    const auto* const lengths = reinterpret_cast<const int32_t*>(bytes);
    uint64_t end = 0;
    column->lists.reserve(rows_ + 1);
    column->lists.push_back(0);
    for (uint64_t row = 0; row < rows_; ++row) {
      if (lengths[row] < 0 || static_cast<uint64_t>(lengths[row]) > count - end) {
        return DoesNotFit("a list");
      }
      end += static_cast<uint64_t>(lengths[row]);
      column->lists.push_back(static_cast<uint32_t>(end));
    }
    return end == count ? absl::OkStatus() : DoesNotFit("a list");
  }

  absl::Status ParseTexts(uint64_t count, ParquetColumn* column) {
    MUSTER_ASSIGN_OR_RETURN(const char* const bytes, Find("offsets", 4 * (count + 1), kAlignment));
    column->offsets = reinterpret_cast<const int32_t*>(bytes);
    const int64_t size = fields_.Int("bytes", -1, 0, kMaxValues);
    MUSTER_RETURN_IF_ERROR(fields_.status());
    MUSTER_ASSIGN_OR_RETURN(column->values, Find("values", static_cast<uint64_t>(size), 1));
    bool ascends = column->offsets[0] >= 0;
    for (uint64_t i = 0; i < count; ++i) ascends &= column->offsets[i] <= column->offsets[i + 1];
    if (!ascends || column->offsets[count] - column->offsets[0] != size) {
      return DoesNotFit("a text");
    }
    return absl::OkStatus();
  }

  JsonFields fields_;
  const std::string_view memory_;
  const uint64_t rows_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SharedSegment>> SharedSegment::Map(int descriptor, uint64_t size) {
  struct stat found = {};
  if (fstat(descriptor, &found) != 0) return ErrnoStatus(errno, "look at shared memory");
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (size == 0 || static_cast<uint64_t>(found.st_size) < size || seals < 0 ||
      (seals & F_SEAL_SHRINK) == 0) {
    return absl::DataLossError(StrCat(kWhere, ": its memory has not the ", size, " bytes it says"));
  }
  void* const at = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) return ErrnoStatus(errno, StrCat("map ", size, " bytes"));
  return std::unique_ptr<SharedSegment>(
      new SharedSegment({static_cast<const char*>(at), static_cast<size_t>(size)}));
}

SharedSegment::~SharedSegment() { munmap(const_cast<char*>(bytes_.data()), bytes_.size()); }

absl::StatusOr<ParquetBlock> ParseParquetBlock(const Json& answer, size_t columns,
                                               std::shared_ptr<const SharedSegment> segment) {
  JsonFields fields(answer, kWhere);
  ParquetBlock block;
  block.rows = static_cast<uint32_t>(fields.Int("rows", 0, 0, kMaxValues));
  const Json& described = fields.List("columns");
  MUSTER_RETURN_IF_ERROR(fields.status());
  if (described.size() != columns) return DoesNotFit("another number of columns");
  for (const Json& each : described) {
    if (each.is_null()) {
      block.columns.emplace_back();
      continue;
    }
    if (!each.is_object()) return DoesNotFit("a column");
    MUSTER_ASSIGN_OR_RETURN(block.columns.emplace_back(),
                            ColumnParser(each, segment->bytes(), block.rows).Parse());
  }
  block.segment = std::move(segment);
  return block;
}

}  // namespace muster::data
