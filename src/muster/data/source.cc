#include "muster/data/source.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/data/file_source.h"

namespace muster::data {
namespace {

absl::Status CheckShard(const Shard& shard) {
  if (shard.multiple < 1) {
    return absl::InvalidArgumentError(StrCat("shards of multiples of ", shard.multiple));
  }
  if (shard.count >= 1 && shard.index >= 0 && shard.index < shard.count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("shard ", shard.index, " of ", shard.count, ": the first of N shards is 0 of N"));
}

// Whether records of the file may be the shard's.
bool Has(const Shard& shard, size_t file) {
  return shard.by == ShardBy::kRecord ||
         file % static_cast<size_t>(shard.count) == static_cast<size_t>(shard.index);
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

absl::Status TooManyBad(const absl::Status& why, uint64_t allowed) {
  if (allowed == 0) return why;
  return absl::Status(
      why.code(),
      StrCat(why.message(), " (", allowed, " bad record", allowed == 1 ? "" : "s", " before it ",
             allowed == 1 ? "was" : "were", " left out: --max-bad-records allows no more)"));
}

std::string Chunk::Where(size_t record) const {
  if (format != FileFormat::kTfRecord) return StrCat(file, ":", offsets[record]);
  return StrCat(file, ": record at byte ", offsets[record]);
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

absl::StatusOr<std::vector<std::unique_ptr<RecordSource>>> OpenShards(io::FileSystem& files,
                                                                      const SourceSpec& spec,
                                                                      std::span<const Shard> shards,
                                                                      uint64_t max_bad_records) {
  for (const Shard& shard : shards) MUSTER_RETURN_IF_ERROR(CheckShard(shard));
  MUSTER_RETURN_IF_ERROR(formats::CheckCsvOptions(spec.csv));
  MUSTER_ASSIGN_OR_RETURN(const auto paths, FindFiles(files, spec.patterns));
  std::map<size_t, RecordIndex> indices;
  uint64_t records = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    const bool needed = std::any_of(shards.begin(), shards.end(),
                                    [i](const Shard& shard) { return Has(shard, i); });
    if (!needed) continue;
    MUSTER_ASSIGN_OR_RETURN(indices[i], LoadOrScanRecords(files, paths[i], spec.csv));
    records += indices[i].records();
  }
  // Where each file is one shard's, another may have them all.
  const bool whole = shards.empty() || shards.front().count == std::ssize(shards) ||
                     shards.front().by == ShardBy::kRecord;
  if (records == 0 && whole && !spec.may_be_empty) {
    return absl::InvalidArgumentError(StrCat("no records in ", absl::StrJoin(paths, ", ")));
  }
  std::vector<std::unique_ptr<RecordSource>> sources;
  SourceSpec own = spec;
  for (const Shard& shard : shards) {
    own.shard = shard;
    std::vector<FileSource::File> indexed;
    for (const auto& [i, index] : indices) {
      if (Has(shard, i)) indexed.push_back({paths[i], index});
    }
    if (FormatOfName(paths[0]) == FileFormat::kTfRecord) {
      sources.push_back(NewTfRecordSource(files, indexed, own, max_bad_records));
      continue;
    }
    MUSTER_ASSIGN_OR_RETURN(sources.emplace_back(), NewTextSource(files, FormatOfName(paths[0]),
                                                                  indexed, own, max_bad_records));
  }
  return sources;
}

absl::StatusOr<std::unique_ptr<RecordSource>> OpenSource(io::FileSystem& files,
                                                         const SourceSpec& spec,
                                                         uint64_t max_bad_records) {
  MUSTER_ASSIGN_OR_RETURN(auto sources,
                          OpenShards(files, spec, std::span(&spec.shard, 1), max_bad_records));
  return std::move(sources.front());
}

}  // namespace muster::data
