#include "muster/train/model_lease.h"

#include <chrono>
#include <optional>
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
constexpr char kStudyFile[] = "study.log";  // of tune/study_folder.h
constexpr char kBeatEnd[] = ".beat";
// The time between two reads of a lease of another machine.
constexpr double kLeaseLookSeconds = 0.5;
constexpr uint64_t kMaxBytes = 1 << 16;

struct Holder {
  WriterName name;
  ProcessIdentity process;
  double beat_seconds = 0;  // 0: it is not renewed
};

std::string NewNonce() {
  const uint64_t nonce = (uint64_t{std::random_device()()} << 32) | std::random_device()();
  return absl::StrFormat("%016x", nonce);
}

std::string Print(const Holder& holder, const std::string& nonce) {
  const Json json = {{"job", holder.name.job},
                     {"task", holder.name.task},
                     {"incarnation", holder.name.incarnation},
                     {"host", holder.process.host},
                     {"pid", holder.process.pid},
                     {"start_ticks", holder.process.start_ticks},
                     {"machine", holder.process.machine},
                     {"beat_seconds", holder.beat_seconds},
                     {"nonce", nonce}};
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
  holder.beat_seconds = fields.Number("beat_seconds", 0);
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

// Waits until it is certain whether a folder's lease is free.
class LeaseWait {
 public:
  LeaseWait(io::FileSystem& files, const std::string& folder, const std::string& path,
            const Holder& self, const LeaseOptions& options)
      : files_(files), folder_(folder), path_(path), self_(self), options_(options) {}

  // Returns when the lease is free, or says why it is not.
  absl::Status Await(const Clock& clock) {
    while (true) {
      MUSTER_ASSIGN_OR_RETURN(const std::optional<std::string> text, Read(path_));
      if (!text) return absl::OkStatus();
      const auto holder = Parse(*text, path_);
      // A lease that cannot be parsed was damaged by a crash: no process has it.
      if (!holder.ok() || IsFree(*holder)) return absl::OkStatus();
      const bool elsewhere = process::GetLiveness(holder->process) == Liveness::kElsewhere;
      if (!elsewhere || holder->beat_seconds <= 0) return Refusal(*holder, elsewhere);
      MUSTER_ASSIGN_OR_RETURN(const std::optional<std::string> beat, Read(path_ + kBeatEnd));
      MUSTER_ASSIGN_OR_RETURN(
          const bool expired,
          HasExpired(*holder, StrCat(*text, beat.value_or("")), clock.MonotonicNanos()));
      if (expired) return absl::OkStatus();
      Sleep();
    }
  }

  // Says which process of this machine has the lease.
  absl::Status CheckHere() const {
    MUSTER_ASSIGN_OR_RETURN(const std::optional<std::string> text, Read(path_));
    if (!text) return absl::OkStatus();
    const auto holder = Parse(*text, path_);
    if (!holder.ok() || process::GetLiveness(holder->process) != Liveness::kAlive) {
      return absl::OkStatus();
    }
    return Refusal(*holder, /*elsewhere=*/false);
  }

 private:
  // The contents of the file; nullopt if there is none.
  absl::StatusOr<std::optional<std::string>> Read(const std::string& path) const {
    auto text = io::ReadFile(files_, path, kMaxBytes);
    if (absl::IsNotFound(text.status())) return std::nullopt;
    MUSTER_RETURN_IF_ERROR(text.status());
    return *std::move(text);
  }

  bool IsFree(const Holder& holder) const {
    if (process::GetLiveness(holder.process) == Liveness::kDead) return true;
    return !self_.name.job.empty() && self_.name.job == holder.name.job &&
           self_.name.task == holder.name.task && self_.name.incarnation > holder.name.incarnation;
  }

  // Whether `sign`, the contents of the holder's files, has not changed for expiry_seconds.
  absl::StatusOr<bool> HasExpired(const Holder& holder, const std::string& sign,
                                  int64_t now_nanos) {
    if (!sign_) {
      sign_ = sign;
      since_nanos_ = now_nanos;
      if (options_.note) {
        options_.note(StrCat("model folder ", folder_, " was last trained by ", Describe(holder),
                             ", on another machine: waiting up to ", options_.expiry_seconds,
                             " s for a sign of life"));
      }
    }
    const double seconds = static_cast<double>(now_nanos - since_nanos_) * 1e-9;
    if (sign != *sign_) return Refusal(holder, /*elsewhere=*/true);
    if (options_.stop != nullptr && *options_.stop) {
      return absl::CancelledError(
          StrCat("stopped while waiting for a sign of life of ", Describe(holder)));
    }
    return seconds >= options_.expiry_seconds;
  }

  absl::Status Refusal(const Holder& holder, bool elsewhere) const {
    const std::string who =
        StrCat("model folder ", folder_, " is being trained by ", Describe(holder));
    if (!elsewhere) {
      return absl::FailedPreconditionError(
          StrCat(who, ": stop that one first, or give another --model-dir",
                 holder.name.job.empty()
                     ? ""
                     : "; where the command that started it was killed, its tasks end by "
                       "themselves within a minute, and muster resume JOB goes on with them"));
    }
    if (holder.beat_seconds > 0) {
      return absl::FailedPreconditionError(
          StrCat(who, ", which renews its lease: stop that one first, or give another ",
                 "--model-dir; the folder is free ", options_.expiry_seconds,
                 " s after that process has ended"));
    }
    return absl::FailedPreconditionError(
        StrCat(who, ", which this machine cannot check: give another --model-dir, or, if that ",
               "process has ended, remove ", path_));
  }

  void Sleep() const {
    if (options_.sleep) return options_.sleep(kLeaseLookSeconds);
    std::this_thread::sleep_for(std::chrono::duration<double>(kLeaseLookSeconds));
  }

  io::FileSystem& files_;
  const std::string& folder_;
  const std::string& path_;
  const Holder& self_;
  const LeaseOptions& options_;
  std::optional<std::string> sign_;  // at the first read
  int64_t since_nanos_ = 0;
};

class LeaseGuard : public Hook {
 public:
  explicit LeaseGuard(const ModelLease& lease) : lease_(lease) {}

  absl::Status WhileWaiting(Session& session) override { return Check(session); }
  absl::Status AfterRun(Session& session, const StepValues&) override { return Check(session); }

 private:
  absl::Status Check(Session& session) {
    constexpr int64_t kNanos = 1'000'000'000;
    const int64_t now = session.clock.MonotonicNanos();
    if (now - checked_nanos_ < kNanos) return absl::OkStatus();
    checked_nanos_ = now;
    return lease_.Check();
  }

  const ModelLease& lease_;
  int64_t checked_nanos_ = 0;
};

}  // namespace

