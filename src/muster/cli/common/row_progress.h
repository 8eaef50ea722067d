// How far a verb is that reads rows, files or the like, on stderr: a line that is written again ten
// times a second on a terminal, a line every five seconds elsewhere. Nothing is printed in the
// first second: a short verb stays silent.
#pragma once

#include <cstdint>
#include <string>

#include "muster/base/clock.h"

namespace muster::cli {

// One owner thread. On a terminal its line is gone when it ends.
class RowProgress {
 public:
  // "convert", "rows". `quiet`: prints nothing.
  RowProgress(std::string verb, std::string things, bool quiet);
  ~RowProgress();
  RowProgress(const RowProgress&) = delete;
  RowProgress& operator=(const RowProgress&) = delete;

  // So many are done. `all`: how many there are; 0: unknown. Cheap: call it for each row.
  void Update(uint64_t done, uint64_t all = 0);
  // Says what is done now, at once and on a terminal alone, for work of which nobody can say how
  // far it is.
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
