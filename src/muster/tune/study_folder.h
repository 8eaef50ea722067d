// StudyFolder: where a study keeps its journal, its trials and what it makes of the best one.
//
//   study.log      the journal
//   trials/0007    the model folder of trial 7
//   logs/0007.log  the output of trial 7, if it is a process
//   hparams        what TensorBoard's HParams page shows
//   best           the exported model of the best trial
//   id             what the names of the study's jobs begin with, if its trials are jobs
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/process/descriptor.h"

namespace muster::tune {

class StudyFolder {
 public:
  // Makes the local folder and locks it until this object ends. FAILED_PRECONDITION if another
  // process still has it after `wait_seconds`, INVALID_ARGUMENT for a path of another file system.
  static absl::StatusOr<std::unique_ptr<StudyFolder>> Open(const std::string& path,
                                                           double wait_seconds = 0);

  const std::string& path() const { return path_; }
  std::string journal() const;
  std::string trial(int64_t number) const;
  std::string trials() const;
  std::string logs() const;
  std::string hparams() const;
  std::string best() const;
  // The folder's name in the letters of a job's name, with some random ones, which are kept: no
  // other study has it, nor has one that is begun in this folder after this one was removed.
  absl::StatusOr<std::string> GetId(io::FileSystem& files) const;

 private:
  explicit StudyFolder(std::string path) : path_(std::move(path)) {}
  const std::string path_;
  process::Descriptor lock_;
};

}  // namespace muster::tune
