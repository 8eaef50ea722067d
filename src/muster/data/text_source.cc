#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "muster/data/column_names.h"
#include "muster/data/file_source.h"
#include "muster/formats/json_lines.h"

namespace muster::data {
namespace {

// Reads a compressed file in pieces.
class TextPieces : public ChunkStream {
 public:
  using NewPiece = std::function<std::shared_ptr<Chunk>()>;

  TextPieces(std::unique_ptr<formats::CsvRowReader> reader, const ChunkInfo& info,
             uint64_t piece_bytes, NewPiece new_piece)
      : reader_(std::move(reader)),
        end_(info.first_record + info.records),
        first_(info.first_record),
        piece_bytes_(piece_bytes),
        new_piece_(std::move(new_piece)) {}

  absl::StatusOr<std::shared_ptr<const Chunk>> Next() override {
    std::shared_ptr<Chunk> piece = new_piece_();
    piece->bytes.clear();
    piece->first_number += std::max(row_, first_) - first_;
    sizes_.clear();
    for (; row_ < end_ && piece->bytes.size() < piece_bytes_; ++row_) {
      std::string_view row;
      MUSTER_ASSIGN_OR_RETURN(const bool more, reader_->Next(&row));
      if (!more) {
        return absl::DataLossError(
            StrCat(piece->file, ": ends after row ", row_, ", but had more when it was opened"));
      }
      if (row_ < first_) continue;
      piece->bytes.append(row);
      piece->offsets.push_back(reader_->line());
      sizes_.push_back(row.size());
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
  const std::unique_ptr<formats::CsvRowReader> reader_;
  const uint64_t end_, first_;  // the rows of the file to read
  const uint64_t piece_bytes_;
  const NewPiece new_piece_;
  uint64_t row_ = 0;
  std::vector<size_t> sizes_;
};

// Reads rows of text: CSV, or one JSON object per line.
class TextSource : public FileSource {
 public:
  TextSource(io::FileSystem& file_system, const FileRules& rules,
             const std::vector<IndexedItem>& files, const SourceSpec& spec,
             uint64_t max_bad_records)
      : FileSource(file_system, files, spec, max_bad_records),
        format_(rules.format),
        options_(rules.csv),
        given_names_(spec.format.columns),
        may_lack_(spec.may_lack) {}

  // Finds the columns of each file. Files without a header all have the columns of the first file.
  absl::Status FindColumns() {
    layout_of_file_.assign(files().size(), 0);
    if (format_ == FileFormat::kJsonLines) return absl::OkStatus();
    const size_t files_to_read =
        options_.header ? files().size() : std::min<size_t>(1, files().size());
    for (size_t i = 0; i < files_to_read; ++i) {
      MUSTER_ASSIGN_OR_RETURN(auto file, OpenFile(static_cast<int>(i)));
      MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                              ReadColumnNames(file, options_, given_names_, may_lack_));
      MUSTER_RETURN_IF_ERROR(AddLayout(i, names));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<formats::RowDecoder>> NewDecoder(
      const formats::Schema& schema) const override {
    if (format_ == FileFormat::kJsonLines) return formats::NewJsonDecoder(schema);
    absl::StatusOr<std::unique_ptr<formats::RowDecoder>> decoder =
        formats::NewCsvDecoder(schema, names_, options_);
    if (!decoder.ok() && !files().empty()) return Annotate(decoder.status(), files()[0]);
    return decoder;
  }

 protected:
  absl::Status Cut(size_t chunk, Chunk* piece) const override {
    const ChunkInfo& info = chunks()[chunk];
    formats::CsvRowScanner scanner(options_);
    std::string_view rest = piece->bytes;
    uint64_t line = info.line;
    for (uint64_t row = 0; row < info.first_record + info.records;) {
      if (rest.empty()) return Fewer(*piece, info);
      size_t size = scanner.Find(rest);
      if (size == formats::CsvRowScanner::kMore) {
        if (scanner.in_quotes()) return Fewer(*piece, info);
        size = rest.size();  // the file's last row, which has no line end
      }
      const std::string_view text = formats::StripLineEnd(rest.substr(0, size));
      if (!text.empty() && row++ >= info.first_record) {
        piece->records.push_back(text);
        piece->offsets.push_back(line);
      }
      const bool one_line = std::memchr(text.data(), '\n', text.size()) == nullptr;
      line += one_line ? 1 : 1 + std::count(text.begin(), text.end(), '\n');
      rest.remove_prefix(size);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<ChunkStream>> StreamCompressed(
      size_t chunk, std::shared_ptr<const io::RandomAccessFile> file,
      uint64_t piece_bytes) const override {
    MUSTER_ASSIGN_OR_RETURN(auto reader, formats::CsvRowReader::Open(std::move(file), options_));
    return std::make_unique<TextPieces>(std::move(reader), chunks()[chunk], piece_bytes,
                                        [this, chunk] { return NewPiece(chunk); });
  }

  std::shared_ptr<Chunk> NewPiece(size_t chunk) const override {
    std::shared_ptr<Chunk> piece = FileSource::NewPiece(chunk);
    piece->place = RecordPlace::kLine;
    piece->layout = GetLayout(chunk);
    return piece;
  }

 private:
  static absl::Status Fewer(const Chunk& piece, const ChunkInfo& info) {
    return absl::DataLossError(StrCat(piece.file, ":", info.line, ": fewer rows up to byte ",
                                      info.end,
                                      " than its index says: run `muster records index` "
                                      "again"));
  }

  int GetLayout(size_t chunk) const {
    return layout_of_file_[static_cast<size_t>(chunks()[chunk].file)];
  }

  // The same columns in another order have a separate layout.
  absl::Status AddLayout(size_t file, const std::vector<std::string>& names) {
    const auto known = std::ranges::find(names_, names);
    layout_of_file_[file] = static_cast<int>(known - names_.begin());
    if (known != names_.end()) return absl::OkStatus();
    if (!names_.empty()) {
      const std::string other = formats::DescribeOtherColumns(names_.front(), names);
      if (!other.empty()) {
        return absl::InvalidArgumentError(
            StrCat(files()[file], ": its header differs from that of ", files()[0], ": ", other));
      }
    }
    names_.push_back(names);
    return absl::OkStatus();
  }

  const FileFormat format_;
  const formats::CsvOptions options_;
  const std::vector<std::string> given_names_;
  const std::vector<std::string> may_lack_;
  std::vector<std::vector<std::string>> names_;  // names of columns, by layout
  std::vector<int> layout_of_file_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RecordSource>> NewTextSource(io::FileSystem& file_system,
                                                            const FileRules& rules,
                                                            const std::vector<IndexedItem>& files,
                                                            const SourceSpec& spec,
                                                            uint64_t max_bad_records) {
  auto source = std::make_unique<TextSource>(file_system, rules, files, spec, max_bad_records);
  MUSTER_RETURN_IF_ERROR(source->FindColumns());
  return source;
}

}  // namespace muster::data
