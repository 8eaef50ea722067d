#include "muster/net/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"

#include "muster/io/file_system.h"

namespace muster::net {
namespace {

int OpenFile(const std::string& path, int flags) {
  int fd;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

absl::Status WriteAll(int fd, std::string_view contents, const std::string& path) {
  while (!contents.empty()) {
    const ssize_t written = write(fd, contents.data(), contents.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, StrCat("write ", path));
    }
    contents.remove_prefix(static_cast<size_t>(written));
  }
  if (fsync(fd) != 0) return ErrnoStatus(errno, StrCat("sync ", path));
  return absl::OkStatus();
}

absl::Status WriteTemporary(const std::string& temporary, std::string_view contents) {
  unlink(temporary.c_str());  // of an earlier process with our number
  const int fd = OpenFile(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
  if (fd < 0) return ErrnoStatus(errno, StrCat("create ", temporary));
  absl::Status status = WriteAll(fd, contents, temporary);
  if (close(fd) != 0 && status.ok()) status = ErrnoStatus(errno, StrCat("close ", temporary));
  return status;
}

absl::Status SyncFolder(const std::string& folder) {
  const int fd = OpenFile(folder, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return ErrnoStatus(errno, StrCat("open ", folder));
  const int failed = fsync(fd);
  const int error = errno;
  close(fd);
  return failed == 0 ? absl::OkStatus() : ErrnoStatus(error, StrCat("sync ", folder));
}

bool IsOurGroup(gid_t group) {
  if (group == getegid()) return true;
  const int count = getgroups(0, nullptr);
  std::vector<gid_t> groups(static_cast<size_t>(std::max(count, 0)));
  const int got = getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<size_t>(std::max(got, 0)));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

// Kubernetes mounts a Secret like this for a pod with fsGroup: it belongs to root, that group may
// read it, and nobody may write it.
bool IsMountedSecret(const struct stat& info) {
  return info.st_uid == 0 && (info.st_mode & 07777 & ~0440) == 0 && IsOurGroup(info.st_gid);
}

std::string ModeText(const struct stat& info) {
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", info.st_mode & 07777);
  return mode;
}

absl::Status CheckOwner(int fd, const std::string& path, struct stat* info) {
  if (fstat(fd, info) != 0) return ErrnoStatus(errno, StrCat("stat ", path));
  if (!S_ISREG(info->st_mode)) {
    return absl::InvalidArgumentError(StrCat("read secret ", path, ": it is no regular file"));
  }
  if (info->st_uid != geteuid() && info->st_uid != 0) {
    return absl::PermissionDeniedError(StrCat("read secret ", path, ": it belongs to user ",
                                              info->st_uid, ", who could change it; use a file of ",
                                              "your own"));
  }
  return absl::OkStatus();
}

absl::Status CheckWhoReads(int fd, const std::string& path) {
  struct stat info;
  MUSTER_RETURN_IF_ERROR(CheckOwner(fd, path, &info));
  if ((info.st_mode & 077) != 0 && !IsMountedSecret(info)) {
    return absl::PermissionDeniedError(StrCat(
        "read secret ", path, ": its mode ", ModeText(info),
        " lets others at it; make a new secret, or if nobody saw this one: chmod 600 ", path,
        " (of a mounted Secret: defaultMode 0400, and fsGroup for a user that is not root)"));
  }
  return absl::OkStatus();
}

absl::Status CheckWhoWrites(int fd, const std::string& path) {
  struct stat info;
  MUSTER_RETURN_IF_ERROR(CheckOwner(fd, path, &info));
  if ((info.st_mode & 022) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(StrCat("read secret ", path, ": its mode ", ModeText(info),
                                            " lets others change it; chmod go-w ", path));
}

absl::StatusOr<std::string> ReadAll(int fd, const std::string& name, size_t max_bytes) {
  std::string contents;
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got == 0) return contents;
    if (got < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, StrCat("read secret ", name));
    }
    contents.append(buffer, static_cast<size_t>(got));
    if (contents.size() > max_bytes) {
      return absl::InvalidArgumentError(StrCat("read secret ", name, ": it has more than the ",
                                               max_bytes, " bytes that are accepted here"));
    }
  }
}

absl::StatusOr<std::string> ReadChecked(const std::string& path, size_t max_bytes,
                                        absl::Status (*check)(int fd, const std::string& path)) {
  // The file is opened without waiting, so that a named pipe in its place cannot hold us.
  const int fd = OpenFile(path, O_RDONLY | O_NONBLOCK);
  if (fd < 0 && errno == EACCES) {
    return absl::PermissionDeniedError(
        StrCat("read secret ", path, ": the user ", geteuid(),
               " may not read it (a mounted Secret of Kubernetes: give the pod a securityContext "
               "with fsGroup, if its user is not root)"));
  }
  if (fd < 0) return ErrnoStatus(errno, StrCat("read secret ", path));
  const absl::Cleanup closer = [fd] { close(fd); };
  MUSTER_RETURN_IF_ERROR(check(fd, path));
  return ReadAll(fd, path, max_bytes);
}

}  // namespace

absl::Status WriteSecretFile(const std::string& path, std::string_view contents) {
  const std::string temporary = io::TemporaryPath(path);
  absl::Status status = WriteTemporary(temporary, contents);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(errno, StrCat("rename ", temporary, " to ", path));
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return SyncFolder(io::Dirname(path));
}

absl::StatusOr<std::string> ReadSecretFile(const std::string& path, size_t max_bytes) {
  return ReadChecked(path, max_bytes, CheckWhoReads);
}

absl::StatusOr<std::string> ReadMountedSecretFile(const std::string& path, size_t max_bytes) {
  return ReadChecked(path, max_bytes, CheckWhoWrites);
}

absl::StatusOr<std::string> ReadSecretDescriptor(int descriptor, const std::string& name,
                                                 size_t max_bytes) {
  const absl::Cleanup closer = [descriptor] { close(descriptor); };
  return ReadAll(descriptor, name, max_bytes);
}

}  // namespace muster::net
