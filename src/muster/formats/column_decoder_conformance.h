// The conformance suite of column decoders, for all formats that make ColumnChunks. The same table
// is also written as tf.Examples, JSON lines and CSV, whose row decoders give the expected results.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/formats/column_decoder.h"
#include "muster/formats/schema.h"

namespace muster::formats {

// A column of a test's table, by rows; a row without values is null.
struct TestColumn {
  std::string name;
  BufferType type = BufferType::kInt64;
  bool list = false;
  std::vector<std::vector<Value>> rows = {};
};

struct ColumnData {
  std::vector<ColumnShape> shapes;
  ColumnChunk chunk;
};

// How an implementation provides the columns of a table, which have equal numbers of rows.
class ColumnFormat {
 public:
  virtual ~ColumnFormat() = default;
  virtual std::string name() const = 0;
  virtual ColumnData Make(const std::vector<TestColumn>& table) const = 0;
};

class ColumnDecoderConformance : public testing::TestWithParam<std::shared_ptr<ColumnFormat>> {
 protected:
  const ColumnFormat& format() const { return *GetParam(); }
  // The result of decoding some or all rows of the table.
  struct Decoded {
    Columns columns;
    std::vector<BadRow> bad;
  };
  Decoded Decode(const Schema& schema, const std::vector<TestColumn>& table,
                 std::vector<uint32_t> rows = {}) const;
};

}  // namespace muster::formats
