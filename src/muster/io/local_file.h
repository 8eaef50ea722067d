// The open files of the local file system (local_file_system.h).
#pragma once

#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::io {

// An open file descriptor, which its end closes.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// The status of a failed call: "OPERATION PATH: ..." with the code that FileSystem promises.
absl::Status LocalStatus(int error_number, std::string_view operation, std::string_view path);

// These take the descriptor, and name `path` in errors.
std::unique_ptr<RandomAccessFile> NewLocalFile(std::string path, int fd);
std::unique_ptr<WritableFile> NewLocalWritableFile(std::string path, int fd);
// For files of many megabytes, which bypass the page cache where the file system can do that.
std::unique_ptr<WritableFile> NewLocalLargeFile(std::string path, int fd);

// Standard input, as a pipe or a socket, where bytes that were read are gone.
std::unique_ptr<RandomAccessFile> NewStandardInput(std::string path);

}  // namespace muster::io
