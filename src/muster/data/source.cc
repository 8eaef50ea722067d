#include "muster/data/source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace muster::data {
namespace {

constexpr absl::string_view kMayBeLeftOut = "muster/may_be_left_out";

class OnePieceStream : public ChunkStream {
 public:
  OnePieceStream(const RecordSource& source, size_t chunk) : source_(source), chunk_(chunk) {}
  absl::StatusOr<std::shared_ptr<const Chunk>> Next() override {
    if (std::exchange(done_, true)) return nullptr;
    return source_.Read(chunk_);
  }

 private:
  const RecordSource& source_;
  const size_t chunk_;
  bool done_ = false;
};

}  // namespace

absl::Status TooManyBad(const absl::Status& why, uint64_t allowed) {
  if (allowed == 0) {
    absl::Status marked = why;
    marked.SetPayload(kMayBeLeftOut, absl::Cord());
    return marked;
  }
  return absl::Status(
      why.code(),
      StrCat(why.message(), " (", allowed, " bad record", allowed == 1 ? "" : "s", " before it ",
             allowed == 1 ? "was" : "were", " left out: --max-bad-records allows no more)"));
}

bool MayBeLeftOut(const absl::Status& error) { return error.GetPayload(kMayBeLeftOut).has_value(); }

std::string Chunk::Where(size_t record) const {
  switch (place) {
    case RecordPlace::kByte:
      return StrCat(file, ": record at byte ", offsets[record]);
    case RecordPlace::kLine:
      return StrCat(file, ":", offsets[record]);
    case RecordPlace::kOffset:
      return StrCat(file, ": offset ", offsets[record]);
    case RecordPlace::kRow:
      return StrCat(file, ": row ", offsets[record]);
  }
  return file;
}

uint64_t Chunk::Number(size_t record) const {
  const auto before = std::upper_bound(left_out.begin(), left_out.end(), record);
  return first_number + record + static_cast<uint64_t>(before - left_out.begin());
}

uint64_t RecordSource::records() const {
  uint64_t sum = 0;
  for (const ChunkInfo& chunk : chunks()) sum += chunk.records;
  return sum;
}

std::unique_ptr<ChunkStream> NewOnePieceStream(const RecordSource& source, size_t chunk) {
  return std::make_unique<OnePieceStream>(source, chunk);
}

}  // namespace muster::data
