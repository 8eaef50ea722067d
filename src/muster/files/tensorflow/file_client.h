// FileClient: the files that a FileService of Muster reaches (files/service/), for programs that
// Muster did not write. Nothing of Abseil or of Muster's other layers is used here: the code is
// part of a library that is loaded beside TensorFlow, and that must need nothing but the C library.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/files/service/wire.h"

namespace muster::files {

// How a call ended. The codes are those of absl::StatusCode, which are TensorFlow's, too.
struct Outcome {
  enum Code : uint32_t {
    kOk = 0,
    kInvalidArgument = 3,
    kNotFound = 5,
    kAlreadyExists = 6,
    kPermissionDenied = 7,
    kResourceExhausted = 8,
    kFailedPrecondition = 9,
    kOutOfRange = 11,
    kUnavailable = 14,
    kUnauthenticated = 16,
  };
  uint32_t code = kOk;
  std::string message = {};

  bool ok() const { return code == kOk; }
};

struct FileCall {
  FileOp op = FileOp::kStat;
  std::string path = {};
  std::string_view data = {};
  uint64_t file = 0, offset = 0, size = 0;
};

struct FileAnswer {
  FileAnswerHead head = {};
  std::string data = {};
};

// Any thread. Every call has a connection of its own while it lasts. A process that was forked gets
// a service of its own.
class FileClient {
 public:
  // Starts a service and returns the descriptor of its control socket in `control`.
  using Start = std::function<Outcome(int* control)>;
  explicit FileClient(Start start) : start_(std::move(start)) {}
  ~FileClient();
  FileClient(const FileClient&) = delete;
  FileClient& operator=(const FileClient&) = delete;

  // UNAVAILABLE if the service cannot be started or has ended; a later call starts another one,
  // which knows no file that was opened before.
  Outcome Do(const FileCall& call, FileAnswer* answer);
  // Reads up to `size` bytes into `buffer`.
  Outcome Read(const std::string& path, uint64_t file, uint64_t offset, size_t size, char* buffer,
               size_t* count);

  struct Info {
    uint64_t size = 0;
    int64_t modified_ns = 0;
    bool is_folder = false;
  };
  Outcome Stat(const std::string& path, Info* info);
  Outcome List(const std::string& folder, std::vector<std::string>* names);
  Outcome MakeFolders(const std::string& folder);
  Outcome Rename(const std::string& from, const std::string& to);
  // Removes a file, or a folder that is empty or, with `recursive`, has anything in it. What
  // another process puts into an empty folder meanwhile is removed, too.
  Outcome Remove(const std::string& path, bool recursive);
  Outcome RemoveFile(const std::string& path);

 private:
  struct Service;
  Outcome Exchange(const FileCall& call, FileAnswerHead* head, std::string* data, char* buffer);
  Service& Current();

  const Start start_;
  std::atomic<Service*> service_ = nullptr;  // not a mutex: another thread may hold it in a fork
};

// A file that is open for reading. Any thread.
class ClientReader {
 public:
  static Outcome Open(FileClient& client, const std::string& path,
                      std::unique_ptr<ClientReader>* reader);
  ~ClientReader();
  // Fewer than `size` bytes only at the file's end.
  Outcome Read(uint64_t offset, size_t size, char* buffer, size_t* count) const;
  const std::string& path() const { return path_; }

 private:
  ClientReader(FileClient& client, std::string path, uint64_t file);

  FileClient& client_;
  const std::string path_;
  const uint64_t file_;
  const pid_t process_;
};

// A file that is open for writing. One thread. A file that was not closed is closed when this
// object ends, and an error is lost.
class ClientWriter {
 public:
  static Outcome Open(FileClient& client, const std::string& path, bool append,
                      std::unique_ptr<ClientWriter>* writer);
  ~ClientWriter();
  Outcome Append(std::string_view bytes);
  Outcome Flush() { return SendThen(FileOp::kFlush); }
  Outcome Sync() { return SendThen(FileOp::kSync); }
  Outcome Close();
  int64_t position() const { return position_; }
  const std::string& path() const { return path_; }

 private:
  ClientWriter(FileClient& client, std::string path, uint64_t file, int64_t position);
  Outcome Check() const;
  Outcome SendThen(FileOp op);
  Outcome Send();

  FileClient& client_;
  const std::string path_;
  const uint64_t file_;
  const pid_t process_;
  int64_t position_;  // the file's length with `buffer_`
  bool is_closed_ = false;
  std::string buffer_;
};

}  // namespace muster::files
