// Encodes and decodes one record of 40 features (13 float, 26 strings of 8 characters, 1 int64; 784
// bytes with its frame). Items are records; rates are per CPU second.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "muster/base/random.h"
#include "muster/formats/example.h"
#include "muster/formats/tfrecord.h"
#include "muster/io/memory_file_system.h"

namespace muster::formats {
namespace {

constexpr int kExampleRecords = 20'000;
constexpr int kExampleBatch = 512;

Schema FortyFeatures() {
  Schema schema;
  const auto add = [&schema](const std::string& name, ValueType type) {
    Field field;
    field.name = name;
    field.type = type;
    schema.fields.push_back(field);
  };
  for (int i = 1; i <= 13; ++i) add(StrCat("I", i), ValueType::kFloat);
  for (int i = 1; i <= 26; ++i) add(StrCat("C", i), ValueType::kString);
  add("label", ValueType::kInt);
  return schema;
}

// Fills in `count` rows of random values.
void FillColumns(int count, Columns* columns) {
  RandomStream random(1, RandomPurpose::kSampleData, 0);
  char text[9];
  for (int row = 0; row < count; ++row) {
    for (int i = 0; i < 13; ++i) {
      columns->mutable_column(i).floats.push_back(static_cast<float>(random.Below(1000)) * 0.1f);
    }
    for (int i = 13; i < 39; ++i) {
      std::snprintf(text, sizeof text, "%08x", random.Next32());
      columns->mutable_column(i).strings.push_back(columns->Store(text));
    }
    columns->mutable_column(39).ints.push_back(static_cast<int64_t>(random.Below(2)));
    columns->AddRow();
  }
}

// Returns the bytes of a TFRecord file of kExampleRecords such records.
std::string ExampleFile(Compression compression) {
  const Schema schema = FortyFeatures();
  const ExampleEncoder encoder(schema);
  Columns columns(schema);
  FillColumns(kExampleRecords, &columns);
  const std::unique_ptr<io::FileSystem> files = io::NewMemoryFileSystem();
  auto writer = TfRecordWriter::Create(files->OpenForWrite("f").value(), compression).value();
  std::string record;
  for (int row = 0; row < kExampleRecords; ++row) {
    encoder.Encode(columns, row, &record);
    if (!writer->Write(record).ok()) std::abort();
  }
  if (!writer->Close().ok()) std::abort();
  return io::ReadFile(*files, "f").value();
}

void FrameAndCrc(benchmark::State& state) {
  const std::string bytes = ExampleFile(Compression::kNone);
  for (auto _ : state) {
    uint64_t sizes = 0;
    if (!ForEachRecord(bytes, "f", 0, [&](uint64_t, uint64_t size) { sizes += size; }).ok()) {
      state.SkipWithError("broken");
    }
    benchmark::DoNotOptimize(sizes);
  }
  state.SetItemsProcessed(state.iterations() * kExampleRecords);
}
BENCHMARK(FrameAndCrc);

void RecordToColumns(benchmark::State& state) {
  const std::string bytes = ExampleFile(Compression::kNone);
  const Schema schema = FortyFeatures();
  const std::unique_ptr<RowDecoder> decoder = NewExampleDecoder(schema);
  Columns columns(schema);
  for (auto _ : state) {
    absl::Status status = ForEachRecord(bytes, "f", 0, [&](uint64_t offset, uint64_t size) {
      if (columns.rows() == kExampleBatch) columns.Clear();
      if (!decoder->Decode({bytes.data() + offset, size}, &columns).ok()) std::abort();
    });
    if (!status.ok()) state.SkipWithError("broken");
    benchmark::DoNotOptimize(columns.column(0).floats.data());
  }
  state.SetItemsProcessed(state.iterations() * kExampleRecords);
}
BENCHMARK(RecordToColumns);

void StreamToColumns(benchmark::State& state) {
  const std::unique_ptr<io::FileSystem> files = io::NewMemoryFileSystem();
  const auto compression = static_cast<Compression>(state.range(0));
  if (!io::WriteFileAtomically(*files, "f", ExampleFile(compression)).ok()) std::abort();
  const Schema schema = FortyFeatures();
  const std::unique_ptr<RowDecoder> decoder = NewExampleDecoder(schema);
  Columns columns(schema);
  for (auto _ : state) {
    auto reader = TfRecordReader::Open(files->OpenForRead("f").value(), compression).value();
    std::string_view record;
    while (reader->Next(&record).value()) {
      columns.Clear();  // `record` is only valid until the next one
      if (!decoder->Decode(record, &columns).ok()) std::abort();
    }
  }
  state.SetItemsProcessed(state.iterations() * kExampleRecords);
}
BENCHMARK(StreamToColumns)
    ->Arg(static_cast<int>(Compression::kNone))
    ->Arg(static_cast<int>(Compression::kGzip));

void ColumnsToRecord(benchmark::State& state) {
  const Schema schema = FortyFeatures();
  const ExampleEncoder encoder(schema);
  Columns columns(schema);
  FillColumns(kExampleBatch, &columns);
  std::string record;
  for (auto _ : state) {
    for (int row = 0; row < kExampleBatch; ++row) {
      encoder.Encode(columns, row, &record);
      benchmark::DoNotOptimize(record.data());
    }
  }
  state.SetItemsProcessed(state.iterations() * kExampleBatch);
}
BENCHMARK(ColumnsToRecord);

}  // namespace
}  // namespace muster::formats
