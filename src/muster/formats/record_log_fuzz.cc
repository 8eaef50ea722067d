// Parses any bytes as a record log: they are refused as DATA_LOSS, or give records that are read
// again from a log written with them.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "muster/formats/record_log.h"
#include "muster/io/memory_file_system.h"

namespace muster::formats {
namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

void CheckLog(std::string_view bytes) {
  const auto read = ParseRecordLog(bytes, "fuzz");
  if (!read.ok()) return Check(absl::IsDataLoss(read.status()));
  Check(read->bytes <= bytes.size() && read->torn == (read->bytes < bytes.size()));
  const auto sound = ParseRecordLog(bytes.substr(0, read->bytes), "fuzz");
  Check(sound.ok() && !sound->torn && sound->records == read->records);
}

// Mutations rarely keep checksums right. So lines that are records are also written as a log, which
// is then read with the whole input as its torn or damaged end.
void CheckWritten(std::string_view bytes) {
  std::vector<Json> records;
  for (std::string_view rest = bytes; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    auto record = ParseJsonObject(rest.substr(0, end), "fuzz");
    if (record.ok()) records.push_back(*std::move(record));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const auto files = io::NewMemoryFileSystem();
  Check(RecordLog(*files, "log", {}).Append(records).ok());
  if (records.empty()) return;
  const auto read = ReadRecordLog(*files, "log");
  Check(read.ok() && !read->torn && read->records.size() == records.size());
  CheckLog(*io::ReadFile(*files, "log") + std::string(bytes));
}

}  // namespace
}  // namespace muster::formats

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  muster::formats::CheckLog(bytes);
  muster::formats::CheckWritten(bytes);
  return 0;
}
