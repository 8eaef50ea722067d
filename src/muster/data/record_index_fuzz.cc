// Parses any bytes as a record index and as a saved position: either they are refused, or they are
// printed as the same bytes again.
#include <cstdio>
#include <cstdlib>

#include "muster/base/crc32c.h"
#include "muster/data/reader.h"
#include "muster/data/record_index.h"

namespace muster::data {
namespace {

void RequireSame(bool same, const char* what) {
  if (same) return;
  std::fprintf(stderr, "record_index_fuzz: %s\n", what);
  std::abort();
}

// Corrects the checksum, so that the code after its check is reached.
std::string WithChecksum(std::string_view bytes) {
  std::string sound(bytes);
  const uint32_t crc = MaskedCrc32c(sound);
  for (int i = 0; i < 4; ++i) sound.push_back(static_cast<char>(crc >> (8 * i)));
  return sound;
}

void CheckIndexBytes(std::string_view bytes) {
  const auto index = ParseRecordIndex(bytes);
  if (!index.ok()) return;
  const auto again = ParseRecordIndex(SerializeRecordIndex(*index));
  RequireSame(again.ok() && *again == *index, "an index changed when written and read");
}

void CheckPositionText(std::string_view text) {
  const auto position = ParsePosition(text);
  if (!position.ok()) return;
  const auto again = ParsePosition(SerializePosition(*position));
  RequireSame(again.ok() && *again == *position, "a position changed when written and read");
}

}  // namespace
}  // namespace muster::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  muster::data::CheckIndexBytes(bytes);
  muster::data::CheckIndexBytes(muster::data::WithChecksum(bytes));
  muster::data::CheckPositionText(bytes);
  char checksum[32];
  std::snprintf(checksum, sizeof checksum, " crc32c=%08x", muster::Crc32c(bytes));
  muster::data::CheckPositionText(muster::StrCat(bytes, checksum));
  return 0;
}
