#include "muster/data/file_rules.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "muster/formats/sniff.h"

namespace muster::data {
namespace {

using formats::DataFormat;
using formats::Sniffed;
using Content = formats::Sniffed::Content;

struct FoundFile {
  Sniffed sniffed;
  std::optional<FileFormat> format;  // nullopt: an empty file whose name tells nothing
};

FoundFile Judge(const std::string& path, const Sniffed& sniffed, const DataFormat& given) {
  const std::optional<FileFormat> named = formats::GetNamedFormat(path);
  FoundFile found = {.sniffed = sniffed, .format = given.type};
  if (given.type) return found;
  switch (sniffed.content) {
    case Content::kEmpty:
      found.format = named;
      break;
    case Content::kTfRecord:
      found.format = FileFormat::kTfRecord;
      break;
    case Content::kJsonLines:
      found.format = FileFormat::kJsonLines;
      break;
    case Content::kText:
      // The file is a broken one of another format; the reader reports where it is broken.
      found.format = named.value_or(FileFormat::kCsv);
      break;
    case Content::kUnknown:
      found.format = named.value_or(FileFormat::kTfRecord);
      break;
  }
  return found;
}

absl::StatusOr<FoundFile> Look(io::FileSystem& files, const std::string& path,
                               const DataFormat& given) {
  MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, files.Stat(path));
  if (info.is_folder) return FolderError(path);
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<const io::RandomAccessFile> file,
                          files.OpenForRead(path));
  MUSTER_ASSIGN_OR_RETURN(const Sniffed sniffed, formats::SniffFile(file, given));
  if (sniffed.content == Content::kUnknown && !given.type && !formats::GetNamedFormat(path)) {
    return absl::InvalidArgumentError(StrCat(
        path,
        ": its content is binary and of no known format; muster reads CSV, JSON lines, "
        "TFRecord and Parquet; name the data so that other files are left out (if this is a "
        "TFRecord file with a damaged beginning, --data-format tfrecord reads it as such, in "
        "'muster records' --format tfrecord)"));
  }
  return Judge(path, sniffed, given);
}

FileRules MakeRules(FileFormat format, formats::Compression compression, char delimiter,
                    const DataFormat& given) {
  FileRules rules = {.format = format, .compression = compression};
  if (format == FileFormat::kCsv) rules.csv = given.csv(delimiter);
  if (format == FileFormat::kJsonLines) rules.csv = JsonRows();
  return rules;
}

// Whether the name alone suggests what was found: CSV has commas, or tabs if the name ends in .tsv.
bool IsExpected(const std::string& path, const FoundFile& file) {
  const std::optional<FileFormat> named = formats::GetNamedFormat(path);
  if (file.format == FileFormat::kTfRecord) return true;  // its checksum proves the format
  if (named != file.format) return false;
  if (file.format != FileFormat::kCsv || file.sniffed.cells < 2) return true;
  const bool tabs = path.find(".tsv") != std::string::npos;
  return file.sniffed.delimiter == (tabs ? '\t' : ',');
}

std::string MakeNote(const std::string& path, const FoundFile& file, const DataFormat& given) {
  const bool is_csv = file.format == FileFormat::kCsv;
  if ((given.type && (given.delimiter || !is_csv)) || IsExpected(path, file)) return "";
  const std::string read = StrCat(path, " is read as ", FormatWords(*file.format));
  if (!is_csv) return StrCat(read, ", as its content says");
  if (file.sniffed.cells < 2) return StrCat(read, " of one column, as its content says");
  if (given.delimiter) return StrCat(read, ", as its content says");
  return StrCat(read, " with ", file.sniffed.delimiter == '\t' ? "a " : "'",
                formats::PrintDelimiter(file.sniffed.delimiter),
                file.sniffed.delimiter == '\t' ? "" : "'", " between its ", file.sniffed.cells,
                " cells, as its content says (--delimiter or 'format: {delimiter: ...}' in the ",
                "model file overrides this)");
}

}  // namespace

std::string_view FormatWords(FileFormat format) {
  switch (format) {
    case FileFormat::kTfRecord:
      return "TFRecord";
    case FileFormat::kCsv:
      return "CSV";
    case FileFormat::kJsonLines:
      return "JSON lines";
  }
  return "unknown";
}

absl::Status FolderError(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return absl::InvalidArgumentError(
      StrCat(path, ": is a folder; to read its files write '", path, "/*'"));
}

absl::StatusOr<FileRules> FindFileRules(io::FileSystem& files, const std::string& path,
                                        const DataFormat& given) {
  MUSTER_ASSIGN_OR_RETURN(const FoundFile found, Look(files, path, given));
  return MakeRules(found.format.value_or(FileFormat::kTfRecord), found.sniffed.compression,
                   found.sniffed.delimiter, given);
}

absl::StatusOr<SetRules> FindSetRules(io::FileSystem& files, const std::vector<std::string>& paths,
                                      const DataFormat& given) {
  std::vector<FoundFile> found;
  for (const std::string& path : paths) {
    MUSTER_ASSIGN_OR_RETURN(found.emplace_back(), Look(files, path, given));
  }
  const auto is_first = [](const FoundFile& file) {
    return file.format && file.sniffed.content != Content::kEmpty;
  };
  auto first = std::ranges::find_if(found, is_first);
  if (first == found.end()) {
    first = std::ranges::find_if(found, [](const FoundFile& file) { return bool(file.format); });
  }
  const FileFormat format =
      first == found.end() ? FileFormat::kTfRecord : first->format.value_or(FileFormat::kTfRecord);
  const char delimiter = first == found.end() ? ',' : first->sniffed.delimiter;
  SetRules rules;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (is_first(found[i]) && found[i].format != format) {
      const std::string& other = paths[static_cast<size_t>(first - found.begin())];
      return absl::InvalidArgumentError(
          StrCat("files of two formats cannot be read together: ", other, " is ",
                 FormatWords(format), ", but ", paths[i], " is ", FormatWords(*found[i].format)));
    }
    rules.files.push_back(MakeRules(format, found[i].sniffed.compression, delimiter, given));
  }
  if (first != found.end() && is_first(*first)) {
    rules.note = MakeNote(paths[static_cast<size_t>(first - found.begin())], *first, given);
  }
  return rules;
}

}  // namespace muster::data
