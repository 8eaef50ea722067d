// Reads any bytes as an event file, twice: as the whole file, and as one event in a valid record
// between two known events, so that checksums do not hide the code after their check.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "muster/base/crc32c.h"
#include "muster/formats/event.h"
#include "muster/formats/table_coding.h"
#include "muster/io/memory_file_system.h"

namespace muster::formats {
namespace {

void Expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "event_fuzz: not true: %s\n", what);
  std::abort();
}

void AppendRecord(std::string* file, std::string_view record) {
  std::string length;
  AppendFixed64(&length, record.size());
  file->append(length);
  AppendFixed32(file, MaskedCrc32c(length));
  file->append(record);
  AppendFixed32(file, MaskedCrc32c(record));
}

absl::StatusOr<std::vector<ScalarEvent>> Read(const std::string& bytes) {
  const auto files = io::NewMemoryFileSystem();
  Expect(io::WriteFileAtomically(*files, "events", bytes).ok(), "write");
  auto events = ReadScalarEvents(*files, "events");
  Expect(events.ok() || absl::IsDataLoss(events.status()), "an error of a file is DATA_LOSS");
  return events;
}

void Check(const std::string& input) {
  const auto whole = Read(input);
  // A cut file, as a killed writer leaves it, is no error, and all events before the cut are read.
  if (whole.ok()) {
    for (const size_t cut : {size_t{1}, input.size() / 2}) {
      const auto part = Read(input.substr(0, input.size() - std::min(cut, input.size())));
      Expect(part.ok() && part->size() <= whole->size(), "a cut file is read");
    }
  }
  std::string event("\x10\x07\x2a\x0a\x0a\x08\x0a\x01t\x15", 10);  // step 7, tag t, a value:
  AppendFixed32(&event, 0x3f800000);                               // 1.0
  std::string file;
  AppendRecord(&file, event);
  AppendRecord(&file, input);
  AppendRecord(&file, event);
  const auto framed = Read(file);
  if (!framed.ok()) return;
  Expect(framed->size() >= 2, "the events around it are there");
  for (const ScalarEvent& e : {framed->front(), framed->back()}) {
    Expect(e.step == 7 && e.tag == "t" && e.value == 1.0f, "the events around it are ours");
  }
}

}  // namespace
}  // namespace muster::formats

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::formats::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
