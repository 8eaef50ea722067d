#include "muster/data/held_back.h"

#include <bit>
#include <cmath>
#include <utility>

#include "muster/base/fnv.h"
#include "muster/base/strings.h"
#include "muster/io/file_system.h"

namespace muster::data {
namespace {

// The finalizer of SplitMix64 (Steele, Lea and Flood 2014), which distributes neighbours evenly.
uint64_t Mix(uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

bool IsBelow(double share, uint64_t key) {
  return std::ldexp(static_cast<double>(Mix(key) >> 11), -53) < share;
}

class PartSource : public RecordSource {
 public:
  PartSource(std::unique_ptr<RecordSource> source, const HeldBack& held_back)
      : source_(std::move(source)), held_back_(held_back) {
    for (const std::string& file : source_->files()) {
      names_.push_back(Fnv1a(source_->has_offsets() ? file : io::Basename(file)));
    }
    for (size_t chunk = 0; chunk < source_->chunks().size(); ++chunk) {
      ChunkInfo info = source_->chunks()[chunk];
      info.records = Count(info);
      if (info.records == 0) continue;
      chunks_.push_back(info);
      origins_.push_back(chunk);
    }
  }

  const std::vector<std::string>& files() const override { return source_->files(); }
  const std::vector<ChunkInfo>& chunks() const override { return chunks_; }

  void WillRead(size_t chunk) const override { source_->WillRead(origins_[chunk]); }
  absl::StatusOr<std::shared_ptr<const Chunk>> Read(size_t chunk) const override {
    MUSTER_ASSIGN_OR_RETURN(const auto whole, source_->Read(origins_[chunk]));
    return Take(chunks_[chunk], whole);
  }

  absl::StatusOr<std::unique_ptr<ChunkStream>> Stream(size_t chunk) const override {
    MUSTER_ASSIGN_OR_RETURN(auto pieces, source_->Stream(origins_[chunk]));
    return std::make_unique<PartStream>(*this, chunk, std::move(pieces));
  }

  absl::Status CountBad(size_t chunk, const Chunk& piece) const override {
    return source_->CountBad(origins_[chunk], piece);
  }
  formats::DataFormat format() const override { return source_->format(); }
  bool has_offsets() const override { return source_->has_offsets(); }
  absl::StatusOr<std::unique_ptr<formats::RowDecoder>> NewDecoder(
      const formats::Schema& schema) const override {
    return source_->NewDecoder(schema);
  }
  uint64_t bad_records() const override { return source_->bad_records(); }
  uint64_t fingerprint() const override {
    const uint64_t part = Mix(std::bit_cast<uint64_t>(held_back_.share));
    return source_->fingerprint() ^ (held_back_.is_read ? ~part : part);
  }

 private:
  class PartStream : public ChunkStream {
   public:
    PartStream(const PartSource& owner, size_t chunk, std::unique_ptr<ChunkStream> pieces)
        : owner_(owner), chunk_(chunk), pieces_(std::move(pieces)) {}
    absl::StatusOr<std::shared_ptr<const Chunk>> Next() override {
      MUSTER_ASSIGN_OR_RETURN(const auto piece, pieces_->Next());
      return piece == nullptr ? nullptr : owner_.Take(owner_.chunks_[chunk_], piece);
    }

   private:
    const PartSource& owner_;
    const size_t chunk_;
    const std::unique_ptr<ChunkStream> pieces_;
  };

  // `number`: in the file, or the offset in the partition.
  bool IsTaken(const ChunkInfo& info, uint64_t number) const {
    const uint64_t name = names_[static_cast<size_t>(info.file)];
    return IsBelow(held_back_.share, name + number) == held_back_.is_read;
  }

  uint64_t Count(const ChunkInfo& info) const {
    const uint64_t first = has_offsets() ? info.begin + info.first_record : info.first_in_item;
    uint64_t count = 0;
    for (uint64_t i = 0; i < info.records; ++i) count += IsTaken(info, first + i) ? 1 : 0;
    return count;
  }

  // A chunk with the records of the part, which point into `whole`. The others are left out, as bad
  // records are.
  std::shared_ptr<const Chunk> Take(const ChunkInfo& info,
                                    const std::shared_ptr<const Chunk>& whole) const {
    const uint64_t in_item = info.first_in_item - info.first_number;  // it may wrap
    auto part = std::make_shared<Chunk>();
    part->file = whole->file;
    part->place = whole->place;
    part->memory = {whole};
    part->layout = whole->layout;
    part->first_number = whole->first_number;
    size_t next_left_out = 0;
    const auto leave_out_before = [&](size_t record) {
      for (; next_left_out < whole->left_out.size() && whole->left_out[next_left_out] <= record;
           ++next_left_out) {
        part->left_out.push_back(part->records.size());
      }
    };
    for (size_t record = 0; record < whole->records.size(); ++record) {
      leave_out_before(record);
      const uint64_t number = has_offsets()
                                  ? whole->offsets[record]
                                  : in_item + whole->first_number + record + next_left_out;
      if (!IsTaken(info, number)) {
        part->left_out.push_back(part->records.size());
        continue;
      }
      part->records.push_back(whole->records[record]);
      part->offsets.push_back(whole->offsets[record]);
      if (!whole->keys.empty()) part->keys.push_back(whole->keys[record]);
    }
    leave_out_before(whole->records.size());
    for (const BadRecord& bad : whole->bad) {
      if (IsTaken(info, in_item + bad.number)) part->bad.push_back(bad);
    }
    return part;
  }

  const std::unique_ptr<RecordSource> source_;
  const HeldBack held_back_;
  std::vector<uint64_t> names_;  // hashes, by file
  std::vector<ChunkInfo> chunks_;
  std::vector<size_t> origins_;  // by chunk: which one of source_ it is
};

}  // namespace

bool IsHeldBack(double share, std::string_view name, uint64_t number) {
  return IsBelow(share, Fnv1a(name) + number);
}

absl::StatusOr<std::vector<std::unique_ptr<RecordSource>>> TakePart(
    std::vector<std::unique_ptr<RecordSource>> sources, const SourceSpec& spec) {
  uint64_t all = 0, taken = 0;
  for (auto& source : sources) {
    all += source->records();
    source = std::make_unique<PartSource>(std::move(source), spec.held_back);
    taken += source->records();
  }
  if (taken > 0 || spec.may_be_empty) return sources;
  return absl::InvalidArgumentError(
      StrCat("of ", all, " records ", spec.held_back.is_read ? "none is" : "all are",
             " held back for the evaluation by a share of ", spec.held_back.share));
}

}  // namespace muster::data
