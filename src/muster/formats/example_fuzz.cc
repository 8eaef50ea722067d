// Decodes any bytes as a tf.Example. A decoder that sees the record for the second time, and so
// takes the fast path, must agree with one that sees it first; a decoded row must be encoded and
// decoded to the same row; a row that does not fit must leave nothing; and what DescribeExample
// accepts as an Example, the decoder must accept too.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "muster/formats/example.h"

namespace muster::formats {
namespace {

void Expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "example_fuzz: not true: %s\n", what);
  std::abort();
}

// Names are short, so that a fuzzer finds them: i, f, s are scalars with a default, t is truncated;
// I, F, S are lists; and one name has more than eight bytes.
Schema MakeSchema() {
  Schema schema;
  const auto add = [&schema](const char* name, ValueType type, bool list, Value default_value) {
    Field field;
    field.name = name;
    field.type = type;
    field.list = list;
    field.has_default = !list;
    field.default_value = std::move(default_value);
    schema.fields.push_back(field);
  };
  add("i", ValueType::kInt, false, int64_t{-1});
  add("f", ValueType::kFloat, false, 0.5f);
  add("s", ValueType::kString, false, std::string("default"));
  add("t", ValueType::kInt, false, int64_t{0});
  schema.fields.back().truncate = true;
  add("I", ValueType::kInt, true, {});
  add("F", ValueType::kFloat, true, {});
  add("S", ValueType::kString, true, {});
  add("a longer name", ValueType::kString, false, std::string());
  return schema;
}

std::string Encoded(const ExampleEncoder& encoder, const Columns& columns) {
  std::string record;
  encoder.Encode(columns, columns.rows() - 1, &record);
  return record;
}

void CheckRecord(std::string_view record) {
  const Schema schema = MakeSchema();
  const ExampleEncoder encoder(schema);
  const std::unique_ptr<RowDecoder> decoder = NewExampleDecoder(schema);
  Columns columns(schema);
  const absl::Status first = decoder->Decode(record, &columns);
  if (!first.ok()) {
    Expect(columns.rows() == 0, "a bad record is no row");
    for (const Column& column : columns.columns()) {
      Expect(column.ints.empty() && column.floats.empty() && column.strings.empty(),
             "a bad record leaves nothing");
    }
    Expect(decoder->Decode(record, &columns) == first, "the same record, the same error");
    return;
  }
  // Encoded rows are compared, so that a NaN equals itself.
  const std::string once = Encoded(encoder, columns);
  Expect(decoder->Decode(record, &columns).ok(), "decoded for the second time");
  Expect(Encoded(encoder, columns) == once, "the quick way gives the same row");
  Columns again(schema);
  Expect(decoder->Decode(once, &again).ok(), "an encoded row is decoded");
  Expect(Encoded(encoder, again) == once, "an encoded row is decoded to itself");
}

void CheckDescription(std::string_view record) {
  if (!DescribeExample(record).ok()) return;
  const std::unique_ptr<RowDecoder> decoder = NewExampleDecoder(MakeSchema());
  Columns columns(MakeSchema());
  Expect(!absl::IsDataLoss(decoder->Decode(record, &columns)), "what is described is an Example");
}

}  // namespace
}  // namespace muster::formats

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view record(reinterpret_cast<const char*>(data), size);
  muster::formats::CheckRecord(record);
  muster::formats::CheckDescription(record);
  return 0;
}
