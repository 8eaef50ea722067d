#include "muster/cli/train/follow_group.h"

#include <deque>
#include <string>
#include <utility>

#include "muster/base/strings.h"
#include "muster/checkpoint/checkpoint_state.h"
#include "muster/io/file_system.h"

namespace muster::cli {
namespace {

class FollowGroupHook : public train::Hook {
 public:
  explicit FollowGroupHook(std::unique_ptr<data::TrainedOffsets> offsets)
      : offsets_(std::move(offsets)) {}

  absl::Status AfterCreateSession(train::Session& session) override {
    if (session.data.position) Update(session, segment_ = session.data.position->epoch);
    return absl::OkStatus();
  }
  absl::Status AfterRun(train::Session& session, const train::StepValues& values) override {
    Update(session, segment_ = values.epoch);
    return absl::OkStatus();
  }
  // The training waits when it has taken all records of its segment.
  absl::Status WhileWaiting(train::Session& session) override {
    if (segment_ >= 0) Update(session, segment_ + 1);
    return absl::OkStatus();
  }
  absl::Status End(train::Session& session) override {
    CommitSaved(session);
    return absl::OkStatus();
  }

 private:
  // Weights of this step, or a later one, have so many segments.
  struct Trained {
    int64_t segments = 0, step = 0;
  };

  // The weights have all records of the first `segments`.
  void Update(train::Session& session, int64_t segments) {
    const int64_t known = trained_.empty() ? committed_ : trained_.back().segments;
    if (segments > known) trained_.push_back({.segments = segments, .step = session.step});
    CommitSaved(session);
  }

  void CommitSaved(train::Session& session) {
    if (trained_.empty() || session.checkpoint.prefix == tried_) return;
    const std::string index = StrCat(io::Basename(session.checkpoint.prefix), ".index");
    const auto saved = checkpoint::ParseIndexStep(index);
    int64_t segments = 0;
    while (saved && !trained_.empty() && trained_.front().step <= *saved) {
      segments = trained_.front().segments;
      trained_.pop_front();
    }
    if (segments == 0) return;
    tried_ = session.checkpoint.prefix;
    const absl::Status committed = offsets_->Commit(session.files, segments);
    if (committed.ok()) {
      committed_ = segments;
    } else if (!failed_) {
      session.progress.Warn(StrCat(ToStd(committed.message()),
                                   "; the training goes on, and commits after later checkpoints"));
    }
    failed_ = !committed.ok();
  }

  const std::unique_ptr<data::TrainedOffsets> offsets_;
  int64_t segment_ = -1;         // of the last batch
  std::deque<Trained> trained_;  // what is not committed yet, the oldest first
  int64_t committed_ = 0;        // segments
  std::string tried_;            // the checkpoint after which was committed last
  bool failed_ = false;          // the last commit
};

}  // namespace

std::shared_ptr<train::Hook> NewFollowGroupHook(std::unique_ptr<data::TrainedOffsets> offsets) {
  return std::make_shared<FollowGroupHook>(std::move(offsets));
}

}  // namespace muster::cli
