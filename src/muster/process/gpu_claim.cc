#include "muster/process/gpu_claim.h"

#include <sys/file.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#include "muster/process/lock_file.h"
#include "muster/process/ports.h"
#include "muster/process/proc.h"

namespace muster::process {
namespace {

constexpr mode_t kMode = 0666;  // the process that locks it writes who it is
constexpr size_t kMaxHolder = 4096;

std::string LockPath(const std::string& folder, const std::string& gpu) {
  return StrCat(folder, "/gpu-", absl::StrReplaceAll(gpu, {{"/", "_"}}), ".lock");
}

std::string GetHolder(const std::string& path) {
  return ReadSmallFile(path, kMaxHolder).value_or("");
}

// Changing an exclusive lock into a shared one is not one step: another process may have taken the
// lock in between.
bool Share(int fd, const std::string& path, const std::string& holder) {
  return flock(fd, LOCK_SH | LOCK_NB) == 0 && IsStillThere(fd, path) && GetHolder(path) == holder;
}

// Whether the GPU was claimed, or the job that has claimed it already.
struct Attempt {
  bool claimed = false, was_ours = false;
  Descriptor lock = {};
  std::string other = {};
};

absl::StatusOr<Attempt> Try(const std::string& path, const std::string& gpu,
                            const std::string& holder) {
  MUSTER_ASSIGN_OR_RETURN(LockedFile locked, AcquireLockFile(path, kMode, StrCat("GPU ", gpu)));
  if (locked.state == LockState::kUnknown) return Attempt{.claimed = true};
  const bool was_ours = locked.state == LockState::kTaken && GetHolder(path) == holder;
  if (locked.state == LockState::kLocked) WriteLockFile(locked.file.get(), holder);
  if (locked.file.valid() && Share(locked.file.get(), path, holder)) {
    return Attempt{.claimed = true, .was_ours = was_ours, .lock = std::move(locked.file)};
  }
  return Attempt{.other = GetHolder(path)};
}

absl::Status TooFew(int wanted, const std::vector<std::string>& visible,
                    const std::map<std::string, std::string>& others) {
  const auto print = [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first, " is used by ",
                    entry.second.empty() ? "another job" : entry.second);
  };
  return absl::FailedPreconditionError(
      StrCat("deal out GPUs: the tasks want ", wanted, ", of this machine's ", visible.size(), " (",
             absl::StrJoin(visible, ","), ") ", absl::StrJoin(others, ", ", print),
             ": wait for its end, ask for fewer (--gpus, or the limits nvidia.com/gpu), or give "
             "--share-gpus"));
}

}  // namespace

absl::StatusOr<std::vector<GpuClaim>> ClaimGpus(const std::vector<std::string>& visible, int wanted,
                                                const std::string& holder,
                                                const std::string& folder) {
  std::string locks = folder;
  if (locks.empty() && wanted > 0) {
    MUSTER_ASSIGN_OR_RETURN(locks, DefaultLockFolder());
  }
  std::vector<GpuClaim> claims;
  std::map<std::string, std::string> others;
  // The GPUs that this job already has are claimed first. GPUs that are not wanted are not even
  // locked for a moment: a job that claims at the same time would take them for used.
  for (const bool own : {true, false}) {
    for (const std::string& gpu : visible) {
      if (std::cmp_equal(claims.size(), wanted)) return claims;
      const std::string path = LockPath(locks, gpu);
      const auto is_this = [&](const GpuClaim& claim) { return claim.gpu == gpu; };
      if (own ? GetHolder(path) != holder : std::ranges::any_of(claims, is_this)) continue;
      MUSTER_ASSIGN_OR_RETURN(Attempt attempt, Try(path, gpu, holder));
      if (attempt.claimed && (!own || attempt.was_ours)) {
        claims.push_back({.gpu = gpu, .lock = std::move(attempt.lock)});
      } else if (!attempt.claimed) {
        others[gpu] = attempt.other;
      }
    }
  }
  if (claims.size() < static_cast<size_t>(wanted)) return TooFew(wanted, visible, others);
  return claims;
}

}  // namespace muster::process
