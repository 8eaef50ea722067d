// Progress: how far a long command is, for a person or a program.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/train/replica_rates.h"

namespace muster::train {

struct ProgressState {
  std::string verb = "train";  // "train", "evaluate", "predict"
  int64_t step = 0;
  int64_t first_step = 0;   // where this run began
  int64_t total_steps = 0;  // 0: unknown
  int64_t epoch = 0;        // 1-based
  int64_t epochs = 0;       // 0: unknown
  uint64_t examples = 0;    // since the start of this run
  double loss = 0;          // mean since the last report
  bool has_loss = false;
  // Of several replicas that do the steps together.
  std::vector<ReplicaRates::Rate> replicas = {};
  ReplicaRates::Straggler straggler = {};
};

enum class ProgressStyle {
  kTerminal,  // one line, rewritten ten times a second
  kLog,       // a line every few seconds
  kJson,      // an object a line every few seconds
  kNone,
};

// Writes to a file descriptor (stderr, or stdout for kJson). One owner thread.
class Progress {
 public:
  Progress(ProgressStyle style, int fd, const Clock& clock);
  ~Progress();  // ends the terminal's line

  // Cheap; prints when it is time, always when `last`.
  void Update(const ProgressState& state, bool last = false);
  // Whether Update would print now: what is dear to find out can wait until then.
  bool due() const { return style_ != ProgressStyle::kNone && clock_.MonotonicNanos() >= next_; }
  // A line of its own, whatever the rate of the others; of kJson an object whose event is "note"
  // and whose text this is. Dropped by kNone.
  void Note(const std::string& text);
  double seconds() const;  // since construction, without what Exclude() took out
  // Another one, in the same style, for work of another kind in between (an evaluation within a
  // training); then Exclude() its seconds, so that the rate of this one stays its own.
  Progress Nested();
  void Exclude(double seconds);

 private:
  std::string Line(const ProgressState& state) const;
  std::string Json(const ProgressState& state) const;
  void Write(const std::string& text) const;

  const ProgressStyle style_;
  const int fd_;
  const Clock& clock_;
  int64_t start_;
  int64_t next_;
  bool line_open_ = false;
};

// kTerminal when `fd` is a terminal, else kLog.
ProgressStyle StyleFor(int fd);

std::string FormatCount(double count);       // "12.3k"
std::string FormatDuration(double seconds);  // "1m 05s"

}  // namespace muster::train
