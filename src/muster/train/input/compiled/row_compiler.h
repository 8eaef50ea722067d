// RowCompiler: writes the rows of batches as bytes, compiled rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/features/batch.h"
#include "muster/train/input/compiled/compiled_layout.h"

namespace muster::train {

// Columns whose ids are written as one number of 8 bytes, of which the first `bytes` count.
struct CompiledWord {
  size_t begin = 0, end = 0;  // of the parts with one id per row
  size_t bytes = 0;
};

// Whether the batch has the layout's columns, and ids that fit them.
bool HasLayout(const features::FeatureBatch& batch, const CompiledLayout& layout);

// Turns rows of batches into bytes. One owner thread.
class RowCompiler {
 public:
  // Write() may overwrite this many bytes after a row, because it writes the row's last ids as a
  // word of 8 bytes.
  static constexpr size_t kSlack = sizeof(uint64_t) - 1;

  explicit RowCompiler(const CompiledLayout& layout);

  // The next rows are those of `batch`, which must stay as it is meanwhile. False if the batch does
  // not have the layout.
  bool Take(const features::FeatureBatch& batch);
  // Compiles the rows of the batch from `begin` up to `end`. The functions below are for these
  // rows. A few rows at a time stay in the processor's cache until they are copied.
  void Compile(int begin, int end);
  // A row's bytes, as far as they do not vary in length: all of them where there are no lists.
  std::string_view GetFixed(int row) const {
    return {fixed_.data() + static_cast<size_t>(row - begin_) * stride(), fixed_bytes_};
  }
  // The bytes of the whole row.
  size_t GetSize(int row) const;
  // Writes the whole row to memory of GetSize() + kSlack.
  void Write(int row, char* to) const;

 private:
  size_t stride() const { return fixed_bytes_ + kSlack; }
  void PutWords(const CompiledWord& word, size_t begin, size_t rows, char* to) const;

  const CompiledLayout layout_;
  const size_t fixed_bytes_;
  const std::vector<CompiledPart> ids_, lists_;  // columns with one id per row, and with lists
  const std::vector<CompiledWord> words_;        // of ids_
  const features::FeatureBatch* batch_ = nullptr;
  int begin_ = 0;      // the first row that is compiled
  std::string fixed_;  // what GetFixed() returns, row after row
};

}  // namespace muster::train
