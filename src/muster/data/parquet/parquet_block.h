// ParquetBlock: rows in memory that muster-parquet shares, as columns. Nothing is copied out of it
// before a row is used.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/json_fields.h"

namespace muster::data {

// Memory that another process wrote, mapped to be read. Its size cannot become smaller.
class SharedSegment {
 public:
  // Maps `size` bytes of the file of a descriptor, which stays the caller's. DATA_LOSS if it has
  // fewer or could be cut.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Map(int descriptor, uint64_t size);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  std::string_view bytes() const { return bytes_; }

 private:
  explicit SharedSegment(std::string_view bytes) : bytes_(bytes) {}
  const std::string_view bytes_;
};

// The values of a column. Of a list column, row r has the values [lists[r], lists[r + 1]); of other
// columns, one.
struct ParquetColumn {
  enum class Kind : uint8_t { kAbsent, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kF32, kF64, kText };
  Kind kind = Kind::kAbsent;         // kAbsent: the file has no such column
  const char* values = nullptr;      // numbers, aligned, or the bytes of all texts
  const int32_t* offsets = nullptr;  // of texts: count + 1, which begin at offsets[0]
  const uint8_t* valid = nullptr;    // a bit for each value; null: all are there
  uint32_t first_bit = 0;
  std::vector<uint32_t> lists = {};  // "" unless it is a list column

  bool Has(uint64_t value) const {
    const uint64_t bit = first_bit + value;
    return valid == nullptr || (valid[bit / 8] >> (bit % 8) & 1) != 0;
  }
  std::string_view Text(uint64_t value) const {
    return {values + (offsets[value] - offsets[0]),
            static_cast<size_t>(offsets[value + 1] - offsets[value])};
  }
};

struct ParquetBlock {
  uint32_t rows = 0;
  std::vector<ParquetColumn> columns = {};
  std::shared_ptr<const SharedSegment> segment = {};
};

// Makes the block that an answer of muster-parquet describes, with as many columns as were asked
// for. Everything is checked against the segment's size before it is used: DATA_LOSS if it does not
// fit.
absl::StatusOr<ParquetBlock> ParseParquetBlock(const formats::Json& answer, size_t columns,
                                               std::shared_ptr<const SharedSegment> segment);

}  // namespace muster::data
