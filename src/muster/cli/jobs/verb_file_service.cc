#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "CLI/CLI.hpp"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/verbs.h"
#include "muster/files/file_systems.h"
#include "muster/files/service/file_service.h"
#include "muster/process/child.h"

namespace muster::cli {
namespace {

absl::Status CheckControl() {
  int type = 0;
  socklen_t size = sizeof(type);
  if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &size) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "its standard input is no socket: this is started by libmuster-tensorflow-hdfs.so");
}

// Serves in a process that nobody waits for, which ends with the program that it serves: not by a
// signal before it, such as Ctrl-C, since that program may still write.
absl::Status RunFileService() {
  MUSTER_RETURN_IF_ERROR(CheckControl());
  const pid_t process = fork();
  if (process < 0) return ErrnoStatus(errno, "fork");
  if (process > 0) _exit(0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
  (void)close_range(STDERR_FILENO + 1, ~0U, 0);  // what the program had open
  const auto files = files::OpenFileSystems();
  files::FileService service(*files);
  const absl::Status status = service.Serve(STDIN_FILENO);
  if (!status.ok()) {
    std::fprintf(stderr, "muster file-service: %s\n", std::string(ToStd(status.message())).c_str());
  }
  _exit(status.ok() ? 0 : 1);  // calls that are still in progress have nobody who waits for them
}

}  // namespace

// The library for TensorFlow starts it: it is not listed.
void AddFileService(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "file-service", "Reaches hdfs:// for a program of TensorFlow (started by its library)");
  verb->group("");
  verb->callback([] { FailUnlessOk(RunFileService()); });
}

}  // namespace muster::cli
