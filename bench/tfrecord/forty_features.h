// What both sides of the benchmark share: the schema of 13 floats, 26 strings and an int64, the
// measuring, and the checksum by which they are compared.
#pragma once

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "muster/base/crc32c.h"
#include "muster/base/status.h"
#include "muster/formats/columns.h"
#include "muster/formats/tfrecord.h"
#include "muster/io/local_file_system.h"

namespace muster::bench {

constexpr int kFloats = 13, kStrings = 26;
constexpr int kBatch = 512;

inline formats::Schema FortyFeatures() {
  formats::Schema schema;
  const auto add = [&schema](const std::string& name, formats::ValueType type) {
    formats::Field field;
    field.name = name;
    field.type = type;
    schema.fields.push_back(field);
  };
  for (int i = 1; i <= kFloats; ++i) add(StrCat("I", i), formats::ValueType::kFloat);
  for (int i = 1; i <= kStrings; ++i) add(StrCat("C", i), formats::ValueType::kString);
  add("label", formats::ValueType::kInt);
  return schema;
}

// Changes with every value of the batch.
inline uint64_t Checksum(const formats::Columns& columns) {
  uint64_t sum = 0;
  const auto add = [&sum](std::string_view bytes) { sum = sum * 31 + Crc32c(bytes); };
  const auto add_all = [&add](const auto& values) {
    add({reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]});
  };
  for (const formats::Column& column : columns.columns()) {
    add_all(column.floats);
    add_all(column.ints);
    for (const std::string_view value : column.strings) add(value);
  }
  return sum;
}

inline double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Decodes one record into a row; ClearBatch empties columns and whatever its strings lie in.
struct Side {
  std::function<absl::Status(std::string_view record, formats::Columns* columns)> decode;
  std::function<void(formats::Columns* columns)> clear_batch;
};

// One pass over the file's bytes, framing and CRCs checked: batches of kBatch rows, each given to
// `use` and then cleared. Returns the number of records.
inline absl::StatusOr<int64_t> Pass(const std::string& bytes, const std::string& path,
                                    const Side& side, formats::Columns* columns,
                                    const std::function<void(const formats::Columns&)>& use) {
  int64_t records = 0;
  absl::Status decoded;
  const auto end_batch = [&] {
    use(*columns);
    side.clear_batch(columns);
  };
  MUSTER_RETURN_IF_ERROR(formats::ForEachRecord(bytes, path, 0, [&](uint64_t at, uint64_t size) {
    if (!decoded.ok()) return;
    decoded = side.decode({bytes.data() + at, size}, columns);
    ++records;
    if (columns->rows() == kBatch) end_batch();
  }));
  MUSTER_RETURN_IF_ERROR(decoded);
  end_batch();
  return records;
}

// FILE, read into memory beforehand, as often as takes a second of CPU time. Prints one JSON line:
// examples decoded, CPU seconds for them, checksum of one pass (taken in a pass of its own).
inline absl::Status Measure(const std::string& path, const Side& side) {
  const std::unique_ptr<io::FileSystem> files = io::NewLocalFileSystem();
  MUSTER_ASSIGN_OR_RETURN(const std::string bytes, io::ReadFile(*files, path));
  formats::Columns columns(FortyFeatures());
  uint64_t checksum = 0;
  MUSTER_RETURN_IF_ERROR(Pass(bytes, path, side, &columns, [&](const formats::Columns& batch) {
                           checksum = checksum * 31 + Checksum(batch);
                         }).status());
  constexpr double kLeastSeconds = 1;
  const double start = CpuSeconds();
  int64_t examples = 0;
  double seconds = 0;
  do {
    MUSTER_ASSIGN_OR_RETURN(const int64_t records,
                            Pass(bytes, path, side, &columns, [](const formats::Columns&) {}));
    examples += records;
    seconds = CpuSeconds() - start;
  } while (seconds < kLeastSeconds);
  std::printf("{\"examples\":%lld,\"cpu_seconds\":%.6f,\"checksum\":\"%016llx\"}\n",
              static_cast<long long>(examples), seconds, static_cast<unsigned long long>(checksum));
  return absl::OkStatus();
}

inline int ExitCode(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace muster::bench
