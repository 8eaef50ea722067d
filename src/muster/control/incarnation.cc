#include "muster/control/incarnation.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <memory>

#include "muster/control/coordinator.h"
#include "muster/control/status_json.h"
#include "muster/files/file_systems.h"
#include "muster/io/private_file_system.h"

namespace muster::control {
namespace {

using formats::ParseJsonObject;
using formats::PrintJson;

constexpr mode_t kPrivate = 0600;

std::string GetFolder(const std::string& folder) { return io::JoinPath(folder, "agents"); }

std::string MarkPath(const std::string& folder, const IncarnationId& id) {
  return io::JoinPath(GetFolder(folder), IncarnationName(id.task, id.incarnation));
}

std::string EndPath(const std::string& folder, const IncarnationId& id) {
  return StrCat(MarkPath(folder, id), ".end");
}

// Makes a new locked file that holds this process's pid.
absl::StatusOr<int> MakeLocked(const std::string& path) {
  (void)unlink(path.c_str());  // of a process of the same pid that died here
  const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, kPrivate);
  if (fd < 0) return ErrnoStatus(errno, StrCat("cannot make ", path));
  const std::string pid = StrCat(getpid(), "\n");
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 ||
      write(fd, pid.data(), pid.size()) != static_cast<ssize_t>(pid.size())) {
    const absl::Status status = ErrnoStatus(errno, StrCat("cannot lock ", path));
    close(fd);
    return status;
  }
  return fd;
}

int PidIn(int fd) {
  char text[16] = {};
  const ssize_t size = pread(fd, text, sizeof text, 0);
  int pid = 0;
  if (size > 0) std::from_chars(text, text + size, pid);
  return pid;
}

}  // namespace

IncarnationClaim::~IncarnationClaim() {
  if (fd_ >= 0) close(fd_);
}

// The file gets its name when it is locked, so that nobody ever sees it unlocked before its end.
absl::StatusOr<std::optional<IncarnationClaim>> IncarnationClaim::Take(const std::string& folder,
                                                                       const IncarnationId& id) {
  const std::string path = MarkPath(folder, id);
  const std::string early = StrCat(GetFolder(folder), "/.", io::Basename(path), "-", getpid());
  MUSTER_ASSIGN_OR_RETURN(const int fd, MakeLocked(early));
  IncarnationClaim claim(fd);
  const int failure = link(early.c_str(), path.c_str()) == 0 ? 0 : errno;
  (void)unlink(early.c_str());
  if (failure == EEXIST) return std::optional<IncarnationClaim>();
  if (failure != 0) return ErrnoStatus(failure, StrCat("cannot make ", path));
  return std::optional<IncarnationClaim>(std::move(claim));
}

absl::StatusOr<IncarnationMark> LookAtIncarnation(const std::string& folder,
                                                  const IncarnationId& id) {
  const std::string path = MarkPath(folder, id);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return IncarnationMark{};
    return ErrnoStatus(errno, StrCat("cannot look at ", path));
  }
  IncarnationMark mark{IncarnationMark::State::kEnded, 0};
  if (flock(fd, LOCK_SH | LOCK_NB) != 0) mark = {IncarnationMark::State::kHeld, PidIn(fd)};
  close(fd);
  return mark;
}

absl::Status ForbidIncarnation(const std::string& folder, const IncarnationId& id) {
  const std::string path = MarkPath(folder, id);
  const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kPrivate);
  if (fd >= 0) {
    close(fd);
  } else if (errno != EEXIST) {
    return ErrnoStatus(errno, StrCat("cannot make ", path));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<IncarnationId>> ListIncarnations(const std::string& folder) {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const auto names, files->List(GetFolder(folder)));
  std::vector<IncarnationId> ids;
  for (const std::string& name : names) {
    const size_t dot = name.find('.');
    if (dot == 0 || dot == std::string::npos) continue;
    const auto task = job::ParseTaskName(std::string_view(name).substr(0, dot));
    IncarnationId id;
    const char* const end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + dot + 1, end, id.incarnation);
    if (!task || parsed.ec != std::errc() || parsed.ptr != end) continue;
    id.task = *task;
    ids.push_back(id);
  }
  return ids;
}

absl::Status WriteEnd(const std::string& folder, const IncarnationId& id, const job::TaskEnd& end) {
  const auto files = io::NewPrivateFileSystem();
  return io::WriteFileAtomically(*files, EndPath(folder, id), PrintJson(ToJson(end)));
}

absl::StatusOr<job::TaskEnd> ReadEnd(const std::string& folder, const IncarnationId& id) {
  const std::string path = EndPath(folder, id);
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const std::string text, io::ReadFile(*files, path, 1 << 20));
  MUSTER_ASSIGN_OR_RETURN(const Json json, ParseJsonObject(text, path));
  return EndFromJson(json, path);
}

std::string StepPath(const std::string& folder, const IncarnationId& id) {
  return StrCat(MarkPath(folder, id), ".step");
}

std::string GetMark(const std::string& folder, const IncarnationId& id) {
  return StrCat(folder, ":", IncarnationName(id.task, id.incarnation));
}

std::string GetMemoryGroup(const IncarnationId& id) {
  return StrCat(job::TaskName(id.task), "-", id.incarnation);
}

}  // namespace muster::control
