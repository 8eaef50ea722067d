// Progress: reports how far a long command is, to a person or a program.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/clock.h"
#include "muster/train/loop/replica_rates.h"

namespace muster::train {

struct ProgressState {
  std::string verb = "train";  // "train", "evaluate", "predict"
  int64_t step = 0;
  int64_t first_step = 0;   // where this run began
  int64_t total_steps = 0;  // 0: unknown
  int64_t epoch = 0;        // 1-based
  int64_t epochs = 0;       // 0: unknown
  uint64_t examples = 0;    // since the start of this run
  // Of data that grows: about how many of its records are not read yet.
  std::optional<uint64_t> lag = {};
  double loss = 0;  // mean since the last report
  bool has_loss = false;
  // The metrics of the epoch so far, by the names that the model gives them.
  std::vector<std::pair<std::string, double>> metrics = {};
  // The rates of replicas that do the steps together.
  std::vector<ReplicaRates::Rate> replicas = {};
  ReplicaRates::Straggler straggler = {};
};

enum class ProgressStyle {
  kTerminal,  // one line, rewritten ten times a second, cut to the width of the terminal
  kLog,       // a line every few seconds
  kJson,      // a line with an object every few seconds
  kNone,
};

// Writes to a file descriptor (stderr, or stdout for kJson). One owner thread.
class Progress {
 public:
  Progress(ProgressStyle style, int fd, const Clock& clock);
  ~Progress();  // ends the terminal's line

  // Prints if a report is due, and always if `last`. Cheap enough for every step.
  void Update(const ProgressState& state, bool last = false);
  // Prints the last state of work that is complete: the steps that were taken are all, since rows
  // that were left out, which the total counts, are known at the end.
  void Finish(ProgressState state);
  // Whether Update would print now: values that are expensive to compute can wait until then.
  bool due() const { return style_ != ProgressStyle::kNone && clock_.MonotonicNanos() >= next_; }
  // Prints a separate line at once; in kJson an object with the event "note" and this text. Dropped
  // by kNone.
  void Note(const std::string& text);
  // Like Note, but not dropped by kNone: for a result that differs from the requested one. Prints
  // "warning: TEXT"; in kJson a note whose "level" is "warning".
  void Warn(const std::string& text);
  double seconds() const;  // since construction, without excluded seconds
  // Returns another Progress in the same style, for other work in between (an evaluation within a
  // training). Exclude() its seconds afterwards, so that they do not count in this one's rate.
  Progress Nested();
  void Exclude(double seconds);

 private:
  void WriteNote(const std::string& text, bool warning);
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

// kTerminal when `fd` is a terminal whose lines can be written again, else kLog.
ProgressStyle StyleFor(int fd);

}  // namespace muster::train
