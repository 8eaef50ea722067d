#include "muster/files/tensorflow/start_service.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

extern char**
    environ;  // NOLINT(readability-redundant-declaration): not in every C library's header

namespace muster::files {
namespace {

// Beside the folder of this library, or as the Debian package and the archive have it.
constexpr const char* kPrograms[] = {"/../muster", "/../../../bin/muster"};

// "" if there is none.
std::string FindProgram() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&FindProgram), &info) == 0) return "";
  const std::string library = info.dli_fname;
  const std::string folder = library.substr(0, library.rfind('/'));
  for (const char* const program : kPrograms) {
    if (access((folder + program).c_str(), X_OK) == 0) return folder + program;
  }
  return "";
}

// Runs the program with `control` as its standard input until it has left the service behind.
int Spawn(const std::string& program, int control, int* status) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, control, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  char verb[] = "file-service";
  char* const arguments[] = {const_cast<char*>(program.c_str()), verb, nullptr};
  pid_t process = -1;
  const int error = posix_spawn(&process, program.c_str(), &files, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return error;
  while (waitpid(process, status, 0) < 0 && errno == EINTR) {
  }
  return 0;
}

Outcome StartService(int* control) {
  const std::string program = FindProgram();
  if (program.empty()) {
    return {Outcome::kFailedPrecondition,
            "there is no muster where libmuster-tensorflow-hdfs.so was installed with it: install "
            "both from the same build"};
  }
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return {Outcome::kResourceExhausted,
            std::string("cannot make a socket: ") + std::strerror(errno)};
  }
  int status = 0;
  const int error = Spawn(program, ends[1], &status);
  close(ends[1]);
  if (error == 0 && status == 0) {
    *control = ends[0];
    return {};
  }
  close(ends[0]);
  const std::string why = error != 0 ? std::strerror(error) : "it failed";
  return {Outcome::kUnavailable, "cannot start " + program + ": " + why};
}

}  // namespace

FileClient& ClientOfProcess() {
  static FileClient& client = *new FileClient(StartService);
  return client;
}

}  // namespace muster::files
