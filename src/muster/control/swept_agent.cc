#include "muster/control/swept_agent.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <limits>
#include <memory>
#include <utility>

#include "muster/control/agent.h"
#include "muster/process/child.h"

namespace muster::control {
namespace {

constexpr double kSweepSeconds = 60;
constexpr int kSignalled = 128;  // as a shell counts
// A killed agent's files are closed one after the other: the pipe may end before its lock does.
constexpr int kLockTries = 100, kLockMillis = 20;

void IgnoreSignal(int) {}

absl::StatusOr<std::unique_ptr<process::Child>> StartBeside(std::vector<std::string> command,
                                                            int fd, process::ChildSpec::Group group,
                                                            int parent_death_signal) {
  process::ChildSpec spec;
  spec.argv = std::move(command);
  spec.environment = process::CurrentEnvironment();
  spec.inherited = {{fd, kSweeperFd}};
  spec.group = group;
  spec.parent_death_signal = parent_death_signal;
  return process::Child::Start(spec);
}

}  // namespace

absl::StatusOr<int> RunSweptAgent(std::vector<std::string> agent,
                                  std::vector<std::string> sweeper) {
  // A function, since a child would inherit that signals are ignored.
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) std::signal(signal, IgnoreSignal);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  process::Descriptor reader(ends[0]), writer(ends[1]);
  using Group = process::ChildSpec::Group;
  MUSTER_ASSIGN_OR_RETURN(
      const auto sweeps,
      StartBeside(std::move(sweeper), reader.get(), Group::kOwnSession, /*parent_death_signal=*/0));
  MUSTER_ASSIGN_OR_RETURN(const auto runs,
                          StartBeside(std::move(agent), writer.get(), Group::kStarters, SIGKILL));
  reader.Reset();
  MUSTER_ASSIGN_OR_RETURN(const process::ExitInfo exit,
                          runs->Wait(std::numeric_limits<double>::infinity()));
  writer.Reset();
  const auto swept = sweeps->Wait(kSweepSeconds);
  if (!swept.ok()) sweeps->LetGo();
  return exit.signal != 0 ? kSignalled + exit.signal : exit.code;
}

absl::Status WaitForAgentAndSweep(const JobFolder& folder, const IncarnationId& id) {
  char byte = 0;
  while (read(kSweeperFd, &byte, 1) > 0 || errno == EINTR) errno = 0;
  absl::Status swept;
  for (int i = 0; i < kLockTries; ++i) {
    swept = SweepAgent(folder, id);
    if (!absl::IsFailedPrecondition(swept)) break;
    poll(nullptr, 0, kLockMillis);
  }
  return swept;
}

}  // namespace muster::control
