// TensorBoard event files: TFRecords of tensorflow.Event protobufs; the first says "brain.Event:2".
// docs/formats/event.md; source: tensorflow/core/util/{event.proto,events_writer.h}.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/formats/summary.h"
#include "muster/io/file_system.h"

namespace muster::formats {

using Scalar = std::pair<std::string, float>;  // tag, value

// Appends events to a new file FOLDER/events.out.tfevents.<seconds>.<host><suffix>, which is
// created, with its folder, by the first event. On a remote file system ("hdfs://...") a thread
// sends the events every few seconds, and Flush does not wait for it. If the name is taken, ".1",
// ".2", ... is put before the suffix. After a failed write all further writes fail, unless the
// failure is tolerated. One owner thread.
class EventWriter {
 public:
  EventWriter(io::FileSystem& files, std::string folder, const Clock& clock,
              std::string suffix = "");
  ~EventWriter();
  // `tolerate` is called with the first failure. If it returns true, the failure is no error: this
  // and all further calls return OK and write nothing.
  void SetTolerance(std::function<bool(const absl::Status& failure)> tolerate) {
    tolerate_ = std::move(tolerate);
  }
  // Writes simple_value summaries, all for one step.
  absl::Status WriteScalars(int64_t step, const std::vector<Scalar>& scalars);
  absl::Status WriteSummary(int64_t step, const Summary& summary);
  // Writes an encoded GraphDef; TensorBoard shows the last one of a run.
  absl::Status WriteGraph(std::string_view graph_def);
  absl::Status Flush();
  absl::Status Close();

 private:
  absl::Status Open();
  absl::Status Write(const std::string& event);
  // Keeps the first failure. Returns it, or OK if it is tolerated.
  absl::Status Conclude(const absl::Status& status);

  struct File;
  io::FileSystem& files_;
  std::string folder_;
  const Clock& clock_;
  std::string suffix_;
  std::unique_ptr<File> file_;
  std::function<bool(const absl::Status& failure)> tolerate_;
  absl::Status failure_;
  bool tolerated_ = false;  // failure_
};

// Reads the scalars in order, for readers of Muster's own files (best exporter, tests). DATA_LOSS
// with the byte offset for a broken record. A last record that is cut, because its writer was
// killed or is still writing, is not broken: the events before it are returned.
struct ScalarEvent {
  double wall_time = 0;
  int64_t step = 0;
  std::string tag;
  float value = 0;
};
absl::StatusOr<std::vector<ScalarEvent>> ReadScalarEvents(io::FileSystem& files,
                                                          const std::string& path);

}  // namespace muster::formats
