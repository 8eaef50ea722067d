#include "muster/data/record_order.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "muster/base/random.h"

namespace muster::data {
namespace {

absl::Status DoesNotFit(std::string_view what) {
  return absl::FailedPreconditionError(StrCat("the saved position does not fit the data: ", what));
}

// Returns a uniform number in [0, bound), without bias, from 32-bit numbers (D. Lemire, 2019).
uint32_t Below(uint32_t bound, RandomStream* random) {
  while (true) {
    const uint64_t product = uint64_t{random->Next32()} * bound;
    const auto low = static_cast<uint32_t>(product);
    if (low >= bound || low >= -bound % bound) return static_cast<uint32_t>(product >> 32);
  }
}

std::vector<uint32_t> Permutation(size_t size, RandomStream random) {
  std::vector<uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  for (auto i = static_cast<uint32_t>(size); i > 1; --i) {
    std::swap(order[i - 1], order[Below(i, &random)]);
  }
  return order;
}

class FileOrder : public RecordOrder {
 public:
  FileOrder(const RecordSource& source, ReadAhead& chunks) : chunks_(chunks) {
    std::vector<uint32_t> order(source.chunks().size());
    std::iota(order.begin(), order.end(), 0);
    chunks_.Begin(std::move(order));
  }

  absl::Status Restore(const Position& start) {
    if (start.open.size() > 1) return DoesNotFit("it was saved while shuffling");
    emitted_ = start.emitted;
    chunk_ = start.next_ordinal;
    if (start.open.empty()) return absl::OkStatus();
    chunk_ = start.open[0].ordinal;
    if (chunk_ + 1 != start.next_ordinal) return DoesNotFit("it was saved while shuffling");
    const uint64_t wanted = start.open[0].consumed;
    while (consumed_ < wanted) {
      MUSTER_RETURN_IF_ERROR(NextPiece());
      if (piece_ == nullptr) return DoesNotFit("a chunk of the data has fewer records");
      next_ = static_cast<uint32_t>(std::min<uint64_t>(wanted - consumed_, piece_->records.size()));
      consumed_ += next_;
    }
    return absl::OkStatus();
  }

  absl::Status Next(size_t count, std::vector<Pick>* picks,
                    std::vector<std::shared_ptr<const Chunk>>* held) override {
    while (count > 0) {
      if (piece_ == nullptr || next_ == piece_->records.size()) {
        if (chunk_ >= chunks_.order().size()) return absl::OkStatus();
        MUSTER_RETURN_IF_ERROR(NextPiece());
        if (piece_ == nullptr) {
          stream_ = nullptr;
          consumed_ = 0;
          ++chunk_;
        }
        continue;
      }
      const size_t taken = std::min(count, piece_->records.size() - next_);
      for (size_t i = 0; i < taken; ++i) picks->push_back({piece_.get(), next_++});
      held->push_back(piece_);
      consumed_ += taken;
      emitted_ += taken;
      count -= taken;
    }
    return absl::OkStatus();
  }

  void Save(Position* position) const override {
    position->emitted = emitted_;
    position->open.clear();
    position->next_ordinal = static_cast<uint32_t>(chunk_);
    if (stream_ == nullptr) return;
    position->open.push_back({.ordinal = static_cast<uint32_t>(chunk_), .consumed = consumed_});
    ++position->next_ordinal;
  }

 private:
  absl::Status NextPiece() {
    piece_ = nullptr;
    next_ = 0;
    if (stream_ == nullptr) {
      MUSTER_ASSIGN_OR_RETURN(stream_, chunks_.Stream(static_cast<uint32_t>(chunk_)));
    }
    MUSTER_ASSIGN_OR_RETURN(piece_, stream_->Next());
    return absl::OkStatus();
  }

  ReadAhead& chunks_;
  size_t chunk_ = 0;
  std::unique_ptr<ChunkStream> stream_;  // the stream of chunk_, once it has begun
  std::shared_ptr<const Chunk> piece_;
  uint32_t next_ = 0;      // index in piece_
  uint64_t consumed_ = 0;  // records of chunk_
  uint64_t emitted_ = 0;
};

class ShuffledOrder : public RecordOrder {
 public:
  ShuffledOrder(const RecordSource& source, uint64_t seed, int64_t epoch, int open_chunks,
                ReadAhead& chunks)
      : chunks_(chunks),
        seed_(seed),
        epoch_(epoch),
        open_chunks_(static_cast<size_t>(open_chunks)),
        draws_(seed, RandomPurpose::kShuffleInterleave, epoch) {
    chunks_.Begin(Permutation(source.chunks().size(),
                              RandomStream(seed, RandomPurpose::kShuffleChunks, epoch)));
  }

