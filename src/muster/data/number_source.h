// NumberSource: a RecordSource of numbers, for the tests of readers.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/source.h"
#include "muster/formats/csv.h"

namespace muster::data {

// A source of chunks of any sizes, whose records are the numbers from 0 on; streams have pieces of
// three records.
class NumberSource : public RecordSource {
 public:
  explicit NumberSource(const std::vector<int>& sizes) {
    for (const int size : sizes) {
      chunks_.push_back({.begin = static_cast<uint64_t>(count_),
                         .end = static_cast<uint64_t>(count_ + size),
                         .records = static_cast<uint64_t>(size)});
      count_ += size;
    }
  }
  void SpoilRecord(int number) { spoilt_.insert(number); }
  int most_chunks_alive() const { return most_alive_; }
  int count() const { return count_; }

  const std::vector<std::string>& files() const override { return files_; }
  const std::vector<ChunkInfo>& chunks() const override { return chunks_; }
  absl::StatusOr<std::shared_ptr<const Chunk>> Read(size_t chunk) const override {
    return Make(chunks_[chunk].begin, chunks_[chunk].end);
  }
  absl::StatusOr<std::unique_ptr<ChunkStream>> Stream(size_t chunk) const override {
    return std::make_unique<Pieces>(*this, chunks_[chunk].begin, chunks_[chunk].end);
  }
  absl::StatusOr<std::unique_ptr<formats::RowDecoder>> NewDecoder(
      const formats::Schema& schema) const override {
    return formats::NewCsvDecoder(schema, {"id"});
  }
  absl::Status CountBad(size_t, const Chunk&) const override { return absl::OkStatus(); }
  uint64_t bad_records() const override { return 0; }
  uint64_t fingerprint() const override { return 1000 + count_; }

 private:
  class Pieces : public ChunkStream {
   public:
    Pieces(const NumberSource& source, uint64_t begin, uint64_t end)
        : source_(source), begin_(begin), end_(end) {}
    absl::StatusOr<std::shared_ptr<const Chunk>> Next() override {
      if (begin_ == end_) return nullptr;
      const uint64_t begin = begin_;
      begin_ = std::min(end_, begin_ + 3);
      return source_.Make(begin, begin_);
    }

   private:
    const NumberSource& source_;
    uint64_t begin_, end_;
  };

  std::shared_ptr<const Chunk> Make(uint64_t begin, uint64_t end) const {
    std::shared_ptr<Chunk> chunk(new Chunk, [alive = alive_](Chunk* dead) {
      --*alive;
      delete dead;
    });
    const int alive = ++*alive_;
    for (int most = most_alive_; alive > most;) {
      if (most_alive_.compare_exchange_weak(most, alive)) break;
    }
    chunk->file = "numbers";
    chunk->bytes.reserve(16 * (end - begin));
    for (uint64_t n = begin; n < end; ++n) {
      const size_t at = chunk->bytes.size();
      chunk->bytes += spoilt_.contains(static_cast<int>(n)) ? "spoilt" : StrCat(n);
      chunk->records.emplace_back(chunk->bytes.data() + at, chunk->bytes.size() - at);
      chunk->offsets.push_back(10 * n);
    }
    return chunk;
  }

  std::vector<std::string> files_ = {"numbers"};
  std::vector<ChunkInfo> chunks_;
  std::set<int> spoilt_;
  int count_ = 0;
  const std::shared_ptr<std::atomic<int>> alive_ = std::make_shared<std::atomic<int>>(0);
  mutable std::atomic<int> most_alive_ = 0;
};

}  // namespace muster::data
