// Reads any bytes as a TFRecord file. The first byte chooses the compression; the rest is the file.
// The reader must end, its offsets must agree with its records, a plain file must give the same
// records at once and in a stream, and records that were read must be written and read again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "muster/formats/tfrecord.h"
#include "muster/io/memory_file_system.h"

namespace muster::formats {
namespace {

void Expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "tfrecord_fuzz: not true: %s\n", what);
  std::abort();
}

struct Outcome {
  std::vector<std::string> records;
  bool whole = false;  // there was no error
};

Outcome ReadStream(io::FileSystem& files, Compression compression) {
  Outcome outcome;
  auto reader = TfRecordReader::Open(files.OpenForRead("f").value(), compression).value();
  outcome.whole = true;
  while (true) {
    std::string_view record;
    const uint64_t offset = reader->offset();
    const absl::StatusOr<bool> more = reader->Next(&record);
    if (more.ok() && !*more) return outcome;
    if (more.ok()) {
      Expect(reader->offset() == offset + record.size() + kTfRecordOverhead, "offset");
      outcome.records.emplace_back(record);
      continue;
    }
    Expect(absl::IsDataLoss(more.status()), "an error of a file is DATA_LOSS");
    outcome.whole = false;
    if (!reader->SkippableError()) return outcome;
    Expect(reader->offset() > offset, "a skipped record is passed");
  }
}

void CheckAgainstRun(std::string_view bytes, const Outcome& stream) {
  std::vector<std::string> records;
  const absl::Status status = ForEachRecord(bytes, "f", 0, [&](uint64_t offset, uint64_t size) {
    records.emplace_back(bytes.substr(offset, size));
  });
  Expect(status.ok() == stream.whole, "a run and a stream agree on errors");
  Expect(records.size() <= stream.records.size(), "a run stops at the first error");
  for (size_t i = 0; i < records.size(); ++i) {
    Expect(records[i] == stream.records[i], "a run and a stream agree on records");
  }
}

void Write(io::FileSystem& files, const std::vector<std::string>& records,
           Compression compression) {
  auto writer = TfRecordWriter::Create(files.OpenForWrite("f").value(), compression).value();
  for (const std::string& record : records) Expect(writer->Write(record).ok(), "write");
  Expect(writer->Close().ok(), "close");
}

void Check(std::string_view input) {
  if (input.empty()) return;
  const auto compression = static_cast<Compression>(static_cast<uint8_t>(input[0]) % 3);
  input.remove_prefix(1);
  const std::unique_ptr<io::FileSystem> files = io::NewMemoryFileSystem();
  Expect(io::WriteFileAtomically(*files, "f", input).ok(), "input");
  Expect(DetectCompression(*files->OpenForRead("f").value()).ok(), "detection");
  const Outcome outcome = ReadStream(*files, compression);
  if (compression == Compression::kNone) CheckAgainstRun(input, outcome);
  Write(*files, outcome.records, compression);
  const Outcome again = ReadStream(*files, compression);
  Expect(again.whole && again.records == outcome.records, "written records are read again");
}

}  // namespace
}  // namespace muster::formats

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::formats::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
