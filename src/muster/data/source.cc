#include "muster/data/source.h"

#include <utility>

#include "absl/strings/str_join.h"

#include "muster/data/file_source.h"

namespace muster::data {
namespace {

absl::Status CheckShard(const Shard& shard) {
  if (shard.count >= 1 && shard.index >= 0 && shard.index < shard.count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("shard ", shard.index, " of ", shard.count, ": the first of N shards is 0 of N"));
}

absl::StatusOr<std::vector<std::string>> FindFiles(io::FileSystem& file_system,
                                                   const std::vector<std::string>& patterns) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    MUSTER_ASSIGN_OR_RETURN(const auto found, io::Glob(file_system, pattern));
    paths.insert(paths.end(), found.begin(), found.end());
  }
  if (paths.empty()) return absl::InvalidArgumentError("no input files were given");
  for (const std::string& path : paths) {
    MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, file_system.Stat(path));
    if (info.is_folder) {
      return absl::InvalidArgumentError(
          StrCat(path, ": is a folder; to read its files write '", path, "/*'"));
    }
    if (FormatOfName(path) != FormatOfName(paths[0])) {
      return absl::InvalidArgumentError(
          StrCat("files of two formats cannot be mixed: ", paths[0], " and ", path));
    }
  }
  return paths;
}

}  // namespace

std::string Chunk::Where(size_t record) const {
  if (format != FileFormat::kTfRecord) return StrCat(file, ":", offsets[record]);
  return StrCat(file, ": record at byte ", offsets[record]);
}

uint64_t RecordSource::records() const {
  uint64_t sum = 0;
  for (const ChunkInfo& chunk : chunks()) sum += chunk.records;
  return sum;
}

absl::StatusOr<std::unique_ptr<RecordSource>> OpenSource(io::FileSystem& files,
                                                         const SourceSpec& spec,
                                                         uint64_t max_bad_records) {
  MUSTER_RETURN_IF_ERROR(CheckShard(spec.shard));
  MUSTER_RETURN_IF_ERROR(formats::CheckCsvOptions(spec.csv));
  MUSTER_ASSIGN_OR_RETURN(const auto paths, FindFiles(files, spec.patterns));
  std::vector<FileSource::File> indexed;
  uint64_t records = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    const bool own = spec.shard.by == ShardBy::kRecord ||
                     i % spec.shard.count == static_cast<size_t>(spec.shard.index);
    if (!own) continue;
    MUSTER_ASSIGN_OR_RETURN(RecordIndex index, LoadOrScanRecords(files, paths[i], spec.csv));
    records += index.records();
    indexed.push_back({paths[i], std::move(index)});
  }
  if (records == 0 && (spec.shard.count == 1 || spec.shard.by == ShardBy::kRecord)) {
    return absl::InvalidArgumentError(StrCat("no records in ", absl::StrJoin(paths, ", ")));
  }
  if (FormatOfName(paths[0]) == FileFormat::kTfRecord) {
    return NewTfRecordSource(files, indexed, spec, max_bad_records);
  }
  return NewTextSource(files, FormatOfName(paths[0]), indexed, spec, max_bad_records);
}

}  // namespace muster::data
