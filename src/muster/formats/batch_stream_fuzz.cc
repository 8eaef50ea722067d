// Reads any bytes as a batch stream: its header and first batch are refused or become complete
// columns.
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "muster/formats/batch_stream.h"

namespace muster::formats {
namespace {

Schema FuzzStreamSchema() {
  Schema schema;
  const auto add = [&](const char* name, ValueType type, bool list) {
    Field field;
    field.name = name;
    field.type = type;
    field.list = list;
    field.has_default = !list;
    if (type == ValueType::kInt) field.default_value = int64_t{0};
    if (type == ValueType::kFloat) field.default_value = 0.0f;
    if (type == ValueType::kString) field.default_value = std::string("none");
    schema.fields.push_back(field);
  };
  add("i", ValueType::kInt, false);
  add("f", ValueType::kFloat, false);
  add("s", ValueType::kString, false);
  add("li", ValueType::kInt, true);
  add("lf", ValueType::kFloat, true);
  add("ls", ValueType::kString, true);
  return schema;
}

void CheckColumns(const Schema& schema, const Columns& columns, uint32_t rows) {
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const Column& column = columns.column(static_cast<int>(i));
    const size_t values = column.ints.size() + column.floats.size() + column.strings.size();
    const size_t expected = schema.fields[i].list ? column.offsets.back() : rows;
    if (values != expected || columns.rows() != static_cast<int>(rows)) std::abort();
    for (const std::string_view text : column.strings) {
      volatile size_t last = text.empty() ? 0 : text.back();
      (void)last;
    }
  }
}

uint32_t ComputeCrc(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void FuzzOneStream(std::string_view bytes) {
  if (bytes.size() < kStreamPrefixBytes) return;
  const auto size = ParseStreamPrefix(bytes.substr(0, kStreamPrefixBytes));
  bytes.remove_prefix(kStreamPrefixBytes);
  if (!size.ok() || *size < 4 || *size > bytes.size()) return;
  // Corrects the checksums, so that the code after their check is reached.
  std::string header(bytes.substr(0, *size - 4));
  const uint32_t crc = ComputeCrc(header);
  header.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  bytes.remove_prefix(*size);
  const Schema schema = FuzzStreamSchema();
  const auto decoder = BatchStreamDecoder::Create(header, schema);
  if (!decoder.ok()) return;
  auto frame = ParseFramePrefix(bytes.substr(0, kFramePrefixBytes));
  if (!frame.ok() || frame->rows == 0) return;
  bytes.remove_prefix(kFramePrefixBytes);
  // As in the reader, a payload must be as long as its frame says.
  if (frame->bytes > bytes.size()) return;
  const auto payload = std::make_shared<const std::string>(bytes.substr(0, frame->bytes));
  frame->crc = ComputeCrc(*payload);
  Columns columns(schema);
  const absl::Status status = (*decoder)->Decode(*frame, payload, &columns);
  if (status.ok()) CheckColumns(schema, columns, frame->rows);
  if (!status.ok() && !absl::IsDataLoss(status)) std::abort();
}

}  // namespace
}  // namespace muster::formats

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::formats::FuzzOneStream({reinterpret_cast<const char*>(data), size});
  return 0;
}
