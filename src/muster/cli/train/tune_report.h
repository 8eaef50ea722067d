// What `muster tune` says of a study: a line for each trial and one for the study, while it runs;
// the table, the best trial and the importance of parameters at its end.
#pragma once

#include <string>
#include <vector>

#include "muster/base/mutex.h"
#include "muster/cli/train/model_flags.h"
#include "muster/tune/study_journal.h"

namespace muster::cli {

// Thread-safe.
class TuneReport {
 public:
  // `journal` must outlive the report.
  TuneReport(const OutputFlags& output, const tune::StudyJournal& journal);

  // Of a study that continues.
  void SayContinues();
  void AddTrial(const tune::Trial& trial, const tune::Outcome& outcome);
  // Redraws the study's line on a terminal.
  void Tick();
  // Removes that line.
  void Close();

 private:
  std::string StudyLine() const;
  void Draw(const std::string& line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const OutputFlags output_;
  const tune::StudyJournal& journal_;
  const bool rewrites_;
  Mutex mutex_;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
};

// "train.batch_size=64 model.dnn.dropout=0.1".
std::string DescribePoint(const tune::Space& space, const tune::Point& point);

// What was made of the best trial.
struct BestTrial {
  const tune::Trial* trial = nullptr;
  std::vector<std::string> commands = {};  // that reproduce it, one after the other
  std::string saved_model = {};            // "" if none was made
  std::string model_dir = {};              // "": its program keeps it
};

void PrintStudy(const OutputFlags& output, const tune::StudySpec& spec,
                const tune::StudyJournal::Snapshot& study, const BestTrial& best);

}  // namespace muster::cli
