// Reads any bytes as the data file of a bundle whose index is valid. The first byte is the number
// of strings that the file claims to have; the rest is read as plain bytes and as those strings.
// The strings are read twice, the second time with a corrected checksum of their lengths, which no
// mutation gets right.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "muster/base/byte_reader.h"
#include "muster/base/crc32c.h"
#include "muster/formats/bundle.h"
#include "muster/formats/bundle_files.h"
#include "muster/formats/bundle_proto.h"
#include "muster/formats/table.h"
#include "muster/formats/table_coding.h"
#include "muster/io/memory_file_system.h"

namespace muster::formats {
namespace {

void Expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "bundle_data_fuzz: not true: %s\n", what);
  std::abort();
}

std::string Entry(DataType type, uint64_t elements, uint64_t size, uint32_t crc) {
  BundleEntry entry;
  entry.type = type;
  entry.shape = {static_cast<int64_t>(elements)};
  entry.size = static_cast<int64_t>(size);
  entry.masked_crc = MaskCrc(crc);
  return SerializeBundleEntry(entry);
}

void Check(const std::string& data, uint64_t count) {
  const auto files = io::NewMemoryFileSystem();
  uint32_t strings_crc = 0;
  const auto decoded = DecodeStrings(data, count, &strings_crc);
  const uint32_t crc = Crc32c(data);
  TableBuilder table;
  table.Add("", SerializeBundleHeader({}));
  table.Add("bytes", Entry(DataType::kBool, data.size(), data.size(), crc));
  table.Add("strings", Entry(DataType::kString, count, data.size(), strings_crc));
  table.Add("wrong", Entry(DataType::kBool, data.size(), data.size(), crc + 1));
  Expect(io::WriteFileAtomically(*files, "b.index", table.Finish()).ok(), "index");
  Expect(io::WriteFileAtomically(*files, BundleDataPath("b", 0, 1), data).ok(), "data");
  const auto reader = BundleReader::Open(*files, "b");
  Expect(reader.ok(), "a sound index opens");
  std::string bytes(data.size(), '\0');
  Expect((*reader)->Read("bytes", bytes).ok() && bytes == data, "bytes are read");
  Expect((*reader)->Verify("bytes").ok(), "bytes are sound");
  Expect(absl::IsDataLoss((*reader)->Read("wrong", bytes)), "a wrong checksum is found");
  const auto strings = (*reader)->ReadStrings("strings");
  if (!decoded.ok()) {
    Expect(data.empty() || absl::IsDataLoss(strings.status()), "broken strings are DATA_LOSS");
    return;
  }
  Expect(strings.ok() && *strings == *decoded, "strings are read");
  const EncodedStrings encoded = EncodeStrings(*decoded);
  uint32_t again_crc = 0;
  const auto again = DecodeStrings(encoded.bytes, count, &again_crc);
  Expect(again.ok() && *again == *decoded && again_crc == encoded.crc, "strings are written");
}

// Corrects the checksum of `count` lengths in the data, if that many can be read.
std::string Repaired(std::string data, uint64_t count) {
  ByteReader rest(data);
  std::vector<std::string> values;
  uint64_t length = 0, total = 0;
  while (values.size() < count && rest.ReadVarint(&length) && length <= data.size() - total) {
    values.emplace_back(length, ' ');
    total += length;
  }
  if (values.size() < count || rest.left() < 4) return data;
  // In what a writer makes of the values, the checksum begins where the lengths end.
  const EncodedStrings encoded = EncodeStrings(values);
  const std::string checksum = encoded.bytes.substr(encoded.bytes.size() - total - 4, 4);
  std::copy(checksum.begin(), checksum.end(), data.end() - static_cast<int64_t>(rest.left()));
  return data;
}

}  // namespace
}  // namespace muster::formats

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  muster::formats::Check(rest, data[0]);
  muster::formats::Check(muster::formats::Repaired(rest, data[0]), data[0]);
  return 0;
}
