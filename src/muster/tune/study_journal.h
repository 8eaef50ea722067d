// StudyJournal: a study that any thread may ask and tell, and that continues after kill -9 at any
// moment with the same trials. Its events are made durable before a call returns; calls of several
// threads share one sync.
//
// The file is a record log (docs/formats/record_log.md). Its first record is {"event": "study",
// "version": 1, "search": ...}: what the study searches, which must be the same to continue.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/formats/record_log.h"
#include "muster/tune/study.h"

namespace muster::tune {

// Thread-safe.
class StudyJournal {
 public:
  // Continues the study in the file, or begins one. `search` is what may not change between its
  // runs; FAILED_PRECONDITION names the first member that did. The caller holds a lock on the
  // study. `files` and `clock` must outlive the journal.
  static absl::StatusOr<std::unique_ptr<StudyJournal>> Open(io::FileSystem& files,
                                                            const Clock& clock,
                                                            const std::string& path,
                                                            const Json& search, StudySpec spec);

  // Tells how a trial ended, if `ended` is given, and asks for the next one, with one sync.
  // nullopt: no trial is left for this caller. After an error of the file every call returns it.
  absl::StatusOr<std::optional<Trial>> Next(const Outcome* ended);
  // Begins a trial at a point that the caller has chosen.
  absl::StatusOr<Trial> Begin(const Point& point);
  // Tells how a running trial ended.
  absl::Status Tell(const Outcome& ended);
  // `trial` is running. Returns why it must stop, or "".
  absl::StatusOr<std::string> AddReport(int64_t trial, const Report& report);
  // NOT_FOUND for a number that the study has not given.
  absl::StatusOr<Trial> Find(int64_t trial) const;

  // Asks for no further trials: the caller was told to end.
  void Stop();

  // Copies, of one moment.
  struct Snapshot {
    History history;
    std::string end;
    double elapsed = 0;
    absl::Status status;
  };
  Snapshot GetSnapshot() const;
  // Cheap numbers for a display.
  struct Progress {
    int64_t complete = 0, stopped = 0, failed = 0, running = 0;
    std::optional<Trial> best = {};
    double elapsed = 0;
  };
  Progress GetProgress() const;
  // Trials that earlier runs have ended.
  int64_t ended_before() const { return ended_before_; }
  const StudySpec& spec() const { return study_->spec(); }

 private:
  StudyJournal(const Clock& clock, std::unique_ptr<Study> study,
               std::unique_ptr<formats::RecordLog> log)
      : clock_(clock), study_(std::move(study)), log_(std::move(log)) {}
  double Elapsed() const;
  void KeepBest(int64_t trial);
  // Returns when all events so far are durable.
  absl::Status Commit(std::unique_lock<std::mutex>& lock, std::vector<Json> events);

  const Clock& clock_;
  int64_t start_ = 0;
  double elapsed_before_ = 0;
  int64_t ended_before_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable written_;
  // Guarded by mutex_:
  std::unique_ptr<Study> study_;
  std::vector<Json> pending_;
  uint64_t appended_ = 0, durable_ = 0;  // events
  bool is_writing_ = false;              // one of the callers; only it uses log_
  bool stopped_ = false;
  int64_t best_ = -1;
  absl::Status failure_;

  const std::unique_ptr<formats::RecordLog> log_;
};

}  // namespace muster::tune
