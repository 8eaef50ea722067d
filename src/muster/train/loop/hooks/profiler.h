// Profiler: writes the times of the parts of a step to MODEL_DIR/timeline-<step>.json, which
// chrome://tracing (or ui.perfetto.dev) shows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/train/loop/hook.h"

namespace muster::train {

// Profiles the first step of a run and then every `steps`-th. Spans: "input wait",
// "forward-backward" with the "update" of each variable inside it, and "save" when a checkpoint was
// due. `folder` "": MODEL_DIR. steps > 0.
std::unique_ptr<Hook> NewProfiler(int64_t steps, std::string folder = "");

// Returns the trace in Chrome's trace event format: complete events, in microseconds since the
// first.
std::string ChromeTrace(const StepTrace& trace, int64_t step);

}  // namespace muster::train
