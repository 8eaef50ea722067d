#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include <protozero/pbf_builder.hpp>

#include "muster/formats/event.h"
#include "muster/formats/event_fields.h"
#include "muster/formats/tfrecord.h"
#include "muster/io/background_file.h"
#include "muster/io/path_scheme.h"

namespace muster::formats {
namespace {

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

// An event is sent to a remote file system so many seconds after it was written at the latest, and
// no flush waits for that.
constexpr double kRemoteFlushSeconds = 5;

bool IsRemote(const std::string& path) {
  const std::string_view scheme = io::PathScheme(path);
  return !scheme.empty() && scheme != io::kFileScheme;
}

// Returns a path events.out.tfevents.SECONDS.HOST[.N]SUFFIX that does not exist yet.
absl::StatusOr<std::string> NewEventPath(io::FileSystem& files, const std::string& folder,
                                         double wall_seconds, const std::string& suffix) {
  const std::string stem = absl::StrFormat("events.out.tfevents.%010d.%s",
                                           static_cast<int64_t>(wall_seconds), HostName());
  for (int n = 0;; ++n) {
    std::string path = io::JoinPath(folder, StrCat(stem, n == 0 ? "" : StrCat(".", n), suffix));
    const absl::Status status = files.Stat(path).status();
    if (absl::IsNotFound(status)) return path;
    MUSTER_RETURN_IF_ERROR(status);
  }
}

std::string VersionEvent(double wall_time) {
  std::string bytes;
  protozero::pbf_builder<EventField> event(bytes);
  event.add_double(EventField::kWallTime, wall_time);
  event.add_string(EventField::kFileVersion, "brain.Event:2");
  return bytes;
}

std::string SummaryEvent(double wall_time, int64_t step, const Summary& summary) {
  std::string bytes;
  protozero::pbf_builder<EventField> event(bytes);
  event.add_double(EventField::kWallTime, wall_time);
  event.add_int64(EventField::kStep, step);
  event.add_message(EventField::kSummary, summary.bytes());
  return bytes;
}

std::string GraphEvent(double wall_time, std::string_view graph_def) {
  std::string bytes;
  protozero::pbf_builder<EventField> event(bytes);
  event.add_double(EventField::kWallTime, wall_time);
  event.add_bytes(EventField::kGraphDef, graph_def.data(), graph_def.size());
  return bytes;
}

}  // namespace

struct EventWriter::File {
  // The TFRecord writer owns the file. The file may be flushed directly, since the TFRecord writer
  // buffers nothing.
  io::WritableFile* file = nullptr;
  std::unique_ptr<TfRecordWriter> records;
};

EventWriter::EventWriter(io::FileSystem& files, std::string folder, const Clock& clock,
                         std::string suffix)
    : files_(files), folder_(std::move(folder)), clock_(clock), suffix_(std::move(suffix)) {}

EventWriter::~EventWriter() {
  tolerate_ = nullptr;  // nobody continues
  Close().IgnoreError();
}

absl::Status EventWriter::Open() {
  const double now = clock_.WallSeconds();
  MUSTER_RETURN_IF_ERROR(files_.MakeFolders(folder_));
  MUSTER_ASSIGN_OR_RETURN(const std::string path, NewEventPath(files_, folder_, now, suffix_));
  MUSTER_ASSIGN_OR_RETURN(auto file, files_.OpenForWrite(path));
  auto opened = std::make_unique<File>();
  if (IsRemote(path)) {
    file = std::make_unique<io::BackgroundFile>(std::move(file), kRemoteFlushSeconds);
  }
  opened->file = file.get();
  MUSTER_ASSIGN_OR_RETURN(opened->records,
                          TfRecordWriter::Create(std::move(file), Compression::kNone));
  file_ = std::move(opened);
  return file_->records->Write(VersionEvent(now));
}

absl::Status EventWriter::Conclude(const absl::Status& status) {
  if (failure_.ok() && !status.ok()) {
    failure_ = status;
    tolerated_ = tolerate_ && tolerate_(status);
    // The disk may be full: what was buffered is not written any more.
    if (tolerated_ && file_) file_->records->Close().IgnoreError();
    if (tolerated_) file_.reset();
  }
  return tolerated_ ? absl::OkStatus() : failure_;
}

absl::Status EventWriter::Write(const std::string& event) {
  if (!failure_.ok()) return Conclude(failure_);
  if (!file_) MUSTER_RETURN_IF_ERROR(Conclude(Open()));
  return file_ ? Conclude(file_->records->Write(event)) : absl::OkStatus();
}

absl::Status EventWriter::WriteScalars(int64_t step, const std::vector<Scalar>& scalars) {
  Summary summary;
  for (const auto& [tag, value] : scalars) summary.AddScalar(tag, value);
  return WriteSummary(step, summary);
}

absl::Status EventWriter::WriteSummary(int64_t step, const Summary& summary) {
  return Write(SummaryEvent(clock_.WallSeconds(), step, summary));
}

absl::Status EventWriter::WriteGraph(std::string_view graph_def) {
  return Write(GraphEvent(clock_.WallSeconds(), graph_def));
}

absl::Status EventWriter::Flush() {
  return file_ ? Conclude(file_->file->Flush()) : absl::OkStatus();
}

absl::Status EventWriter::Close() {
  const absl::Status closed = file_ ? file_->records->Close() : absl::OkStatus();
  file_.reset();
  return Conclude(closed);
}

}  // namespace muster::formats
