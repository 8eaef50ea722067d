// Any bytes as the end of a compiled file, as the JSON in it with a right checksum, and as a row:
// what is accepted can be printed and read again, and no row gives an id that its column does not
// have.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "muster/base/byte_reader.h"
#include "muster/base/crc32c.h"
#include "muster/train/input/compiled/compiled_file.h"
#include "muster/train/input/compiled/compiled_rows.h"
#include "muster/train/input/compiled/row_compiler.h"

namespace muster::train {
namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

absl::StatusOr<CompiledInfo> Read(std::string_view file) {
  return ReadCompiledEnd(file.size(), [&](uint64_t begin, size_t size) {
    Check(begin <= file.size() && size <= file.size() - begin);
    return std::string(file.substr(static_cast<size_t>(begin), size));
  });
}

void ReadEnd(std::string_view file) {
  const auto info = Read(file);
  if (!info.ok()) return;
  Check(info->blocks.size() == info->chunks.size());
  for (const CompiledBlock& block : info->blocks) {
    Check(block.begin <= file.size() && block.size <= file.size() - block.begin);
  }
  // Its own print says the same of blocks that lie in the same place.
  Check(Read(std::string(file) + PrintCompiledEnd(*info)).ok());
}

void ReadJson(std::string_view text) {
  CompiledInfo none;
  std::string end = PrintCompiledEnd(none);
  constexpr size_t kTail = 24;
  std::string tail = end.substr(end.size() - kTail);
  const uint64_t size = text.size();
  const uint32_t crc = Crc32c(text);
  std::memcpy(tail.data(), &size, sizeof size);
  std::memcpy(tail.data() + sizeof size, &crc, sizeof crc);
  ReadEnd(std::string(text) + tail);
}

void ReadRow(std::string_view row) {
  CompiledLayout layout = {.label_width = 1, .has_weight = true, .dense = {2, 1}};
  layout.id_lists = {{.ids = 3},
                     {.has_weights = true, .ids = 70000},
                     {.is_list = true, .has_weights = true, .ids = 300},
                     {.is_list = true, .has_keys = true, .ids = 1}};
  const auto transform = NewCompiledTransform(layout);
  formats::Columns columns(CompiledSchema());
  for (int i = 0; i < 2; ++i) {
    columns.mutable_column(0).strings.push_back(row);
    columns.AddRow();
  }
  features::FeatureBatch batch;
  const absl::Status status = transform->Apply(columns, true, &batch, nullptr);
  if (!status.ok()) return;
  RowCompiler compiler(layout);
  Check(compiler.Take(batch));
  compiler.Compile(0, batch.rows);
  Check(compiler.GetSize(1) == row.size());
  std::string again(row.size() + RowCompiler::kSlack, '\0');
  compiler.Write(1, again.data());
  Check(again.substr(0, row.size()) == row);
}

}  // namespace
}  // namespace muster::train

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::train;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 3 == 0) ReadEnd(rest);
  if (data[0] % 3 == 1) ReadJson(rest);
  if (data[0] % 3 == 2) ReadRow(rest);
  return 0;
}
