// EventMirror: keeps a copy of the event files below a remote folder in a folder of this machine,
// for a TensorBoard that reads only such files.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::cli {

// One owner thread.
class EventMirror {
 public:
  // Both folders exist. `files` must outlive this object.
  EventMirror(io::FileSystem& files, std::string from, std::string to)
      : files_(files), from_(std::move(from)), to_(std::move(to)) {}

  // Copies what was added since the last call: new event files, and the new ends of known ones.
  // Errors are those of the remote folder; the next call continues where this one ended.
  absl::Status Update();

  uint64_t bytes() const { return bytes_; }  // copied so far

 private:
  absl::Status UpdateFolder(const std::string& below, int depth);
  absl::Status UpdateFile(const std::string& below, uint64_t size);

  io::FileSystem& files_;
  const std::string from_;
  const std::string to_;
  uint64_t bytes_ = 0;
};

}  // namespace muster::cli
