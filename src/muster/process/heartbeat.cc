#include "muster/process/heartbeat.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

namespace muster::process {
namespace {

constexpr char kVariable[] = "MUSTER_PULSE";
constexpr int kDescriptor = 3;  // of the program
constexpr auto kBeat = std::chrono::milliseconds(500);
constexpr double kLongestLookSeconds = 1;
constexpr char kBeats = '.';
constexpr char kEnds = '!';

// Returns the descriptor if the variable was set by this process's own parent; otherwise -1.
int Asked() {
  const char* const value = std::getenv(kVariable);
  if (value == nullptr) return -1;
  const char* const end = value + std::strlen(value);
  int fd = -1;
  pid_t starter = 0;
  const auto first = std::from_chars(value, end, fd);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ':') return -1;
  const auto second = std::from_chars(first.ptr + 1, end, starter);
  if (second.ec != std::errc() || second.ptr != end || starter != getppid()) return -1;
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode) ? fd : -1;
}

}  // namespace

std::unique_ptr<Heartbeat> Heartbeat::StartIfAsked() {
  const int fd = Asked();
  if (fd < 0) return nullptr;
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
  return std::unique_ptr<Heartbeat>(new Heartbeat(fd));
}

Heartbeat::Heartbeat(int fd)
    : fd_(fd), thread_([this](const std::stop_token& stop) { Beat(stop); }) {}

Heartbeat::~Heartbeat() {
  thread_.request_stop();
  thread_.join();
  (void)!write(fd_, &kEnds, 1);
}

void Heartbeat::Beat(const std::stop_token& stop) const {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals, a broken pipe's too, are not for it
  std::mutex mutex;
  std::condition_variable_any ended;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    (void)!write(fd_, &kBeats, 1);  // a full pipe has enough of them
    ended.wait_for(lock, stop, kBeat, [] { return false; });
  }
}

absl::StatusOr<HeartbeatWatch> HeartbeatWatch::Create(ChildSpec* spec, bool beats) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return ErrnoStatus(errno, "making a pipe for the task's pulse");
  }
  HeartbeatWatch watch;
  watch.beats_ = beats;
  watch.reader_ = Descriptor(ends[0]);
  watch.writer_ = Descriptor(ends[1]);
  spec->inherited.push_back({.from = ends[1], .to = kDescriptor});
  SetEnvironment(kVariable, StrCat(kDescriptor, ":", getpid()), &spec->environment);
  return watch;
}

double HeartbeatWatch::Look(int64_t now_nanos) {
  std::array<char, 256> beats;
  bool heard = false;
  ssize_t n;
  while ((n = read(reader_.get(), beats.data(), beats.size())) > 0) {
    heard = true;
    beats_ = beats[static_cast<size_t>(n) - 1] != kEnds;
  }
  const double passed = static_cast<double>(now_nanos - looked_nanos_) * 1e-9;
  looked_nanos_ = now_nanos;
  silent_seconds_ = heard || !beats_ ? 0 : silent_seconds_ + std::min(passed, kLongestLookSeconds);
  return silent_seconds_;
}

}  // namespace muster::process
