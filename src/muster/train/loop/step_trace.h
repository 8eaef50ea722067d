// StepTrace: the times of the parts of a step, as spans for chrome://tracing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/clock.h"

namespace muster::train {

// One owner thread.
class StepTrace {
 public:
  struct Span {
    std::string name;            // "input wait", "forward-backward", "update", "save"
    int64_t begin = 0, end = 0;  // Clock::MonotonicNanos
  };

  explicit StepTrace(const Clock& clock) : clock_(clock) {}
  int64_t Now() const { return clock_.MonotonicNanos(); }
  void Add(std::string name, int64_t begin, int64_t end) {
    spans_.push_back({std::move(name), begin, end});
  }
  const std::vector<Span>& spans() const { return spans_; }

 private:
  const Clock& clock_;
  std::vector<Span> spans_;
};

// Adds a span to `trace` that lasts from construction to destruction; does nothing if `trace` is
// null.
class TraceScope {
 public:
  TraceScope(StepTrace* trace, const char* name)
      : trace_(trace), name_(name), begin_(trace == nullptr ? 0 : trace->Now()) {}
  ~TraceScope() {
    if (trace_ != nullptr) trace_->Add(name_, begin_, trace_->Now());
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  StepTrace* const trace_;
  const char* const name_;
  const int64_t begin_;
};

}  // namespace muster::train
