#include <functional>
#include <utility>

#include "muster/data/file_source.h"
#include "muster/formats/example.h"
#include "muster/formats/tfrecord.h"

namespace muster::data {
namespace {

std::string AtByte(const Chunk& piece, uint64_t offset) {
  return StrCat(piece.file, ": record at byte ", offset);
}

// Pieces of a compressed file. The bytes of a piece are its records, without frames.
class TfRecordPieces : public ChunkStream {
 public:
  using NewPiece = std::function<std::shared_ptr<Chunk>()>;
  using CountBad = std::function<absl::Status(uint64_t count, BadRecord bad)>;

  TfRecordPieces(std::unique_ptr<formats::TfRecordReader> reader, const ChunkInfo& info,
                 uint64_t piece_bytes, NewPiece new_piece, CountBad count_bad)
      : reader_(std::move(reader)),
        end_(info.first_record + info.records),
        first_(info.first_record),
        piece_bytes_(piece_bytes),
        new_piece_(std::move(new_piece)),
        count_bad_(std::move(count_bad)) {}

  absl::StatusOr<std::shared_ptr<const Chunk>> Next() override {
    std::shared_ptr<Chunk> piece = new_piece_();
    piece->bytes.clear();
    piece->first_number += std::max(frame_, first_) - first_;
    sizes_.clear();
    while (frame_ < end_ && piece->bytes.size() < piece_bytes_) {
      MUSTER_RETURN_IF_ERROR(Append(piece.get()));
    }
    if (sizes_.empty()) return nullptr;
    const char* data = piece->bytes.data();
    for (const size_t size : sizes_) {
      piece->records.emplace_back(data, size);
      data += size;
    }
    return piece;
  }

 private:
  absl::Status Append(Chunk* piece) {
    const uint64_t offset = reader_->offset();
    std::string_view record;
    const absl::StatusOr<bool> more = reader_->Next(&record);
    if (!more.ok() && !reader_->SkippableError()) return more.status();
    if (more.ok() && !*more) {
      return absl::DataLossError(
          StrCat(piece->file, ": ends at record ", frame_, ", but had more when it was opened"));
    }
    if (frame_++ < first_) return absl::OkStatus();
    if (!more.ok()) {
      const uint64_t number = piece->first_number + sizes_.size() + piece->left_out.size();
      piece->left_out.push_back(sizes_.size());
      return count_bad_(++bad_, {.number = number,
                                 .where = AtByte(*piece, offset),
                                 .bytes = std::string(record),
                                 .why = more.status()});
    }
    piece->bytes.append(record);
    piece->offsets.push_back(offset);
    sizes_.push_back(record.size());
    return absl::OkStatus();
  }

  const std::unique_ptr<formats::TfRecordReader> reader_;
  const uint64_t end_, first_;  // records of the file
  const uint64_t piece_bytes_;
  const NewPiece new_piece_;
  const CountBad count_bad_;
  uint64_t frame_ = 0;
  uint64_t bad_ = 0;
  std::vector<size_t> sizes_;
};

class TfRecordSource : public FileSource {
 public:
  using FileSource::FileSource;

  absl::StatusOr<std::unique_ptr<formats::RowDecoder>> NewDecoder(
      const formats::Schema& schema) const override {
    return formats::NewExampleDecoder(schema);
  }

 protected:
  absl::Status Cut(size_t chunk, Chunk* piece) const override {
    const ChunkInfo& info = chunks()[chunk];
    piece->place = RecordPlace::kByte;
    const std::string_view bytes = piece->bytes;
    uint64_t offset = 0, bad = 0;
    for (uint64_t frame = 0; frame < info.first_record + info.records; ++frame) {
      if (offset >= bytes.size()) return Fewer(*piece, info);
      std::string_view record;
      const absl::StatusOr<uint64_t> size =
          formats::ParseRecord(bytes.substr(offset), piece->file, info.begin + offset, &record);
      if (!size.ok() && record.data() == nullptr) return size.status();
      const uint64_t at = offset;
      offset += record.size() + formats::kTfRecordOverhead;
      if (frame < info.first_record) continue;
      if (!size.ok()) {
        const uint64_t number = info.first_number + (frame - info.first_record);
        piece->left_out.push_back(piece->records.size());
        MUSTER_RETURN_IF_ERROR(CountBad(chunk, ++bad,
                                        {.number = number,
                                         .where = AtByte(*piece, info.begin + at),
                                         .bytes = std::string(record),
                                         .why = size.status()}));
        continue;
      }
      piece->records.push_back(record);
      piece->offsets.push_back(info.begin + at);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<ChunkStream>> StreamCompressed(
      size_t chunk, std::shared_ptr<const io::RandomAccessFile> file,
      uint64_t piece_bytes) const override {
    MUSTER_ASSIGN_OR_RETURN(const formats::Compression compression,
                            formats::DetectCompression(*file));
    MUSTER_ASSIGN_OR_RETURN(auto reader,
                            formats::TfRecordReader::Open(std::move(file), compression));
    return std::make_unique<TfRecordPieces>(
        std::move(reader), chunks()[chunk], piece_bytes,
        [this, chunk] {
          std::shared_ptr<Chunk> piece = NewPiece(chunk);
          piece->place = RecordPlace::kByte;
          return piece;
        },
        [this, chunk](uint64_t count, BadRecord bad) {
          return CountBad(chunk, count, std::move(bad));
        });
  }

 private:
  static absl::Status Fewer(const Chunk& piece, const ChunkInfo& info) {
    return absl::DataLossError(StrCat(piece.file, ": fewer records between bytes ", info.begin,
                                      " and ", info.end,
                                      " than its index says: run `muster "
                                      "records index` again"));
  }
};

}  // namespace

std::unique_ptr<RecordSource> NewTfRecordSource(io::FileSystem& file_system,
                                                const std::vector<IndexedItem>& files,
                                                const SourceSpec& spec, uint64_t max_bad_records) {
  return std::make_unique<TfRecordSource>(file_system, files, spec, max_bad_records);
}

}  // namespace muster::data
