// Measures what reading costs in addition to decoding: records of 784 bytes, from chunks in memory
// to batches of 512 rows, in file order and shuffled; with a decoder that does nothing, and from a
// TFRecord file with checksums (in an in-memory file system, so that a read is a copy); with and
// without chunks that are read ahead.
#include <benchmark/benchmark.h>

#include "muster/data/reader.h"
#include "muster/data/source.h"
#include "muster/formats/tfrecord.h"
#include "muster/io/memory_file_system.h"

namespace muster::data {
namespace {

constexpr size_t kRecordBytes = 784;
constexpr int kRecords = 60'000;

class NoDecoder : public formats::RowDecoder {
 public:
  absl::Status Decode(std::string_view record, formats::Columns* columns) override {
    benchmark::DoNotOptimize(record.data());
    columns->AddRow();
    return absl::OkStatus();
  }
};

// Another source without its decoder and, if `cached`, without reading.
class WithoutDecoding : public RecordSource {
 public:
  WithoutDecoding(std::unique_ptr<RecordSource> inner, bool cached) : inner_(std::move(inner)) {
    for (size_t i = 0; cached && i < inner_->chunks().size(); ++i) {
      cache_.push_back(*inner_->Read(i));
    }
  }
  const std::vector<std::string>& files() const override { return inner_->files(); }
  const std::vector<ChunkInfo>& chunks() const override { return inner_->chunks(); }
  absl::StatusOr<std::shared_ptr<const Chunk>> Read(size_t chunk) const override {
    if (!cache_.empty()) return cache_[chunk];
    return inner_->Read(chunk);
  }
  absl::StatusOr<std::unique_ptr<ChunkStream>> Stream(size_t chunk) const override {
    return std::make_unique<Once>(*this, chunk);
  }
  absl::StatusOr<std::unique_ptr<formats::RowDecoder>> NewDecoder(
      const formats::Schema&) const override {
    return std::make_unique<NoDecoder>();
  }
  absl::Status CountBad(size_t, const Chunk&) const override { return absl::OkStatus(); }
  uint64_t bad_records() const override { return 0; }
  uint64_t fingerprint() const override { return inner_->fingerprint(); }

 private:
  class Once : public ChunkStream {
   public:
    Once(const WithoutDecoding& source, size_t chunk) : source_(source), chunk_(chunk) {}
    absl::StatusOr<std::shared_ptr<const Chunk>> Next() override {
      if (std::exchange(done_, true)) return nullptr;
      return source_.Read(chunk_);
    }

   private:
    const WithoutDecoding& source_;
    const size_t chunk_;
    bool done_ = false;
  };

  const std::unique_ptr<RecordSource> inner_;
  std::vector<std::shared_ptr<const Chunk>> cache_;
};

void BM_Read(benchmark::State& state) {
  const bool shuffle = state.range(0) != 0, from_file = state.range(1) != 0;
  const auto chunks_ahead = static_cast<int>(state.range(2));
  const auto files = io::NewMemoryFileSystem();
  auto writer = *formats::TfRecordWriter::Create(*files->OpenForWrite("records"),
                                                 formats::Compression::kNone);
  for (int i = 0; i < kRecords; ++i) {
    writer->Write(std::string(kRecordBytes, static_cast<char>(i))).IgnoreError();
  }
  writer->Close().IgnoreError();
  const auto source = std::make_shared<WithoutDecoding>(
      *OpenSource(*files, {.patterns = {"records"}}), /*cached=*/!from_file);
  formats::Columns columns({});
  for (auto _ : state) {
    auto reader = *BatchReader::Create(
        source, {}, {.batch_size = 512, .shuffle = shuffle, .chunks_ahead = chunks_ahead});
    while (*reader->Next(&columns)) benchmark::DoNotOptimize(columns.rows());
  }
  state.SetItemsProcessed(state.iterations() * kRecords);
}
BENCHMARK(BM_Read)
    ->ArgNames({"shuffle", "from_file", "chunks_ahead"})
    ->ArgsProduct({{0, 1}, {0, 1}, {0, 2}})
    ->UseRealTime();

}  // namespace
}  // namespace muster::data
