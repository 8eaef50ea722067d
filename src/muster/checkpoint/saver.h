// Saver: writes the checkpoints of one folder and removes those that are too old.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/checkpoint/checkpoint.h"
#include "muster/checkpoint/lease.h"
#include "muster/formats/bundle.h"
#include "muster/io/file_system.h"

namespace muster::checkpoint {

// tf.train.Saver's options.
struct SaverOptions {
  int keep_max = 5;  // 0: all; the best (best.h) and leased checkpoints are kept in addition
  // One checkpoint of every period of this many hours is kept permanently: a checkpoint that
  // keep_max would remove is kept, but leaves the list, if it was saved after the end of the
  // present period; then the next period begins. The state file stores the period's beginning
  // (last_preserved_timestamp), so that a restart changes nothing; periods do not add up while
  // training is paused.
  double keep_every_n_hours = 10'000;
  // Unix time of the first period's beginning, if the state file has none; 0: that of the first
  // save.
  double start_seconds = 0;
};

// Names and texts to be saved as string scalars (the data position, the spec).
using Strings = std::vector<std::pair<std::string, std::string>>;

// Tensors whose rows other processes have written into temporary files of the folder, which become
// data files of the checkpoint.
struct RowFiles {
  struct Rows {
    std::string name;
    formats::DataType type = formats::DataType::kFloat;
    std::vector<int64_t> shape = {};
    std::vector<formats::SavedRows> rows = {};  // file: from 1 on, as in `paths`
  };
  std::vector<std::string> paths = {};
  std::vector<Rows> tensors = {};
};

// Removes files that killed saves into `folder` have left: temporary files but those of `kept`,
// data files without an index, and leases on removed checkpoints. No process may be saving into the
// folder.
void RemoveLeftovers(io::FileSystem& files, const std::string& folder,
                     std::span<const std::string> kept = {});

// Removes all checkpoints of `folder` and its state file. No process may be saving into it.
absl::Status RemoveCheckpoints(io::FileSystem& files, const std::string& folder);

// One thread at a time; one writer per folder, any number of readers.
class Saver {
 public:
  Saver(io::FileSystem& files, std::string folder, SaverOptions options = {});

  // Writes model.ckpt-STEP with `tensors`, an int64 scalar "global_step", and `strings`. Updates
  // the state file; removes checkpoints that are too old, unless they have a lease (lease.h), and,
  // the first time, the files that a killed save has left. Latest() never finds a half-written
  // checkpoint. `seconds` is the Unix time for the state file. If `read` is given, it provides the
  // bytes of all tensors, in order and back to back, and the tensors' own memory is not read.
  // Returns the prefix. After an error the files of `rows` are gone.
  absl::StatusOr<std::string> Save(int64_t step, std::span<const Tensor> tensors,
                                   const Strings& strings, double seconds,
                                   const formats::BundleWriter::ReadPiece& read = nullptr,
                                   const RowFiles& rows = {});

  const std::string& folder() const { return folder_; }

 private:
  // The state after saving NAME, and the checkpoints that it no longer names and that must be
  // removed.
  absl::StatusOr<CheckpointState> NextState(const std::string& name, double seconds,
                                            std::vector<std::string>* expired);
  // Applies keep_max: removes checkpoints from *state, and adds those to be deleted to *expired.
  void DropOldest(double seconds, CheckpointState* state, std::vector<std::string>* expired);

  io::FileSystem& files_;
  const std::string folder_;
  const SaverOptions options_;
  bool cleaned_ = false;
  LeaseWatch leases_;
};

}  // namespace muster::checkpoint
