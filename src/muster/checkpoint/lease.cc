#include "muster/checkpoint/lease.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

namespace muster::checkpoint {
namespace {

constexpr char kMark[] = ".lease-";
constexpr uint64_t kMaxLeaseBytes = 1000;

// The file is not renamed into place: readers look only for a change of the file, whatever it
// contains, and the Saver removes temporary files as leftovers of killed saves.
absl::Status Write(io::FileSystem& files, const std::string& path, const std::string& text) {
  MUSTER_ASSIGN_OR_RETURN(const auto file, files.OpenForWrite(path));
  const absl::Status written = file->Append(text);
  const absl::Status closed = file->Close();
  return written.ok() ? closed : written;
}

void RemoveOthers(io::FileSystem& files, const std::string& folder, const std::string& holder) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return;
  const std::string end = StrCat(kMark, holder);
  for (const std::string& name : *names) {
    if (!GetLeasedCheckpoint(name).empty() && name.ends_with(end)) {
      files.Remove(io::JoinPath(folder, name)).IgnoreError();
    }
  }
}

}  // namespace

std::string GetLeasedCheckpoint(const std::string& name) {
  const size_t mark = name.find(kMark);
  const bool is_lease = name.starts_with("model.ckpt-") && mark != std::string::npos;
  return is_lease ? name.substr(0, mark) : "";
}

Lease::Lease(io::FileSystem& files, std::string path)
    : files_(files), path_(std::move(path)), nonce_(std::random_device()()) {}

absl::StatusOr<std::unique_ptr<Lease>> Lease::Acquire(io::FileSystem& files,
                                                      const std::string& prefix,
                                                      const std::string& holder,
                                                      double beat_seconds) {
  RemoveOthers(files, io::Dirname(prefix), holder);
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  std::unique_ptr<Lease> lease(new Lease(files, StrCat(prefix, kMark, holder)));
  MUSTER_RETURN_IF_ERROR(Annotate(lease->Beat(), StrCat("acquiring a lease on ", prefix)));
  // This check comes after the lease was written: a checkpoint that exists now will not be removed.
  MUSTER_RETURN_IF_ERROR(files.Stat(prefix + ".index").status());
  lease->thread_ = std::jthread([raw = lease.get(), beat_seconds](const std::stop_token& stop) {
    raw->Run(stop, beat_seconds);
  });
  return lease;
}

Lease::~Lease() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  files_.Remove(path_).IgnoreError();
}

absl::Status Lease::Beat() { return Write(files_, path_, StrCat(nonce_, " ", ++beats_, "\n")); }

void Lease::Run(const std::stop_token& stop, double beat_seconds) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    stopped_.wait_for(lock, stop, std::chrono::duration<double>(beat_seconds),
                      [] { return false; });
    // A heartbeat that fails does no harm: there are several in kLeaseSeconds.
    if (!stop.stop_requested()) Beat().IgnoreError();
  }
}

bool LeaseWatch::IsLeased(io::FileSystem& files, const std::string& prefix, double seconds) {
  const std::string folder = io::Dirname(prefix);
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return false;
  bool leased = false;
  for (const std::string& name : *names) {
    if (GetLeasedCheckpoint(name) != io::Basename(prefix)) continue;
    const std::string path = io::JoinPath(folder, name);
    const auto text = io::ReadFile(files, path, kMaxLeaseBytes);
    if (!text.ok()) continue;
    const auto [seen, first] = seen_.try_emplace(path, Seen{*text, seconds});
    if (seen->second.text != *text) seen->second = {*text, seconds};
    seen->second.since = std::min(seen->second.since, seconds);  // a clock may be set back
    leased = leased || seconds - seen->second.since < kLeaseSeconds;
  }
  return leased;
}

}  // namespace muster::checkpoint
