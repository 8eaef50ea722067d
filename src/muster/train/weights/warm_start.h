// Warm start: a new model begins with another checkpoint's weights (tf.estimator's
// WarmStartSettings, tf.train.warm_start). It is done only if MODEL_DIR has no checkpoint yet.
//
// Unlike in TensorFlow, a pattern also takes the moving statistics of batch normalisation, since
// weights without them give other predictions. Optimizer slots have their initial values, and the
// global step begins at 0.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"
#include "muster/model/spec/model_spec.h"
#include "muster/train/weights/variables.h"

namespace muster::train {

// The rows (axis 0) or columns (axis 1) of a variable belong to the words of a vocabulary: the row
// or column of a word starts as that of the same word in the old vocabulary.
struct VocabInfo {
  std::vector<std::string> new_words;
  std::vector<std::string> old_words;
  int64_t old_size = -1;    // how many of old_words count, from the first; -1: all
  int64_t oov_buckets = 0;  // further rows after new_words, without old rows
  int axis = 0;
  // Rows without an old row are zero, as in TensorFlow, or, if true, keep their initial values.
  bool keep_initial = false;
  friend bool operator==(const VocabInfo&, const VocabInfo&) = default;
};

struct WarmStart {
  // A checkpoint's prefix, a folder with checkpoints, or a SavedModel's folder.
  std::string from;
  // Variables whose name begins with a match of one of these regular expressions (ECMAScript).
  std::vector<std::string> patterns = {".*"};
  std::map<std::string, VocabInfo> vocabularies = {};      // by variable
  std::map<std::string, std::string> previous_names = {};  // variable -> its name in `from`
  friend bool operator==(const WarmStart&, const WarmStart&) = default;
};

// Parses "PATH" or "PATH:PATTERN"; a "://" in PATH is not a separator. INVALID_ARGUMENT without
// PATH.
absl::StatusOr<WarmStart> ParseWarmStart(std::string_view text);

// Fills the variables that the patterns take, leaves all others unchanged, and returns how many it
// filled. NOT_FOUND if there is no checkpoint at `from`; INVALID_ARGUMENT for a pattern that is not
// a regular expression, and for a name in `vocabularies` or `previous_names` that no pattern takes;
// FAILED_PRECONDITION for a variable that the checkpoint does not have or has in another shape;
// DATA_LOSS if the newest checkpoint in the folder `from` is broken.
absl::StatusOr<int> ApplyWarmStart(io::FileSystem& files, const WarmStart& settings,
                                   const Variables& variables);

// If settings.from is a model folder of Muster: the tables (linear weights and embeddings,
// including shared ones) that the patterns take and whose columns' words differ between the
// folder's model.yaml and `spec`, each with keep_initial. Empty otherwise. FAILED_PRECONDITION for
// a shared table whose columns' words changed in different ways.
absl::StatusOr<std::map<std::string, VocabInfo>> ChangedVocabularies(io::FileSystem& files,
                                                                     const WarmStart& settings,
                                                                     const model::ModelSpec& spec);

}  // namespace muster::train
