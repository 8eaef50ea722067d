#include "muster/cli/jobs/start_coordinator.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "muster/cli/jobs/job_client.h"

namespace muster::cli {
namespace {

constexpr int kReadyFd = 3;

// Returns what the coordinator writes before it closes the pipe: "ok", or what went wrong; "" if it
// died.
std::string ReadAll(int fd) {
  std::string text;
  char buffer[512];
  ssize_t size = 0;
  while ((size = read(fd, buffer, sizeof buffer)) > 0 || (size < 0 && errno == EINTR)) {
    if (size > 0) text.append(buffer, static_cast<size_t>(size));
  }
  return text;
}

// Starts `muster VERB FOLDER`, which answers once the job runs.
absl::StatusOr<std::unique_ptr<process::Child>> StartVerb(const control::JobFolder& folder,
                                                          const std::string& verb) {
  MUSTER_ASSIGN_OR_RETURN(const std::string program, OwnProgram());
  const std::string log_path = folder.coordinator_log();
  const process::Descriptor log(
      open(log_path.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600));
  if (!log.valid()) return ErrnoStatus(errno, StrCat("cannot open ", log_path));
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  const process::Descriptor reader(ready[0]);
  process::Descriptor writer(ready[1]);
  process::ChildSpec spec;
  spec.argv = {program, verb, folder.path, "--ready-fd", StrCat(kReadyFd)};
  spec.environment = process::CurrentEnvironment();
  spec.stdout_fd = spec.stderr_fd = log.get();
  spec.inherited = {{writer.get(), kReadyFd}};
  spec.parent_death_signal = 0;
  MUSTER_ASSIGN_OR_RETURN(auto child, process::Child::Start(spec));
  writer.Reset();
  const std::string answer = ReadAll(reader.get());
  if (answer == "ok") return child;
  return absl::AbortedError(answer.empty() ? StrCat("the coordinator ended: see ", log_path)
                                           : answer);
}

}  // namespace

absl::StatusOr<std::unique_ptr<process::Child>> StartCoordinator(const control::JobFolder& folder) {
  return StartVerb(folder, "coordinator");
}

absl::Status StartSupervised(const control::JobFolder& folder) {
  MUSTER_ASSIGN_OR_RETURN(const auto supervisor, StartVerb(folder, "supervise"));
  supervisor->LetGo();
  return absl::OkStatus();
}

}  // namespace muster::cli
