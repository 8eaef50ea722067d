#include "muster/train/loop/hooks/profiler.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"

namespace muster::train {
namespace {

class Profiler : public Hook {
 public:
  Profiler(int64_t steps, std::string folder) : steps_(steps), folder_(std::move(folder)) {}

  absl::Status Begin(Session& session) override {
    if (folder_.empty()) folder_ = session.config.model_dir;
    return session.files.MakeFolders(folder_);
  }

  absl::Status BeforeRun(Session& session) override {
    if (next_ && session.step + 1 < *next_) return absl::OkStatus();
    trace_.emplace(session.clock);
    session.trace = &*trace_;
    return absl::OkStatus();
  }

  absl::Status AfterRun(Session& session, const StepValues&) override {
    if (session.trace == nullptr) return absl::OkStatus();
    session.trace = nullptr;
    next_ = session.step + steps_;
    const std::string name = StrCat("timeline-", session.step, ".json");
    return Annotate(io::WriteFileAtomically(session.files, io::JoinPath(folder_, name),
                                            ChromeTrace(*trace_, session.step)),
                    "writing the profile of a step");
  }

  absl::Status End(Session& session) override {
    session.trace = nullptr;
    return absl::OkStatus();
  }

 private:
  const int64_t steps_;
  std::string folder_;
  std::optional<StepTrace> trace_;
  std::optional<int64_t> next_;
};

double Micros(int64_t nanos) { return static_cast<double>(nanos) * 1e-3; }

}  // namespace

std::unique_ptr<Hook> NewProfiler(int64_t steps, std::string folder) {
  return std::make_unique<Profiler>(steps, std::move(folder));
}

std::string ChromeTrace(const StepTrace& trace, int64_t step) {
  int64_t origin = trace.spans().empty() ? 0 : trace.spans().front().begin;
  for (const StepTrace::Span& span : trace.spans()) origin = std::min(origin, span.begin);
  std::string json = absl::StrFormat(
      "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
      "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"step %d\"}}",
      step);
  for (const StepTrace::Span& span : trace.spans()) {
    json += absl::StrFormat(
        ",\n{\"name\":\"%s\",\"cat\":\"train\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%.3f,"
        "\"dur\":%.3f}",
        span.name, Micros(span.begin - origin), Micros(span.end - span.begin));
  }
  return json + "\n]}\n";
}

}  // namespace muster::train
