#include "muster/tune/study_journal.h"

#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

namespace muster::tune {
namespace {

constexpr int kVersion = 1;

// The names of the members in which two objects differ.
std::vector<std::string> FindDifferences(const Json& before, const Json& now) {
  std::vector<std::string> names;
  for (const auto& [name, value] : before.items()) {
    const auto found = now.find(name);
    if (found == now.end() || *found != value) names.push_back(name);
  }
  for (const auto& [name, value] : now.items()) {
    if (!before.contains(name)) names.push_back(name);
  }
  return names;
}

// "NAME was A, and is B now" for each member in which two objects differ; for a space each
// parameter is a member.
std::vector<std::string> DescribeDifferences(const Json& before, const Json& now,
                                             const std::string& prefix = "") {
  const auto show = [](const Json& from, const std::string& name) {
    return from.contains(name) ? formats::PrintJson(from[name]) : "absent";
  };
  std::vector<std::string> texts;
  for (const std::string& name : FindDifferences(before, now)) {
    if (prefix.empty() && name == "space") {
      texts = DescribeDifferences(before[name], now[name], "space.");
      if (texts.empty()) texts.emplace_back("the parameters of the space stand in another order");
      continue;
    }
    texts.push_back(
        StrCat(prefix, name, " was ", show(before, name), ", and is ", show(now, name), " now"));
  }
  return texts;
}

absl::Status CheckSearch(const Json& head, const Json& search, const std::string& path) {
  if (head.value("event", "") != "study" || head.value("version", 0) != kVersion ||
      !head.contains("search")) {
    return absl::DataLossError(StrCat(path, ": does not begin as the journal of a study"));
  }
  const std::vector<std::string> names = FindDifferences(head["search"], search);
  if (names.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat(path, ": the study there was begun with another '", absl::StrJoin(names, "', '"),
             "': ", absl::StrJoin(DescribeDifferences(head["search"], search), "; "),
             "; give another study folder, or set it back (a budget may change)"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StudyJournal>> StudyJournal::Open(io::FileSystem& files,
                                                                 const Clock& clock,
                                                                 const std::string& path,
                                                                 const Json& search,
                                                                 StudySpec spec) {
  formats::RecordLogContents contents;
  if (auto read = formats::ReadRecordLog(files, path); read.ok()) {
    contents = *std::move(read);
  } else if (!absl::IsNotFound(read.status())) {
    return read.status();
  }
  MUSTER_ASSIGN_OR_RETURN(auto study, Study::Create(std::move(spec)));
  const bool begins = contents.records.empty();
  if (!begins) MUSTER_RETURN_IF_ERROR(CheckSearch(contents.records.front(), search, path));
  for (size_t i = 1; i < contents.records.size(); ++i) {
    MUSTER_RETURN_IF_ERROR(
        Annotate(study->Apply(contents.records[i]), StrCat(path, ": line ", i + 1)));
  }
  study->RequeueRunning();
  auto log = std::make_unique<formats::RecordLog>(files, path, contents);
  if (begins) {
    const Json head = {{"event", "study"}, {"version", kVersion}, {"search", search}};
    MUSTER_RETURN_IF_ERROR(log->Append(std::span(&head, 1)));
  }
  std::unique_ptr<StudyJournal> journal(new StudyJournal(clock, std::move(study), std::move(log)));
  const Study& loaded = *journal->study_;
  journal->start_ = clock.MonotonicNanos();
  journal->elapsed_before_ = loaded.elapsed();
  journal->ended_before_ =
      static_cast<int64_t>(loaded.history().size()) - loaded.Count(TrialState::kRunning);
  if (const Trial* const best = FindBest(loaded.history(), loaded.spec().goal)) {
    journal->best_ = best->number;
  }
  return journal;
}

double StudyJournal::Elapsed() const {
  return elapsed_before_ + static_cast<double>(clock_.MonotonicNanos() - start_) * 1e-9;
}

// As FindBest, with one trial more.
void StudyJournal::KeepBest(int64_t trial) {
  const History& history = study_->history();
  History two = {history[static_cast<size_t>(trial)]};
  if (best_ >= 0) two.insert(two.begin(), history[static_cast<size_t>(best_)]);
  const Trial* const best = FindBest(two, study_->spec().goal);
  if (best != nullptr) best_ = best->number;
}

absl::StatusOr<std::optional<Trial>> StudyJournal::Next(const Outcome* ended) {
  std::unique_lock lock(mutex_);
  std::vector<Json> events;
  if (ended != nullptr) {
    study_->Tell(*ended, Elapsed(), &events);
    KeepBest(ended->trial);
  }
  std::optional<Trial> next;
  if (!stopped_) {
    if (const auto number = study_->Ask(Elapsed(), &events)) {
      next = study_->history()[static_cast<size_t>(*number)];
    }
  }
  MUSTER_RETURN_IF_ERROR(Commit(lock, std::move(events)));
  return next;
}

absl::StatusOr<Trial> StudyJournal::Begin(const Point& point) {
  std::unique_lock lock(mutex_);
  std::vector<Json> events;
  const int64_t number = study_->Begin(point, &events);
  Trial begun = study_->history()[static_cast<size_t>(number)];
  MUSTER_RETURN_IF_ERROR(Commit(lock, std::move(events)));
  return begun;
}

absl::Status StudyJournal::Tell(const Outcome& ended) {
  std::unique_lock lock(mutex_);
  std::vector<Json> events;
  study_->Tell(ended, Elapsed(), &events);
  KeepBest(ended.trial);
  return Commit(lock, std::move(events));
}

absl::StatusOr<Trial> StudyJournal::Find(int64_t trial) const {
  const std::unique_lock lock(mutex_);
  const History& history = study_->history();
  if (trial < 0 || trial >= static_cast<int64_t>(history.size())) {
    return absl::NotFoundError(StrCat("the study has no trial ", trial));
  }
  return history[static_cast<size_t>(trial)];
}

absl::StatusOr<std::string> StudyJournal::AddReport(int64_t trial, const Report& report) {
  std::unique_lock lock(mutex_);
  std::vector<Json> events;
  const std::string stop = study_->AddReport(trial, report, Elapsed(), &events);
  MUSTER_RETURN_IF_ERROR(Commit(lock, std::move(events)));
  return stop;
}

absl::Status StudyJournal::Commit(std::unique_lock<std::mutex>& lock, std::vector<Json> events) {
  appended_ += events.size();
  for (Json& event : events) pending_.push_back(std::move(event));
  const uint64_t own = appended_;
  while (failure_.ok() && durable_ < own) {
    if (is_writing_) {
      written_.wait(lock);
      continue;
    }
    // This caller writes what all callers have added so far.
    is_writing_ = true;
    const std::vector<Json> group = std::exchange(pending_, {});
    const uint64_t target = appended_;
    lock.unlock();
    const absl::Status status = log_->Append(group);
    lock.lock();
    is_writing_ = false;
    if (status.ok()) {
      durable_ = target;
    } else {
      failure_ = status;
    }
    written_.notify_all();
  }
  return failure_;
}

void StudyJournal::Stop() {
  const std::unique_lock lock(mutex_);
  stopped_ = true;
}

StudyJournal::Snapshot StudyJournal::GetSnapshot() const {
  const std::unique_lock lock(mutex_);
  return {.history = study_->history(),
          .end = study_->end(),
          .elapsed = Elapsed(),
          .status = study_->status()};
}

StudyJournal::Progress StudyJournal::GetProgress() const {
  const std::unique_lock lock(mutex_);
  Progress progress = {.complete = study_->Count(TrialState::kComplete),
                       .stopped = study_->Count(TrialState::kStopped),
                       .failed = study_->Count(TrialState::kFailed),
                       .running = study_->Count(TrialState::kRunning),
                       .elapsed = Elapsed()};
  if (best_ >= 0) progress.best = study_->history()[static_cast<size_t>(best_)];
  return progress;
}

}  // namespace muster::tune
