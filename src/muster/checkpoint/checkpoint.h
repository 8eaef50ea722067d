// Checkpoints: FOLDER/model.ckpt-STEP.{index,data-00000-of-00001} (TensorFlow bundles) and the text
// file FOLDER/checkpoint that names the newest and those kept. Here: finding and restoring them;
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

// Something to save or restore: a tensor in the caller's memory.
struct Tensor {
  std::string name;
  formats::DataType type = formats::DataType::kFloat;
  std::vector<int64_t> shape;
  std::span<char> bytes;  // elements, row-major
  int variable = -1;      // whose weights or slots these are (FrozenTensors); -1: nobody's
  // To restore a tensor whose first dimension the checkpoint says (shape[0] is not looked at):
  // gives memory for so many rows. Empty: the shape is known.
  std::function<std::span<char>(int64_t rows)> resize = {};
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

// From FOLDER/checkpoint; empty when there is none. DATA_LOSS when it cannot be read as one.
absl::StatusOr<CheckpointState> ReadState(io::FileSystem& files, const std::string& folder);

// The prefix of the newest checkpoint whose index is sound and whose data files are long enough:
// that of the state file, else the highest such model.ckpt-N. NOT_FOUND when the folder has no
// checkpoint, DATA_LOSS, with the cause, when all it has are broken.
absl::StatusOr<std::string> Latest(io::FileSystem& files, const std::string& folder);

// Fills the memory of `tensors` from the checkpoint at `prefix`.
// Every difference is named in one FAILED_PRECONDITION ("checkpoint of another spec"): tensors
// missing, shapes or types unequal.
absl::Status Restore(const formats::BundleReader& bundle, std::span<const Tensor> tensors);

// The int64 scalar "global_step".
absl::StatusOr<int64_t> GlobalStep(const formats::BundleReader& bundle);

struct Restored {
  std::string prefix;
  int64_t step = 0;
  std::map<std::string, std::string> strings;  // all string scalars
  std::string note;  // why newer checkpoints were passed over; "" when this is the newest
};

// Fills `tensors` from the newest checkpoint all of whose checksums that this needs are right; one
// that is broken, or vanishes meanwhile, is passed over for the next older, and `note` says so.
// Errors as of Latest and Restore; the memory of `tensors` may then hold anything.
absl::StatusOr<Restored> RestoreLatest(io::FileSystem& files, const std::string& folder,
                                       std::span<const Tensor> tensors);

// The same from the checkpoint at `prefix` ("DIR/model.ckpt-N"; with ".index" behind it as well).
// NOT_FOUND when there is none, DATA_LOSS when it is broken.
absl::StatusOr<Restored> RestorePrefix(io::FileSystem& files, const std::string& prefix,
                                       std::span<const Tensor> tensors);

}  // namespace muster::checkpoint
