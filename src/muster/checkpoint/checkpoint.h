// Checkpoints: FOLDER/model.ckpt-STEP.{index,data-00000-of-00001} (TensorFlow bundles) and the text
// file FOLDER/checkpoint that names the newest and those kept.
#pragma once

#include <cstdint>
#include <optional>
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
};

struct CheckpointState {
  std::string latest;            // names relative to the folder, or absolute
  std::vector<std::string> all;  // oldest first, latest last
};

// From FOLDER/checkpoint; empty when there is none. DATA_LOSS when it cannot be read as one.
absl::StatusOr<CheckpointState> ReadState(io::FileSystem& files, const std::string& folder);

// The prefix of the newest whole checkpoint: that of the state file, else the highest
// model.ckpt-N with an index; NOT_FOUND when there is none.
absl::StatusOr<std::string> Latest(io::FileSystem& files, const std::string& folder);

class Saver {
 public:
  // Keeps at most `keep` checkpoints (0: all).
  Saver(io::FileSystem& files, std::string folder, int keep = 5);

  // Writes model.ckpt-STEP with `tensors`, an int64 scalar "global_step", and `strings` (scalars of
  // type string: the data position, the spec). Updates the state file, removes what is too old.
  // Nothing half-written is ever found by Latest(). Returns the prefix.
  absl::StatusOr<std::string> Save(int64_t step, std::span<const Tensor> tensors,
                                   std::span<const std::pair<std::string, std::string>> strings);

 private:
  io::FileSystem& files_;
  std::string folder_;
  int keep_;
};

// Fills the memory of `tensors` from the checkpoint at `prefix`.
// Every difference is named in one FAILED_PRECONDITION ("checkpoint of another spec"): tensors
// missing, shapes or types unequal.
absl::Status Restore(const formats::BundleReader& bundle, std::span<const Tensor> tensors);

// The int64 scalar "global_step".
absl::StatusOr<int64_t> GlobalStep(const formats::BundleReader& bundle);

}  // namespace muster::checkpoint
