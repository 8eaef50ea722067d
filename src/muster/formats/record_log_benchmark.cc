// Measures records per second of a record log such as a study's: 10,000 records of 150 bytes in
// groups of 8. The file system is in memory, so that the log's own work is measured and not the
// disk's sync.
#include <benchmark/benchmark.h>

#include "muster/formats/record_log.h"
#include "muster/io/memory_file_system.h"

namespace muster::formats {
namespace {

constexpr int kLogRecords = 10'000;
constexpr int kLogGroup = 8;

std::vector<Json> StudyGroup(int first) {
  std::vector<Json> group;
  for (int trial = first; trial < first + kLogGroup; ++trial) {
    group.push_back({{"trial", trial},
                     {"state", "done"},
                     {"values", {{"learning_rate", 0.001 * trial}, {"hidden", {64, 32}}}},
                     {"metrics", {{"auc", 0.75}, {"loss", 0.5 / (1 + trial)}}},
                     {"step", 1000}});
  }
  return group;
}

void WriteStudy(io::FileSystem& files, benchmark::State& state) {
  RecordLog log(files, "log", {});
  for (int trial = 0; trial < kLogRecords; trial += kLogGroup) {
    const absl::Status status = log.Append(StudyGroup(trial));
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  }
}

void BM_RecordLogAppend(benchmark::State& state) {
  for (auto _ : state) {
    const auto files = io::NewMemoryFileSystem();
    WriteStudy(*files, state);
  }
  state.SetItemsProcessed(state.iterations() * kLogRecords);
}
BENCHMARK(BM_RecordLogAppend)->Unit(benchmark::kMillisecond);

void BM_RecordLogRead(benchmark::State& state) {
  const auto files = io::NewMemoryFileSystem();
  WriteStudy(*files, state);
  for (auto _ : state) {
    const auto read = ReadRecordLog(*files, "log");
    if (!read.ok() || read->records.size() != kLogRecords) state.SkipWithError("not read back");
  }
  state.SetItemsProcessed(state.iterations() * kLogRecords);
}
BENCHMARK(BM_RecordLogRead)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace muster::formats
