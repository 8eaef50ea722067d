#include "muster/control/journal.h"

#include <utility>

namespace muster::control {
namespace {

constexpr uint64_t kRewriteBytes = uint64_t{4} << 20;  // longer than this it is written anew

JournalState Merge(const formats::RecordLogContents& log) {
  JournalState journal = {.lines = static_cast<int64_t>(log.records.size()), .torn = log.torn};
  for (const Json& record : log.records) journal.state.merge_patch(record);
  return journal;
}

}  // namespace

absl::StatusOr<JournalState> ParseJournal(std::string_view bytes, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const auto log, formats::ParseRecordLog(bytes, name));
  return Merge(log);
}

absl::StatusOr<JournalState> ReadJournal(io::FileSystem& files, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const auto log, formats::ReadRecordLog(files, path));
  return Merge(log);
}

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(io::FileSystem& files, std::string path) {
  auto read = ReadJournal(files, path);
  if (!read.ok() && !absl::IsNotFound(read.status())) return read.status();
  std::unique_ptr<Journal> journal(new Journal(files, std::move(path)));
  if (read.ok()) journal->state_ = std::move(read->state);
  return journal;
}

absl::Status Journal::Append(const Json& state) {
  const bool rewrite = rewrite_ || log_.bytes() > kRewriteBytes;
  const Json record = rewrite ? state : formats::MergePatch(state_, state);
  if (!rewrite && record.empty()) return absl::OkStatus();
  const absl::Status status = rewrite ? log_.Replace({&record, 1}) : log_.Append({&record, 1});
  rewrite_ = !status.ok();
  if (!status.ok()) return Annotate(status, "cannot record the next step in the journal");
  state_ = state;
  return absl::OkStatus();
}

}  // namespace muster::control
