// tf.Example: a protobuf map from feature name to a list of int64, float or bytes. It is read in
// every form that a protobuf writer may choose (packed or not, in any order, with unknown fields,
// lists in several pieces, duplicate map keys, of which the last one wins), and written as
// TensorFlow's deterministic serialisation (map keys sorted, packed). See docs/formats/example.md;
// source: tensorflow/core/example/{example,feature}.proto.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/columns.h"
#include "muster/formats/decoder.h"

namespace muster::formats {

// Makes a decoder of the schema's features, which ignores all others. A scalar field needs exactly
// one value; an absent feature, or one without a kind or values, gives the default. int64 is
// accepted for a kFloat field (as "3" is in CSV); any other mismatch of kinds is an error. One
// owner thread: the decoder remembers the order in which features last came.
std::unique_ptr<RowDecoder> NewExampleDecoder(const Schema& schema);

// Writes row `row` of `columns` as a serialized tf.Example with one feature per field, sorted by
// name. Empty lists become features with an empty list of their kind.
class ExampleEncoder {
 public:
  explicit ExampleEncoder(const Schema& schema);
  // Replaces *record.
  void Encode(const Columns& columns, int row, std::string* record) const;

 private:
  struct Part {
    int field;
    std::string key;  // the encoded key field of the map entry
    // The beginning of the entry of one short value, where all lengths are single bytes; see
    // Encode().
    std::array<char, 32> head;
    size_t short_payloads;  // smaller payloads are such short values; 0: none is
    ValueType type;
    bool list;
  };
  static size_t EntryBytes(const Part& part, const Columns& columns, int row);
  static char* EncodeEntry(const Part& part, const Columns& columns, int row, char* to);

  std::vector<Part> parts_;  // sorted by name
};

// One feature as it is in a record, for `muster records inspect`.
struct FeatureText {
  std::string name;
  std::string kind;                 // "int64", "float", "bytes" or "none"
  std::vector<std::string> values;  // printed; bytes that are not UTF-8 are escaped
};
absl::StatusOr<std::vector<FeatureText>> DescribeExample(std::string_view record);

}  // namespace muster::formats
