// ParquetDecoder: rows of blocks (data/parquet/parquet_block.h) to Columns. A record is a
// ParquetRow, as bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/data/parquet/parquet_block.h"
#include "muster/formats/decoder.h"
#include "muster/formats/schema.h"

namespace muster::data {

struct ParquetRow {
  const ParquetBlock* block = nullptr;
  uint64_t row = 0;  // of the block
};

// Field i of the schema has the values of column places[i] of each block.
std::unique_ptr<formats::RowDecoder> NewParquetDecoder(const formats::Schema& schema,
                                                       std::vector<size_t> places);

// INTERNAL unless each column of the block has values that its field can take.
absl::Status CheckKinds(const ParquetBlock& block, const std::vector<formats::Field>& fields);

}  // namespace muster::data
