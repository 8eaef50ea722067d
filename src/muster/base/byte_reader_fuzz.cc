// Any bytes read by any sequence of calls, which the first half of the input chooses: reads stay
// inside the second half, give each byte once and in order, and stop at the first that fails.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "muster/base/byte_reader.h"

namespace muster {
namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

bool ReadAny(ByteReader& reader, uint8_t choice) {
  const uint64_t size = choice >> 3;
  std::string_view bytes;
  std::span<const char> values;
  uint64_t number = 0;
  uint16_t small = 0;
  switch (choice & 7) {
    case 0:
      return reader.Read(&number);
    case 1:
      return reader.Read(&small);
    case 2:
      return reader.ReadVarint(&number);
    case 3:
      return reader.ReadBytes(size, &bytes) && bytes.size() == size;
    case 4:
      return reader.ReadArray(size, &values) && values.size() == size;
    case 5:
      return reader.Skip(size);
    case 6:
      return reader.Fits(size, 3);
    default:
      // A length in front, as most formats have it.
      return reader.Read(&small) && reader.ReadBytes(small, &bytes);
  }
}

void CheckReads(std::string_view choices, std::string_view bytes) {
  const std::string copy(bytes);  // with its end where the sanitizer sees a read beyond it
  ByteReader reader(copy);
  for (const char choice : choices) {
    const ByteReader before = reader;
    const bool was_ok = reader.ok();
    const bool read = ReadAny(reader, static_cast<uint8_t>(choice));
    Check(read == reader.ok() && (was_ok || !read));
    Check(reader.left() <= before.left());
    if (read) {
      Check(reader.position() + reader.left() == copy.data() + copy.size() || copy.empty());
      Check(reader.done() == (reader.left() == 0));
    } else {
      Check(reader.left() == 0 && !reader.done());
    }
  }
}

}  // namespace
}  // namespace muster

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  muster::CheckReads(input.substr(0, size / 2), input.substr(size / 2));
  return 0;
}
