// Study: the state machine of a search. Trials are asked for, report values while they run, and are
// told how they ended. Each change is an event, as JSON; the same events in the same order give the
// same study, so that a study continues from a journal of them (study_journal.h).
//
//   {"event": "trial", "trial": 7, "point": {"train.batch_size": 64}, "member": 3, "parent": 2}
//   {"event": "report", "trial": 7, "resource": 2, "value": 0.91, "records": 78144, "step": 154,
//    "stop": "..."}
//   {"event": "end", "trial": 7, "state": "complete", "resource": 3, "value": 0.92, "records":
//   117216,
//    "step": 231, "seconds": 3.2, "elapsed": 40.1}
//
// Only trials of a population have a member, and a parent if they continue from one.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/tune/history.h"
#include "muster/tune/population.h"
#include "muster/tune/sampler.h"
#include "muster/tune/scheduler.h"

namespace muster::tune {

// What a study may use; 0: no limit.
struct Budget {
  int64_t trials = 0;
  uint64_t records = 0;  // read by all trials: no further trial begins
  double seconds = 0;    // of the study: no further trial begins, running ones stop
};

struct StudySpec {
  Space space;
  Goal goal;
  SamplerSpec sampler = {};
  SchedulerSpec scheduler = {};
  Budget budget = {};
  uint64_t seed = 1;
};

// A study whose first trials all fail ends after so many.
inline constexpr int kMostFailures = 5;

// How a trial ended.
struct Outcome {
  int64_t trial = 0;
  TrialState state = TrialState::kComplete;
  bool has_value = false;
  Report last = {};  // the value at its end; the records also of a trial without a value
  double seconds = 0;
  std::string error = {};  // of a failed trial
};

// One owner thread.
class Study {
 public:
  // Errors are those of NewSampler.
  static absl::StatusOr<std::unique_ptr<Study>> Create(StudySpec spec);

  // Each of these adds its events, which the study has applied. `elapsed`: seconds of the study.
  //
  // The next trial to run: one that a killed process has left running, or a new one. nullopt: none
  // will be given any more, or, while end() is "", none before a member of the population has ended
  // its trial.
  std::optional<int64_t> Ask(double elapsed, std::vector<Json>* events);
  // Begins a trial at a point that the caller has chosen, whatever the budget says. In a population
  // that is not complete it is that of a new member, else it belongs to none.
  int64_t Begin(const Point& point, std::vector<Json>* events);
  // A value of a running trial. Returns why it must stop, or "". A resource that is not above the
  // trial's last one, which a trial that begins again reports again, changes nothing.
  std::string AddReport(int64_t trial, const Report& report, double elapsed,
                        std::vector<Json>* events);
  // A running trial has ended.
  void Tell(const Outcome& outcome, double elapsed, std::vector<Json>* events);

  // Applies an event of a journal. DATA_LOSS if it does not follow from the ones before.
  absl::Status Apply(const Json& event);
  // After the last event of a journal: trials that were running must run again.
  void RequeueRunning();

  const StudySpec& spec() const { return spec_; }
  const History& history() const { return history_; }
  double elapsed() const { return elapsed_; }  // at the last end of a trial
  int64_t Count(TrialState state) const { return counts_[static_cast<size_t>(state)]; }
  // Why no further trial is given; "" before that.
  const std::string& end() const { return end_; }
  // FAILED_PRECONDITION with the first cause if the first trials all failed.
  absl::Status status() const;

 private:
  explicit Study(StudySpec spec) : spec_(std::move(spec)) {}
  bool AllFail() const;
  std::string WhyEnd(double elapsed) const;
  int64_t BeginTrial(const Point& point, int64_t member, int64_t parent, std::vector<Json>* events);
  absl::Status SetOrigin(const Json& event, Trial* trial) const;
  void Emit(Json event, std::vector<Json>* events);
  absl::Status ApplyTrial(const Json& event);
  absl::Status ApplyReport(const Json& event);
  absl::Status ApplyEnd(const Json& event);
  absl::StatusOr<Trial*> FindRunning(const Json& event);
  void CountRecords(const Trial& trial, uint64_t records);

  const StudySpec spec_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Scheduler> scheduler_;
  std::optional<Population> population_;
  int64_t members_ = 0;  // of the population, that have begun
  History history_;
  std::deque<int64_t> waiting_;  // running trials whose process was killed
  int64_t counts_[4] = {};
  uint64_t records_ = 0;  // of all trials, as far as they were reported
  double elapsed_ = 0;
  std::string end_;
};

}  // namespace muster::tune
