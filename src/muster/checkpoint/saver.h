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

// tf.train.Saver's.
struct SaverOptions {
  int keep_max = 5;  // 0: all
  // Of every so many hours one checkpoint stays for good: a checkpoint that keep_max would remove
  // stays, and leaves the list, when it was saved after the end of the hours, and the next hours
  // begin. The state file carries where they begin (last_preserved_timestamp), so that a restart
  // changes nothing; in a pause of the training they do not add up.
  double keep_every_n_hours = 10'000;
  // Unix time of the beginning, where the state file knows no such time; 0: that of the first save.
  double start_seconds = 0;
};

// Named texts to be saved as string scalars (the data position, the spec).
using Strings = std::vector<std::pair<std::string, std::string>>;

// Removes what saves into `folder` have left that were killed: temporary files, and data files
// without an index; and leases on what is gone. Nobody may be saving into it.
void RemoveLeftovers(io::FileSystem& files, const std::string& folder);

// One thread at a time; one writer a folder, any number of readers.
class Saver {
 public:
  Saver(io::FileSystem& files, std::string folder, SaverOptions options = {});

  // Writes model.ckpt-STEP with `tensors`, an int64 scalar "global_step", and `strings`. Updates
  // the state file, removes what is too old, unless somebody holds a lease on it (lease.h), and, at
  // first, what a killed save has left. Nothing half-written is ever found by Latest(). `seconds`
  // is the Unix time that the state file shall tell. Where `read` is given, it hands out the bytes
  // of all tensors, in order and back to back, and their own memory is not looked at. Returns the
  // prefix.
  absl::StatusOr<std::string> Save(int64_t step, std::span<const Tensor> tensors,
                                   const Strings& strings, double seconds,
                                   const formats::BundleWriter::ReadPiece& read = nullptr);

  const std::string& folder() const { return folder_; }

 private:
  // The state after saving NAME, and what it no longer names and shall go.
  absl::StatusOr<CheckpointState> NextState(const std::string& name, double seconds,
                                            std::vector<std::string>* expired);
  // Of what is beyond keep_max.
  void DropOldest(double seconds, CheckpointState* state, std::vector<std::string>* expired);

  io::FileSystem& files_;
  const std::string folder_;
  const SaverOptions options_;
  bool cleaned_ = false;
  LeaseWatch leases_;
};

}  // namespace muster::checkpoint
