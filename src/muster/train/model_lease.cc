#include "muster/train/model_lease.h"

#include <random>
#include <utility>

#include "absl/strings/str_format.h"

#include "muster/checkpoint/saver.h"
#include "muster/formats/json_fields.h"
#include "muster/process/identity.h"

namespace muster::train {
namespace {

using formats::Json;
using process::Liveness;
using process::ProcessIdentity;

constexpr char kFileName[] = "muster.lease";
constexpr uint64_t kMaxBytes = 1 << 16;

struct Holder {
  WriterName name;
  ProcessIdentity process;
};

std::string Print(const Holder& holder) {
  const uint64_t nonce = (uint64_t{std::random_device()()} << 32) | std::random_device()();
  const Json json = {{"job", holder.name.job},
                     {"task", holder.name.task},
                     {"incarnation", holder.name.incarnation},
                     {"host", holder.process.host},
                     {"pid", holder.process.pid},
                     {"start_ticks", holder.process.start_ticks},
                     {"machine", holder.process.machine},
                     {"nonce", absl::StrFormat("%016x", nonce)}};
  return StrCat(formats::PrintJson(json), "\n");
}

absl::StatusOr<Holder> Parse(std::string_view text, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const Json json, formats::ParseJsonObject(text, path));
  formats::JsonFields fields(json, path);
  Holder holder;
  holder.name.job = fields.Text("job");
  holder.name.task = fields.Text("task");
  holder.name.incarnation = fields.Int("incarnation", 0, 0, INT64_MAX);
  holder.process.host = fields.Text("host");
  holder.process.pid = static_cast<pid_t>(fields.Int("pid", 0, 0, INT32_MAX));
  holder.process.start_ticks = static_cast<uint64_t>(fields.Int("start_ticks", 0, 0, INT64_MAX));
  holder.process.machine = fields.Text("machine");
  MUSTER_RETURN_IF_ERROR(fields.status());
  return holder;
}

// "chief-0 of job 'clicks' (incarnation 3), process 123 on host node7".
std::string Describe(const Holder& holder) {
  std::string text;
  if (!holder.name.task.empty()) text = StrCat(holder.name.task, " ");
  if (!holder.name.job.empty()) {
    text += StrCat("of job '", holder.name.job, "' (incarnation ", holder.name.incarnation, "), ");
  }
  return StrCat(text, "process ", holder.process.pid, " on host ", holder.process.host);
}

// Why `self` may not take the lease from `holder`; OK: it may.
absl::Status CheckTaking(const Holder& holder, const Holder& self, const std::string& folder,
                         const std::string& path) {
  const Liveness liveness = process::LivenessOf(holder.process);
  const bool same_task = !self.name.job.empty() && self.name.job == holder.name.job &&
                         self.name.task == holder.name.task;
  if (liveness == Liveness::kDead) return absl::OkStatus();
  if (same_task && self.name.incarnation > holder.name.incarnation) return absl::OkStatus();
  const std::string who =
      StrCat("model folder ", folder, " is being trained by ", Describe(holder));
  if (liveness == Liveness::kAlive) {
    return absl::FailedPreconditionError(
        StrCat(who, ": stop that one first, or give another --model-dir"));
  }
  return absl::FailedPreconditionError(
      StrCat(who,
             ", where this machine cannot look: give another --model-dir, or if that process "
             "is no more, remove ",
             path));
}

class LeaseGuard : public Hook {
 public:
  explicit LeaseGuard(const ModelLease& lease) : lease_(lease) {}

  absl::Status AfterRun(Session& session, const StepValues&) override {
    constexpr int64_t kNanos = 1'000'000'000;
    const int64_t now = session.clock.MonotonicNanos();
    if (now - checked_nanos_ < kNanos) return absl::OkStatus();
    checked_nanos_ = now;
    return lease_.Check();
  }

 private:
  const ModelLease& lease_;
  int64_t checked_nanos_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ModelLease>> ModelLease::Take(io::FileSystem& files,
                                                             const std::string& folder,
                                                             const WriterName& name) {
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  std::unique_ptr<ModelLease> lease(new ModelLease(files, io::JoinPath(folder, kFileName)));
  const Holder self = {name, process::ThisProcess()};
  const auto text = io::ReadFile(files, lease->path_, kMaxBytes);
  if (text.ok()) {
    // One that cannot be read was torn by a crash: nobody has it.
    const auto holder = Parse(*text, lease->path_);
    if (holder.ok()) {
      MUSTER_RETURN_IF_ERROR(CheckTaking(*holder, self, folder, lease->path_));
    }
  } else if (!absl::IsNotFound(text.status())) {
    return text.status();
  }
  const std::string own = Print(self);
  MUSTER_RETURN_IF_ERROR(
      Annotate(io::WriteFileAtomically(files, lease->path_, own), "taking the model folder"));
  lease->own_ = own;
  // What a fenced writer has not renamed, it shall not find.
  checkpoint::RemoveLeftovers(files, folder);
  // Of two that took it at once the later has it.
  MUSTER_RETURN_IF_ERROR(lease->Check());
  return lease;
}

ModelLease::~ModelLease() {
  if (!own_.empty() && Check().ok()) files_.Remove(path_).IgnoreError();
}

absl::Status ModelLease::Check() const {
  const auto text = io::ReadFile(files_, path_, kMaxBytes);
  if (text.ok() && *text == own_) return absl::OkStatus();
  if (absl::IsNotFound(text.status())) {
    return absl::AbortedError(StrCat(path_, " was removed while this process trained: it changes ",
                                     "nothing more, since another may have trained there"));
  }
  MUSTER_RETURN_IF_ERROR(text.status());
  const auto holder = Parse(*text, path_);
  return absl::AbortedError(StrCat(
      "this process was replaced while it slept, and changes nothing more in ", io::Dirname(path_),
      ": now ", holder.ok() ? Describe(*holder) : "another", " trains there"));
}

std::unique_ptr<Hook> NewLeaseGuard(const ModelLease& lease) {
  return std::make_unique<LeaseGuard>(lease);
}

}  // namespace muster::train
