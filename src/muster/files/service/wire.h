// What the service of files and its client say to each other (docs/formats/file_service.md): both
// come from one build and run on one machine. Nothing of Abseil is used here: the client is part of
// a library that other programs load.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster::files {

inline constexpr uint32_t kFileServiceMagic = 0x5346'554D;  // "MUFS"
inline constexpr uint16_t kFileServiceVersion = 1;

enum class FileOp : uint16_t {
  kStat = 1,
  kList = 2,
  kMakeFolders = 3,
  kRename = 4,
  kRemove = 5,
  kRemoveAll = 6,
  kOpenForRead = 7,
  kOpenForWrite = 8,
  kOpenForAppend = 9,
  kRead = 10,
  kAppend = 11,
  kFlush = 12,
  kSync = 13,
  kClose = 14,
};

inline constexpr uint32_t kMaxPathBytes = uint32_t{64} << 10;
inline constexpr uint32_t kMaxPieceBytes = uint32_t{8} << 20;  // of what is read or appended

// Followed by the path and the data.
struct FileRequestHead {
  uint32_t magic = kFileServiceMagic;
  uint16_t version = kFileServiceVersion;
  uint16_t op = 0;
  uint32_t path_size = 0;
  uint32_t data_size = 0;
  uint64_t file = 0;    // as the answer to opening it numbered it
  uint64_t offset = 0;  // of what is read
  uint64_t size = 0;    // of what is read
};
static_assert(sizeof(FileRequestHead) == 40);

// Followed by the data: what was read, the names of a folder, each followed by '/', or, if `code`
// is not 0, a message.
struct FileAnswerHead {
  uint32_t code = 0;  // absl::StatusCode
  uint32_t data_size = 0;
  uint64_t number = 0;  // of the opened file
  uint64_t size = 0;    // of the file
  int64_t modified_ns = 0;
  uint64_t is_folder = 0;
};
static_assert(sizeof(FileAnswerHead) == 40);

// Returns false if the other end has closed the connection, or it has failed.
inline bool ReceiveAll(int connection, char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t count = recv(connection, bytes, size, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

// As ReceiveAll(). `flags` are send()'s, such as MSG_MORE.
inline bool SendAll(int connection, std::string_view bytes, int flags = 0) {
  while (!bytes.empty()) {
    const ssize_t count = send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL | flags);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace muster::files
