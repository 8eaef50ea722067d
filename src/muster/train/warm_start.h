// Warm start: a new model begins with another checkpoint's weights (tf.estimator's
// WarmStartSettings, tf.train.warm_start). Only where MODEL_DIR has no checkpoint of its own.
//
// Unlike TensorFlow's, a pattern also takes the moving statistics of batch normalisation: weights
// without them predict something else. Optimizer slots begin anew, and the global step at 0.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/model/model_spec.h"
#include "muster/train/variables.h"

namespace muster::train {

// Rows (axis 0) or columns (axis 1) of a variable follow the words of a vocabulary: what stands for
// a word there begins with what stood for the same word in the old vocabulary.
struct VocabInfo {
  std::vector<std::string> new_words;
  std::vector<std::string> old_words;
  int64_t old_size = -1;    // only the first of old_words; -1: all
  int64_t oov_buckets = 0;  // further rows behind new_words, which have no old ones
  int axis = 0;
  // Rows without an old one: zero as TensorFlow's, or as the variable's initializer made them.
  bool keep_initial = false;
  friend bool operator==(const VocabInfo&, const VocabInfo&) = default;
};

struct WarmStart {
  // A checkpoint's prefix, a folder with checkpoints, or a SavedModel's folder.
  std::string from;
  // Variables whose name begins with a match of one of these regular expressions (ECMAScript).
  std::vector<std::string> patterns = {".*"};
  std::map<std::string, VocabInfo> vocabularies = {};      // by variable
  std::map<std::string, std::string> previous_names = {};  // variable -> its name there
  friend bool operator==(const WarmStart&, const WarmStart&) = default;
};

// "PATH" or "PATH:PATTERN"; a "://" in PATH is no separator.
absl::StatusOr<WarmStart> ParseWarmStart(std::string_view text);

// Fills variables (with what else they have left as it is) and returns how many. NOT_FOUND when
// there is no checkpoint at `from`; INVALID_ARGUMENT for a pattern that is no regular expression,
// and for a name in `vocabularies` or `previous_names` that no pattern takes; FAILED_PRECONDITION
// for a variable that the checkpoint does not have or has in another shape.
absl::StatusOr<int> ApplyWarmStart(io::FileSystem& files, const WarmStart& settings,
                                   const Variables& variables);

// Where settings.from is a model folder of ours: the tables (linear weights and embeddings, shared
// ones too) that the patterns take, over columns whose words differ between its model.yaml and
// `spec`, with keep_initial. Empty otherwise. FAILED_PRECONDITION for a shared table whose columns'
// words changed in different ways.
absl::StatusOr<std::map<std::string, VocabInfo>> ChangedVocabularies(io::FileSystem& files,
                                                                     const WarmStart& settings,
                                                                     const model::ModelSpec& spec);

}  // namespace muster::train
