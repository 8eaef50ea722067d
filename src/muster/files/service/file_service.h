// FileService: does another process's calls of a FileSystem. TensorFlow's programs reach hdfs:// by
// it (files/tensorflow/): Muster's client, with its OpenSSL and Kerberos, then shares no process
// with TensorFlow's libraries, of which some have functions of the same names.
//
// Every connection does one call after the other, on a thread of its own. The open files belong to
// the service, not to a connection.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "muster/base/status.h"
#include "muster/files/service/wire.h"
#include "muster/io/file_system.h"

namespace muster::files {

class FileService {
 public:
  // `files` must outlive the service.
  explicit FileService(io::FileSystem& files);
  // Ends the connections and waits for the calls in progress. Files that are still open for writing
  // are not flushed.
  ~FileService();
  FileService(const FileService&) = delete;
  FileService& operator=(const FileService&) = delete;

  // Serves the connections that arrive on the unix socket `control`, one descriptor with each byte,
  // and returns when its other end is closed.
  absl::Status Serve(int control);

  // Does one call. Any thread.
  struct Answer {
    FileAnswerHead head = {};
    std::string data = {};
  };
  Answer Do(const FileRequestHead& head, const std::string& path, const std::string& data);

 private:
  struct OpenFile;
  void ServeConnection(int connection);
  absl::Status DoNamed(FileOp op, const std::string& path, const std::string& data, Answer* answer);
  absl::Status DoOpened(FileOp op, const FileRequestHead& head, const std::string& data,
                        Answer* answer);
  absl::Status Open(FileOp op, const std::string& path, Answer* answer);
  absl::StatusOr<std::shared_ptr<OpenFile>> Find(uint64_t number, bool forget);

  io::FileSystem& files_;
  std::mutex mutex_;      // of what follows
  uint64_t last_number_;  // of a file; starts anywhere, so that no other service's number is valid
  std::map<uint64_t, std::shared_ptr<OpenFile>> open_;
  std::vector<int> connections_;
  std::vector<std::thread> threads_;
};

}  // namespace muster::files
