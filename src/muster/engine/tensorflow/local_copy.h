// LocalCopy: a folder of another file system, copied to this machine, where TensorFlow reads it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::engine::tensorflow {

class LocalCopy {
 public:
  // Copies the folder with all below it into a new folder of the user's own (TMPDIR, or /tmp). Null
  // for a folder that is on this machine's file system.
  static absl::StatusOr<std::unique_ptr<LocalCopy>> MakeIfElsewhere(io::FileSystem& files,
                                                                    const std::string& folder);
  ~LocalCopy();  // removes it
  LocalCopy(const LocalCopy&) = delete;
  LocalCopy& operator=(const LocalCopy&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit LocalCopy(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

}  // namespace muster::engine::tensorflow
