// Sniffs any bytes as the beginning of a file, both plain and as a file that may be compressed. A
// text that is found to have several cells must have them in its first row.
#include <cstdio>
#include <cstdlib>

#include "muster/formats/csv_test_util.h"
#include "muster/formats/sniff.h"

namespace muster::formats {
namespace {

void Demand(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "sniff_fuzz: %s\n", what);
  std::abort();
}

// The first byte chooses the format that is given; the other bytes are the file's.
DataFormat MakeFormat(uint8_t choice) {
  DataFormat format;
  if ((choice & 1) != 0) format.type = FileFormat::kCsv;
  if ((choice & 2) != 0) format.trim = true;
  if ((choice & 4) != 0) format.quote = (choice & 8) != 0 ? '\'' : '\0';
  if ((choice & 16) != 0) format.columns = {"a", "b", "c"};
  return format;
}

void Run(std::string_view input) {
  if (input.empty()) return;
  const DataFormat format = MakeFormat(static_cast<uint8_t>(input[0]));
  const std::string_view bytes = input.substr(1);
  for (const bool whole : {false, true}) {
    const auto sniffed = SniffBytes(bytes, whole, "d/part-0", format);
    if (!sniffed.ok()) {
      Demand(!sniffed.status().message().empty(), "an error without a message");
      continue;
    }
    Demand((sniffed->content == Sniffed::Content::kEmpty) == bytes.empty(), "a wrong emptiness");
    if (sniffed->content == Sniffed::Content::kText) {
      Demand(CheckCsvOptions(format.csv(sniffed->delimiter)).ok(), "an impossible delimiter");
      Demand(sniffed->cells >= 1, "rows without cells");
    }
  }
  SniffFile(StringFile(std::string(bytes)), format).IgnoreError();
}

}  // namespace
}  // namespace muster::formats

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::formats::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