  absl::Status Restore(const Position& start) {
    if (start.next_ordinal > chunks_.order().size()) return DoesNotFit("the data has fewer chunks");
    for (const Position::Cursor& cursor : start.open) {
      if (cursor.ordinal >= start.next_ordinal) return DoesNotFit("the data has fewer chunks");
      MUSTER_RETURN_IF_ERROR(Open(cursor.ordinal, chunks_.ReadAlone(cursor.ordinal)));
      Cursor& opened = open_.back();
      if (cursor.consumed >= opened.order.size())
        return DoesNotFit("a chunk of the data has fewer records");
      opened.consumed = static_cast<uint32_t>(cursor.consumed);
      lefts_.back() -= cursor.consumed;
      left_ -= cursor.consumed;
    }
    next_ordinal_ = start.next_ordinal;
    emitted_ = start.emitted;
    draws_.Seek(2 * emitted_);
    return absl::OkStatus();
  }

  absl::Status Next(size_t count, std::vector<Pick>* picks,
                    std::vector<std::shared_ptr<const Chunk>>* held) override {
    while (count > 0) {
      while (open_.size() < open_chunks_ && next_ordinal_ < chunks_.order().size()) {
        MUSTER_RETURN_IF_ERROR(Open(next_ordinal_, chunks_.Read(next_ordinal_)));
        ++next_ordinal_;
        if (lefts_.back() == 0) Close(open_.size() - 1);
      }
      if (open_.empty()) break;
      count -= Draw(count, picks, held);
    }
    for (Cursor& cursor : open_) {
      if (std::exchange(cursor.touched, false)) held->push_back(cursor.chunk);
    }
    return absl::OkStatus();
  }

  void Save(Position* position) const override {
    position->emitted = emitted_;
    position->next_ordinal = next_ordinal_;
    position->open.clear();
    for (const Cursor& cursor : open_) {
      position->open.push_back({.ordinal = cursor.ordinal, .consumed = cursor.consumed});
    }
  }

 private:
  struct Cursor {
    uint32_t ordinal;
    uint32_t consumed = 0;
    bool touched = false;  // whether it was used since Next() began
    std::vector<uint32_t> order;
    std::shared_ptr<const Chunk> chunk;
  };

  absl::Status Open(uint32_t ordinal, absl::StatusOr<std::shared_ptr<const Chunk>> read) {
    MUSTER_RETURN_IF_ERROR(read.status());
    Cursor& cursor = open_.emplace_back();
    cursor.ordinal = ordinal;
    cursor.chunk = *std::move(read);
    const uint32_t chunk = chunks_.order()[ordinal];
    const size_t records = cursor.chunk->records.size();
    if (records > std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError(
          StrCat(cursor.chunk->file, ": too many records in one compressed file to shuffle"));
    }
    cursor.order =
        Permutation(records, RandomStream(seed_, RandomPurpose::kShuffleRecords, epoch_, chunk));
    lefts_.push_back(records);
    left_ += records;
    return absl::OkStatus();
  }

  void Close(size_t cursor) {
    open_.erase(open_.begin() + static_cast<ptrdiff_t>(cursor));
    lefts_.erase(lefts_.begin() + static_cast<ptrdiff_t>(cursor));
  }

  // Draws until `count` records are drawn or a chunk is used up, which is then closed. Returns the
  // number of records.
  size_t Draw(size_t count, std::vector<Pick>* picks,
              std::vector<std::shared_ptr<const Chunk>>* held) {
    for (size_t drawn = 1;; ++drawn) {
      // Uniform in [0, left_), with a bias below left_ / 2^64.
      auto place =
          static_cast<uint64_t>(static_cast<unsigned __int128>(draws_.Next64()) * left_ >> 64);
      size_t k = 0;
      for (; place >= lefts_[k]; ++k) place -= lefts_[k];
      Cursor& cursor = open_[k];
      picks->push_back({cursor.chunk.get(), cursor.order[cursor.consumed++]});
      cursor.touched = true;
      --left_;
      ++emitted_;
      if (--lefts_[k] == 0) {
        held->push_back(std::move(cursor.chunk));
        Close(k);
        return drawn;
      }
      if (drawn == count) return drawn;
    }
  }

  ReadAhead& chunks_;
  const uint64_t seed_;
  const int64_t epoch_;
  const size_t open_chunks_;
  RandomStream draws_;  // two words per record
  std::vector<Cursor> open_;
  std::vector<uint64_t> lefts_;  // by index in open_: the number of records that remain
  uint64_t left_ = 0;            // their sum
  uint32_t next_ordinal_ = 0;
  uint64_t emitted_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RecordOrder>> NewFileOrder(const RecordSource& source,
                                                          const Position* start,
                                                          ReadAhead& chunks) {
  auto order = std::make_unique<FileOrder>(source, chunks);
  if (start != nullptr) MUSTER_RETURN_IF_ERROR(order->Restore(*start));
  return order;
}

absl::StatusOr<std::unique_ptr<RecordOrder>> NewShuffledOrder(const RecordSource& source,
                                                              uint64_t seed, int64_t epoch,
                                                              int open_chunks,
                                                              const Position* start,
                                                              ReadAhead& chunks) {
  auto order = std::make_unique<ShuffledOrder>(source, seed, epoch, open_chunks, chunks);
  if (start != nullptr) MUSTER_RETURN_IF_ERROR(order->Restore(*start));
  return order;
}

}  // namespace muster::data
