#include "muster/train/loop/hooks/step_file.h"

#include <filesystem>
#include <fstream>
#include <utility>

namespace muster::train {
namespace {

constexpr int64_t kNanosBetweenWrites = 1'000'000'000;

class StepFile : public Hook {
 public:
  explicit StepFile(std::string path) : path_(std::move(path)) {}

  absl::Status AfterRun(Session& session, const StepValues&) override {
    const int64_t now = session.clock.MonotonicNanos();
    if (now < next_) return absl::OkStatus();
    next_ = now + kNanosBetweenWrites;
    Write(session);
    return absl::OkStatus();
  }

  absl::Status End(Session& session) override {
    Write(session);
    return absl::OkStatus();
  }

 private:
  void Write(const Session& session) {
    std::string text = StrCat(session.step);
    const auto records = AllRecords(session);
    // Only the chief has an event writer; its counts are those of all replicas.
    if (session.events != nullptr && records) text += StrCat(" ", Print(*records));
    // A reader finds the old or the new text. The file is not synced, since that would hold up the
    // training on a slow disk.
    const std::string temporary = path_ + ".new";
    std::ofstream(temporary) << text << "\n";
    std::error_code ignored;
    std::filesystem::rename(temporary, path_, ignored);
  }

  const std::string path_;
  int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<Hook> NewStepFile(const std::string& path) {
  return std::make_unique<StepFile>(path);
}

}  // namespace muster::train
