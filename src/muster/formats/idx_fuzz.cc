// Reads any bytes as an IDX file. The reader must end, give as many items and of the size that the
// header says, take no more memory than the file has bytes for, and find every cut.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "muster/formats/csv_test_util.h"
#include "muster/formats/idx.h"

namespace muster::formats {
namespace {

void Expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "idx_fuzz: not true: %s\n", what);
  std::abort();
}

// Returns whether the file is valid; *bytes: the number of bytes of all its items.
bool ReadItems(const std::string& input, uint64_t* bytes) {
  *bytes = 0;
  const auto reader = IdxReader::Open(StringFile(input));
  if (!reader.ok()) {
    Expect(absl::IsDataLoss(reader.status()), "an error of a file is DATA_LOSS");
    return false;
  }
  IdxReader& idx = **reader;
  uint64_t size = IdxTypeBytes(idx.type());
  Expect(size > 0, "the type is known");
  for (const int64_t length : idx.shape()) size *= static_cast<uint64_t>(length);
  Expect(size == idx.item_bytes() && size <= kMaxIdxItemBytes, "an item's bytes");
  for (uint64_t count = 0;; ++count) {
    std::string_view item;
    const absl::StatusOr<bool> more = idx.Next(&item);
    if (!more.ok()) {
      Expect(absl::IsDataLoss(more.status()), "an error of a file is DATA_LOSS");
      Expect(idx.Next(&item).status() == more.status(), "an error stays");
      return false;
    }
    if (!*more) {
      Expect(count == idx.items(), "as many items as the head says");
      return true;
    }
    Expect(item.size() == idx.item_bytes(), "an item has its bytes");
    if (idx.shape().empty() && IsIdxInteger(idx.type())) IdxInteger(idx.type(), item);
    *bytes += item.size();
  }
}

void Check(const std::string& input) {
  uint64_t bytes = 0, again = 0;
  const bool plain = !input.empty() && input[0] == 0;
  const bool sound = ReadItems(input, &bytes);
  if (!plain) return;
  Expect(bytes <= input.size(), "items are of the file");
  Expect(ReadItems(Gzip(input), &again) == sound && again == bytes, "compressed it is the same");
  if (sound) Expect(!ReadItems(input.substr(0, input.size() - 1), &again), "a cut is found");
}

}  // namespace
}  // namespace muster::formats

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::formats::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
