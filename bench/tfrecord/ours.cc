// tfrecord_ours FILE: Muster's side. tfrecord_ours --make RECORDS FILE: writes such a file.
#include <cstdlib>
#include <cstring>

#include "forty_features.h"
#include "muster/base/random.h"
#include "muster/formats/example.h"

namespace muster::bench {
namespace {

absl::Status Make(int64_t records, const std::string& path) {
  const formats::Schema schema = FortyFeatures();
  const formats::ExampleEncoder encoder(schema);
  const std::unique_ptr<io::FileSystem> files = io::NewLocalFileSystem();
  MUSTER_ASSIGN_OR_RETURN(auto file, files->OpenForWrite(path));
  MUSTER_ASSIGN_OR_RETURN(
      auto writer, formats::TfRecordWriter::Create(std::move(file), formats::Compression::kNone));
  RandomStream random(1, RandomPurpose::kSampleData, 0);
  formats::Columns columns(schema);
  std::string record;
  char text[9];
  for (int64_t i = 0; i < records; ++i) {
    columns.Clear();
    for (int c = 0; c < kFloats; ++c) {
      columns.mutable_column(c).floats = {static_cast<float>(random.Below(1000)) * 0.1f};
    }
    for (int c = kFloats; c < kFloats + kStrings; ++c) {
      std::snprintf(text, sizeof text, "%08x", random.Next32());
      columns.mutable_column(c).strings = {columns.Store(text)};
    }
    columns.mutable_column(kFloats + kStrings).ints = {static_cast<int64_t>(random.Below(2))};
    columns.AddRow();
    encoder.Encode(columns, 0, &record);
    MUSTER_RETURN_IF_ERROR(writer->Write(record));
  }
  return writer->Close();
}

absl::Status Run(const std::string& path) {
  const std::unique_ptr<formats::RowDecoder> decoder = formats::NewExampleDecoder(FortyFeatures());
  return Measure(path, {[&](std::string_view record, formats::Columns* columns) {
                          return decoder->Decode(record, columns);
                        },
                        [](formats::Columns* columns) { columns->Clear(); }});
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "--make") == 0) {
    return muster::bench::ExitCode(muster::bench::Make(std::atoll(argv[2]), argv[3]));
  }
  if (argc != 2) {
    std::fprintf(stderr, "usage: tfrecord_ours FILE | tfrecord_ours --make RECORDS FILE\n");
    return 2;
  }
  return muster::bench::ExitCode(muster::bench::Run(argv[1]));
}