absl::Status CheckNobodyTrainsHere(io::FileSystem& files, const std::string& folder) {
  const std::string path = io::JoinPath(folder, kFileName);
  return LeaseWait(files, folder, path, {}, {}).CheckHere();
}

ModelLease::ModelLease(io::FileSystem& files, std::string path)
    : files_(files), path_(std::move(path)), nonce_(NewNonce()) {}

absl::StatusOr<std::unique_ptr<ModelLease>> ModelLease::Acquire(io::FileSystem& files,
                                                                const std::string& folder,
                                                                const WriterName& name,
                                                                const Clock& clock,
                                                                const LeaseOptions& options) {
  if (files.Stat(io::JoinPath(folder, kStudyFile)).ok()) {
    return absl::FailedPreconditionError(
        StrCat(folder, " is the folder of a study of muster tune: give another --model-dir"));
  }
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  std::unique_ptr<ModelLease> lease(new ModelLease(files, io::JoinPath(folder, kFileName)));
  const Holder self = {name, options.process, options.beat_seconds};
  MUSTER_RETURN_IF_ERROR(LeaseWait(files, folder, lease->path_, self, options).Await(clock));
  const std::string own = Print(self, lease->nonce_);
  MUSTER_RETURN_IF_ERROR(Annotate(io::WriteFileAtomically(files, lease->path_, own),
                                  "acquiring the lease of the model folder"));
  lease->own_ = own;
  // A fenced writer must not find the files that it has not yet renamed.
  checkpoint::RemoveLeftovers(files, folder);
  // If two processes took the lease at once, the later one has it.
  MUSTER_RETURN_IF_ERROR(lease->Check());
  MUSTER_RETURN_IF_ERROR(Annotate(lease->Beat(), "acquiring the lease of the model folder"));
  lease->thread_ = std::jthread([raw = lease.get(), beat_seconds = options.beat_seconds](
                                    const std::stop_token& stop) { raw->Run(stop, beat_seconds); });
  return lease;
}

