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

// Reads a compressed file in pieces. A piece has the bytes of its records, without frames.
class TfRecordPieces : public ChunkStream {
 public:
  using NewPiece = std::function<std::shared_ptr<Chunk>()>;

  TfRecordPieces(std::unique_ptr<formats::TfRecordReader> reader, const ChunkInfo& info,
                 uint64_t piece_bytes, NewPiece new_piece, uint64_t max_bad)
      : reader_(std::move(reader)),
        end_(info.first_record + info.records),
        first_(info.first_record),
        piece_bytes_(piece_bytes),
        new_piece_(std::move(new_piece)),
        max_bad_(max_bad) {}

  absl::StatusOr<std::shared_ptr<const Chunk>> Next() override {
    std::shared_ptr<Chunk> piece = new_piece_();
    piece->bytes.clear();
    piece->first_number += std::max(frame_, first_) - first_;
    sizes_.clear();
    while (frame_ < end_ && piece->bytes.size() < piece_bytes_ && piece->bad.size() <= max_bad_) {
      MUSTER_RETURN_IF_ERROR(Append(piece.get()));
    }
    if (sizes_.empty() && piece->bad.empty()) return nullptr;
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
      piece->bad.push_back({.number = number,
                            .where = AtByte(*piece, offset),
                            .bytes = std::string(record),
                            .why = more.status()});
      return absl::OkStatus();
    }
    piece->bytes.append(record);
    piece->offsets.push_back(offset);
    sizes_.push_back(record.size());
    return absl::OkStatus();
  }

  const std::unique_ptr<formats::TfRecordReader> reader_;
  const uint64_t end_, first_;  // the records of the file to read
  const uint64_t piece_bytes_;
  const NewPiece new_piece_;
  const uint64_t max_bad_;
  uint64_t frame_ = 0;
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
    const std::string_view bytes = piece->bytes;
    uint64_t offset = 0;
    const uint64_t end = info.first_record + info.records;
    for (uint64_t frame = 0; frame < end && piece->bad.size() <= max_bad_records(); ++frame) {
      if (offset >= bytes.size()) return Fewer(*piece, info);
      std::string_view record;
      const absl::StatusOr<uint64_t> size =
          formats::ParseRecord(bytes.substr(offset), piece->file, info.begin + offset, &record);
      if (!size.ok() && record.data() == nullptr) return WrongIndex(size.status());
      const uint64_t at = offset;
      offset += record.size() + formats::kTfRecordOverhead;
      if (frame < info.first_record) continue;
      if (!size.ok()) {
        const uint64_t number = info.first_number + (frame - info.first_record);
        piece->left_out.push_back(piece->records.size());
        piece->bad.push_back({.number = number,
                              .where = AtByte(*piece, info.begin + at),
                              .bytes = std::string(record),
                              .why = size.status()});
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
        std::move(reader), chunks()[chunk], piece_bytes, [this, chunk] { return NewPiece(chunk); },
        max_bad_records());
  }

  std::shared_ptr<Chunk> NewPiece(size_t chunk) const override {
    std::shared_ptr<Chunk> piece = FileSource::NewPiece(chunk);
    piece->place = RecordPlace::kByte;
    return piece;
  }

 private:
  // An index that is newer than a file and has its size is assumed to belong to the file.
  static absl::Status WrongIndex(const absl::Status& why) {
    return absl::Status(
        why.code(), StrCat(why.message(),
                           "; if the file was replaced by one of the same size and `muster records "
                           "verify` finds it sound, `muster records index` makes a new index"));
  }

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
