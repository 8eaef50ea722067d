// Shows on stderr how far a verb has come that reads rows, files or the like: on a terminal one
// line, rewritten ten times a second; elsewhere a line every five seconds. Nothing is printed in
// the first second, so that a short verb is silent.
#pragma once

#include <cstdint>
#include <string>

#include "muster/base/clock.h"

namespace muster::cli {

// One owner thread. On a terminal the line is removed at the end.
class RowProgress {
 public:
  // `verb` and `things` are, for example, "convert" and "rows". `quiet`: prints nothing.
  RowProgress(std::string verb, std::string things, bool quiet);
  ~RowProgress();
  RowProgress(const RowProgress&) = delete;
  RowProgress& operator=(const RowProgress&) = delete;

  // Reports that `done` things are done, of `all` (0: unknown). Cheap: call it for each row.
  void Update(uint64_t done, uint64_t all = 0);
  // Shows `text` at once, on a terminal only; for work whose progress cannot be measured.
  void Say(const std::string& text);
  double seconds() const;  // since construction

 private:
  void Show(const std::string& text);

  const SystemClock clock_;
  const std::string verb_, things_;
  const bool rewrites_;
  const bool quiet_;
  const int64_t start_;
  int64_t next_;
  bool is_open_ = false;
};

}  // namespace muster::cli