ModelLease::~ModelLease() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  if (own_.empty() || !Check().ok()) return;
  // While this process has the lease, no other one writes its files.
  io::RemoveTemporaries(files_, path_);
  files_.Remove(path_ + kBeatEnd).IgnoreError();
  files_.Remove(path_).IgnoreError();
}

// Writes the file in place: its contents need not be intact, only the change matters.
absl::Status ModelLease::Beat() {
  MUSTER_ASSIGN_OR_RETURN(const auto file, files_.OpenForWrite(path_ + kBeatEnd));
  const absl::Status written = file->Append(StrCat(nonce_, " ", ++beats_, "\n"));
  const absl::Status closed = file->Close();
  return written.ok() ? closed : written;
}

void ModelLease::Run(const std::stop_token& stop, double beat_seconds) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    stopped_.wait_for(lock, stop, std::chrono::duration<double>(beat_seconds),
                      [] { return false; });
    if (stop.stop_requested()) return;
    const absl::Status held = Check();
    if (absl::IsAborted(held)) return;  // another process has the lease
    // A failed heartbeat does no harm: there are several in expiry_seconds.
    if (held.ok()) Beat().IgnoreError();
  }
}

bool ModelLease::IsLastSeen(const io::FileInfo& info) const {
  const std::lock_guard lock(seen_mutex_);
  return !seen_.identity.empty() && info.identity == seen_.identity &&
         info.modified_ns == seen_.modified_ns && info.size == seen_.size;
}

// A process that acquires the lease makes a new file, which has another identity.
absl::Status ModelLease::CheckIdentity() const {
  const auto info = files_.Stat(path_);
  if (info.ok() && IsLastSeen(*info)) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(Check());
  const std::lock_guard lock(seen_mutex_);
  seen_ = info.value_or(io::FileInfo());
  return absl::OkStatus();
}

absl::Status ModelLease::Check() const {
  const auto text = io::ReadFile(files_, path_, kMaxBytes);
  if (text.ok() && *text == own_) return absl::OkStatus();
  if (absl::IsNotFound(text.status())) {
    return absl::AbortedError(StrCat(path_, " was removed while this process trained: it stops ",
                                     "writing, since another process may have trained there"));
  }
  MUSTER_RETURN_IF_ERROR(text.status());
  const auto holder = Parse(*text, path_);
  return absl::AbortedError(StrCat(
      "this process was replaced, and stops writing to ", io::Dirname(path_), ": now ",
      holder.ok() ? Describe(*holder) : "another process",
      ", which was started later, trains there; either this process did not run for a while and "
      "its "
      "launcher replaced it, or two tasks were started under one name: then give each of them its "
      "own place in TF_CONFIG, or another --model-dir"));
}

std::unique_ptr<Hook> NewLeaseGuard(const ModelLease& lease) {
  return std::make_unique<LeaseGuard>(lease);
}

}  // namespace muster::train
