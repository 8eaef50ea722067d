// Compiled rows: the rows of a FeatureBatch as bytes, and back, with the same floats and ids.
// Reading one takes no decoding, hashing or lookup. docs/formats/compiled_features.md has the
// layout.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/features/batch.h"
#include "muster/features/column.h"
#include "muster/features/transform.h"
#include "muster/formats/json_fields.h"

namespace muster::train {

// What every row of one compiled file has, in this order.
struct CompiledLayout {
  struct Ids {
    bool is_list = false;      // any number of ids, else exactly one
    bool has_weights = false;  // each id has a weight
    bool has_keys = false;     // each id has a key (IdList::keys)
    int64_t ids = 1;           // ids are in [-1, ids)
    friend bool operator==(const Ids&, const Ids&) = default;

    int bytes() const;  // of an id
  };

  int label_width = 0;  // floats; 0: rows have no label
  bool has_weight = false;
  std::vector<int> dense = {};  // floats of each dense column
  std::vector<Ids> id_lists = {};
  friend bool operator==(const CompiledLayout&, const CompiledLayout&) = default;

  size_t dense_width() const;
  // The bytes of what does not vary in length, which comes first in a row.
  size_t fixed_bytes() const;
  bool has_lists() const;
};

// How the ids of a categorical column lie in a row.
struct CompiledPart {
  size_t list;    // in FeatureBatch::id_lists
  size_t width;   // bytes of an id
  uint32_t mask;  // of as many
  uint32_t most;  // the largest number that stands for an id
  bool has_weights, has_keys;

  size_t bytes() const {  // of an id with its weight and key
    return width + (has_weights ? sizeof(float) : 0) + (has_keys ? sizeof(int64_t) : 0);
  }
  bool is_plain() const { return !has_weights && !has_keys; }
};

// Columns whose ids are written as one number of 8 bytes, of which the first `bytes` count.
struct CompiledWord {
  size_t begin = 0, end = 0;  // of the parts with one id per row
  size_t bytes = 0;
};

// Returns the layout of the batches that `request` gives of `spec`. `batch` is one of them.
CompiledLayout MakeLayout(const features::FeatureSpec& spec,
                          const features::FeatureRequest& request, bool with_labels,
                          const features::FeatureBatch& batch);

// Whether the batch has the layout's columns, and ids that fit them.
bool HasLayout(const features::FeatureBatch& batch, const CompiledLayout& layout);

// Turns rows of batches into bytes. One owner thread.
class RowCompiler {
 public:
  // Write() may overwrite so many bytes behind a row, whose last ids it writes as words of 8 bytes.
  static constexpr size_t kSlack = sizeof(uint64_t) - 1;

  explicit RowCompiler(const CompiledLayout& layout);

  // The next rows are those of `batch`, which must stay as it is meanwhile. False if the batch does
  // not have the layout.
  bool Take(const features::FeatureBatch& batch);
  // A row's bytes, as far as they do not vary in length: all of them where there are no lists.
  std::string_view GetFixed(int row) const {
    return {fixed_.data() + static_cast<size_t>(row) * stride(), fixed_bytes_};
  }
  // The bytes of the whole row.
  size_t GetSize(int row) const;
  // Writes the whole row to memory of GetSize() + kSlack.
  void Write(int row, char* to) const;

 private:
  size_t stride() const { return fixed_bytes_ + kSlack; }
  void PutWords(const features::FeatureBatch& batch, const CompiledWord& word, char* to) const;

  const CompiledLayout layout_;
  const size_t fixed_bytes_;
  const std::vector<CompiledPart> ids_, lists_;  // columns with one id per row, and with lists
  const std::vector<CompiledWord> words_;        // of ids_
  const features::FeatureBatch* batch_ = nullptr;
  std::string fixed_;  // what GetFixed() returns, row after row
};

formats::Json PrintLayout(const CompiledLayout& layout);
// INVALID_ARGUMENT, with `where`, for a layout that PrintLayout cannot have made.
absl::StatusOr<CompiledLayout> ReadLayout(const formats::Json& json, const std::string& where);

// The schema of compiled rows as records: one string, the row's bytes.
formats::Schema CompiledSchema();

// Marks an error as one of a compiled file, after which its data can be read from the source, and
// tells whether one is.
absl::Status CompiledDamage(std::string_view message);
bool IsCompiledDamage(const absl::Status& status);

// Makes a transform from rows of CompiledSchema() to batches. Its Apply() returns an error of
// IsCompiledDamage for bytes that are not a row of the layout.
std::unique_ptr<features::FeatureTransform> NewCompiledTransform(const CompiledLayout& layout);

}  // namespace muster::train
