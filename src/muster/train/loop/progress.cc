#include "muster/train/loop/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

#include "muster/base/number_text.h"
#include "muster/base/strings.h"
#include "muster/base/terminal.h"
#include "nlohmann/json.hpp"

namespace muster::train {
namespace {

constexpr int64_t kTerminalInterval = 100'000'000;
constexpr int64_t kLogInterval = 5'000'000'000;

// The total is an estimate where replicas take turns at the last records.
int64_t GetTotal(const ProgressState& state) {
  return state.total_steps > 0 ? std::max(state.total_steps, state.step) : 0;
}

}  // namespace

ProgressStyle StyleFor(int fd) {
  return CanRewrite(fd) ? ProgressStyle::kTerminal : ProgressStyle::kLog;
}

Progress::Progress(ProgressStyle style, int fd, const Clock& clock)
    : style_(style), fd_(fd), clock_(clock), start_(clock.MonotonicNanos()) {
  next_ = start_ + (style == ProgressStyle::kTerminal ? kTerminalInterval : kLogInterval);
}

Progress::~Progress() {
  if (line_open_) Write("\n");
}

double Progress::seconds() const {
  return static_cast<double>(clock_.MonotonicNanos() - start_) * 1e-9;
}

Progress Progress::Nested() {
  if (line_open_) Write("\n");
  line_open_ = false;
  return Progress(style_, fd_, clock_);
}

void Progress::Exclude(double seconds) { start_ += static_cast<int64_t>(seconds * 1e9); }

void Progress::Update(const ProgressState& state, bool last) {
  if (style_ == ProgressStyle::kNone) return;
  const int64_t now = clock_.MonotonicNanos();
  if (now < next_ && !last) return;
  next_ = now + (style_ == ProgressStyle::kTerminal ? kTerminalInterval : kLogInterval);
  switch (style_) {
    case ProgressStyle::kTerminal:
      // The last column stays free: some terminals begin a new line after it.
      Write(StrCat("\r", FitColumns(Line(state), TerminalWidth(fd_) - 1), "\x1b[K",
                   last ? "\n" : ""));
      line_open_ = !last;
      break;
    case ProgressStyle::kLog:
      Write(StrCat(Line(state), "\n"));
      break;
    case ProgressStyle::kJson:
      Write(StrCat(Json(state), "\n"));
      break;
    case ProgressStyle::kNone:
      break;
  }
}

void Progress::Finish(ProgressState state) {
  if (state.total_steps > 0) state.total_steps = state.step;
  Update(state, /*last=*/true);
}

void Progress::Note(const std::string& text) {
  if (style_ != ProgressStyle::kNone) WriteNote(text, /*warning=*/false);
}

void Progress::Warn(const std::string& text) { WriteNote(text, /*warning=*/true); }

void Progress::WriteNote(const std::string& text, bool warning) {
  if (style_ == ProgressStyle::kJson) {
    nlohmann::ordered_json object = {{"event", "note"}, {"text", text}};
    if (warning) object["level"] = "warning";
    return Write(StrCat(
        object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), "\n"));
  }
  Write(StrCat(line_open_ ? "\r\x1b[K" : "", warning ? "warning: " : "", text, "\n"));
  line_open_ = false;
}

std::string Progress::Line(const ProgressState& state) const {
  const double elapsed = std::max(seconds(), 1e-9);
  std::string line = absl::StrFormat("%s  step %d", state.verb, state.step);
  if (state.total_steps > 0) line += absl::StrFormat("/%d", GetTotal(state));
  if (state.epochs > 0) line += absl::StrFormat("  epoch %d/%d", state.epoch, state.epochs);
  line += StrCat("  ", FormatCount(static_cast<double>(state.examples) / elapsed), " examples/s");
  if (state.lag) line += StrCat("  lag ", GroupDigits(*state.lag));
  if (!state.straggler.task.empty()) {
    line += StrCat("  ", state.straggler.task, " holds the others up",
                   absl::StrFormat(" (%.1fx)", state.straggler.times));
  }
  if (state.has_loss) line += absl::StrFormat("  loss %.4f", state.loss);
  for (const auto& [name, value] : state.metrics) line += absl::StrFormat("  %s %.4f", name, value);
  if (state.total_steps > state.step && state.examples > 0 && state.step > 0) {
    const double rate = static_cast<double>(state.step - state.first_step) / elapsed;
    if (rate > 0) {
      line +=
          StrCat("  ", FormatDuration(static_cast<double>(state.total_steps - state.step) / rate),
                 " left");
    }
  }
  return line;
}

std::string Progress::Json(const ProgressState& state) const {
  const double elapsed = std::max(seconds(), 1e-9);
  std::string json = absl::StrFormat(
      R"({"event":"progress","verb":"%s","step":%d,"total_steps":%d,"epoch":%d,"examples":%d,)"
      R"("examples_per_second":%.1f,"seconds":%.3f)",
      state.verb, state.step, GetTotal(state), state.epoch, state.examples,
      static_cast<double>(state.examples) / elapsed, elapsed);
  if (state.lag) json += absl::StrFormat(R"(,"lag":%d)", *state.lag);
  if (state.has_loss) json += absl::StrFormat(R"(,"loss":%.6g)", state.loss);
  if (!state.metrics.empty()) {
    nlohmann::ordered_json metrics;
    for (const auto& [name, value] : state.metrics) metrics[name] = value;
    json += StrCat(R"(,"metrics":)", metrics.dump());
  }
  if (state.replicas.size() > 1) {
    nlohmann::ordered_json replicas = nlohmann::ordered_json::array();
    for (const auto& [task, rate] : state.replicas) {
      replicas.push_back({{"task", task}, {"examples_per_second", rate}});
    }
    json += StrCat(R"(,"replicas":)", replicas.dump());
    json += absl::StrFormat(R"(,"straggler":"%s")", state.straggler.task);
  }
  return StrCat(json, "}");
}

void Progress::Write(const std::string& text) const {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(fd_, text.data() + done, text.size() - done);
    if (n <= 0) return;  // a closed terminal does not stop the work
    done += static_cast<size_t>(n);
  }
}

}  // namespace muster::train
