// Checkpoints: FOLDER/model.ckpt-STEP.{index,data-00000-of-00001} (TensorFlow bundles) and the text
// file FOLDER/checkpoint, which names the newest and those kept. This file finds and restores them;
// saver.h writes them. docs/formats/checkpoint.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/bundle.h"
#include "muster/io/file_system.h"

namespace muster::checkpoint {

// A tensor to save or restore, in the caller's memory.
struct Tensor {
  std::string name;
  formats::DataType type = formats::DataType::kFloat;
  std::vector<int64_t> shape;
  std::span<char> bytes;  // elements, row-major
  int variable = -1;      // the variable whose weights or slots these are (FrozenTensors); -1: none
  // To restore a tensor whose first dimension comes from the checkpoint (shape[0] is ignored):
  // returns memory for `rows` rows, or why there is none. Empty: the shape is known.
  std::function<absl::StatusOr<std::span<char>>(int64_t rows)> resize = {};
  // Another process has the bytes: the tensor is not saved from here, and only checked where others
  // are restored.
  bool is_elsewhere = false;
};

// tensorflow.CheckpointState. Names are relative to the folder, or absolute; times are seconds
// since the Unix epoch.
struct CheckpointState {
  std::string latest;
  std::vector<std::string> all;    // oldest first, latest last
  std::vector<double> timestamps;  // of `all`: when each was saved; empty: not known
  double last_preserved = 0;       // see SaverOptions::keep_every_n_hours; 0: not known
  friend bool operator==(const CheckpointState&, const CheckpointState&) = default;
};

// Read from FOLDER/checkpoint; empty when the file does not exist. DATA_LOSS if it cannot be
// parsed.
absl::StatusOr<CheckpointState> ReadState(io::FileSystem& files, const std::string& folder);

// The prefix of the newest checkpoint whose index is valid and whose data files are long enough:
// the one that the state file names, else the highest such model.ckpt-N. NOT_FOUND when the folder
// has no checkpoint, DATA_LOSS, with the cause, when all of them are broken. One that the state
// file names and of which no file is left was removed by a user, and is not broken.
absl::StatusOr<std::string> Latest(io::FileSystem& files, const std::string& folder);

// A checkpoint, and why newer ones of its folder, which are broken, were skipped.
struct Found {
  std::string prefix;
  std::vector<std::string> broken = {};
};
// For people: "broken checkpoints were passed over for PREFIX: ..."; "" if none was.
std::string DescribePassedOver(const Found& found);
// DATA_LOSS if a newer checkpoint was skipped, for callers that accept only the newest: names
// --fall-back.
absl::Status CheckNewest(const Found& found);

// Like Latest. With `verify`, a checkpoint with a wrong checksum is broken too; slots are not
// verified, since only training reads them.
absl::StatusOr<Found> FindLatest(io::FileSystem& files, const std::string& folder,
                                 bool verify = false);

// Fills the memory of `tensors` from the checkpoint at `prefix`. All differences are named in one
// FAILED_PRECONDITION ("checkpoint of another spec"): tensors missing, shapes or types unequal.
absl::Status Restore(const formats::BundleReader& bundle, std::span<const Tensor> tensors);

// The int64 scalar "global_step".
absl::StatusOr<int64_t> GlobalStep(const formats::BundleReader& bundle);

struct Restored {
  std::string prefix;
  int64_t step = 0;
  std::map<std::string, std::string> strings;  // all string scalars
  std::vector<std::string> broken = {};        // why newer checkpoints were skipped
  std::string note;                            // DescribePassedOver; "" when this is the newest
};

// Fills `tensors` from the newest checkpoint in which all checksums needed here are right. A
// checkpoint that is broken, or disappears meanwhile, is skipped for the next older one, and the
// result says so. Errors are those of Latest and Restore; `tensors` are then undefined.
absl::StatusOr<Restored> RestoreLatest(io::FileSystem& files, const std::string& folder,
                                       std::span<const Tensor> tensors);

// Like RestoreLatest, from the checkpoint at `prefix` ("DIR/model.ckpt-N", also with ".index"
// appended). NOT_FOUND when there is none, DATA_LOSS when it is broken.
absl::StatusOr<Restored> RestorePrefix(io::FileSystem& files, const std::string& prefix,
                                       std::span<const Tensor> tensors);

}  // namespace muster::checkpoint
