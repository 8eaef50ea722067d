#include "muster/launch/slots/shared_state.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "muster/base/strings.h"

namespace muster::launch::slots {
namespace {

constexpr std::string_view kJournal = "journal-";
constexpr std::string_view kRecord = "slots-", kRecordEnding = ".json";
constexpr int kMaxTries = 20;  // of a claim while others claim

// The attempt of a name that begins and ends so; none: it is another file.
std::optional<int64_t> GetAttempt(std::string_view name, std::string_view prefix,
                                  std::string_view ending) {
  if (!name.starts_with(prefix) || !name.ends_with(ending)) return std::nullopt;
  if (name.size() < prefix.size() + ending.size()) return std::nullopt;
  name.remove_prefix(prefix.size());
  name.remove_suffix(ending.size());
  int64_t attempt = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), attempt);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return attempt;
}

absl::StatusOr<int64_t> FindLatest(io::FileSystem& files, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const auto names, files.List(folder));
  std::optional<int64_t> latest;
  for (const std::string& name : names) {
    if (const auto attempt = GetAttempt(name, kJournal, ""))
      latest = std::max(latest.value_or(0), *attempt);
  }
  if (latest) return *latest;
  return absl::NotFoundError(StrCat(folder, ": there is no journal of a job"));
}

// Takes the latest record, which may be older than the journal: an attempt that has claimed that
// may have ended before it took this.
absl::Status ClaimRecord(io::FileSystem& files, const std::string& folder, int64_t attempt) {
  MUSTER_ASSIGN_OR_RETURN(const auto names, files.List(folder));
  std::optional<int64_t> latest;
  for (const std::string& name : names) {
    const auto each = GetAttempt(name, kRecord, kRecordEnding);
    if (each && *each <= attempt) latest = std::max(latest.value_or(0), *each);
  }
  if (!latest || *latest == attempt) return absl::OkStatus();
  return files.Rename(GetSharedState(folder, *latest).record,
                      GetSharedState(folder, attempt).record);
}

}  // namespace

SharedState GetSharedState(const std::string& folder, int64_t attempt) {
  return {.journal = StrCat(folder, "/", kJournal, attempt),
          .record = StrCat(folder, "/", kRecord, attempt, kRecordEnding)};
}

absl::StatusOr<SharedState> ClaimSharedState(io::FileSystem& files, const std::string& folder,
                                             int64_t attempt) {
  const SharedState own = GetSharedState(folder, attempt);
  for (int i = 0; i < kMaxTries; ++i) {
    MUSTER_ASSIGN_OR_RETURN(const int64_t latest, FindLatest(files, folder));
    if (latest > attempt) {
      return absl::AbortedError(
          StrCat(folder, ": attempt ", latest, " has the job, and this is attempt ", attempt));
    }
    // The journal first: an earlier coordinator that writes its record after this finds that it has
    // no journal, and does nothing more.
    const absl::Status journal =
        latest == attempt ? absl::OkStatus()
                          : files.Rename(GetSharedState(folder, latest).journal, own.journal);
    if (journal.ok()) {
      MUSTER_RETURN_IF_ERROR(ClaimRecord(files, folder, attempt));
      return own;
    }
    if (!absl::IsNotFound(journal)) return journal;  // else another attempt was faster
  }
  return absl::AbortedError(StrCat(folder, ": other attempts claim the job all the time"));
}

absl::StatusOr<std::string> FindSharedJournal(io::FileSystem& files, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t latest, FindLatest(files, folder));
  return GetSharedState(folder, latest).journal;
}

}  // namespace muster::launch::slots
