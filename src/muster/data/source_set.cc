#include "muster/data/source_set.h"

#include <algorithm>
#include <array>
#include <utility>

#include "muster/data/chunk_table.h"
#include "muster/data/held_back.h"
#include "muster/io/path_scheme.h"

namespace muster::data {
namespace {

constexpr std::string_view kParquetEnding = ".parquet";
constexpr std::string_view kParquetMagic = "PAR1";
constexpr std::array<std::string_view, 6> kOtherEndings = {".tfrecord", ".csv",  ".tsv",
                                                           ".txt",      ".json", ".jsonl"};
constexpr int kMaxNesting = 32;

bool HasParquetMagic(io::FileSystem& files, const std::string& path, uint64_t size) {
  std::string begin(kParquetMagic.size(), '\0'), end = begin;
  if (size < begin.size() + end.size()) return false;
  const auto file = files.OpenForRead(path);
  return file.ok() && (*file)->Read(0, begin.size(), begin.data()).ok() &&
         (*file)->Read(size - end.size(), end.size(), end.data()).ok() && begin == kParquetMagic &&
         end == kParquetMagic;
}

// Whether the first file of a path, which may be a folder, is one of Parquet.
bool BeginsWithParquet(io::FileSystem& files, const std::string& path, const io::FileInfo& info,
                       int depth) {
  if (!info.is_folder) {
    if (path.ends_with(kParquetEnding)) return true;
    const bool has_ending = io::Basename(path).find('.') != std::string::npos;
    return !has_ending && HasParquetMagic(files, path, info.size);
  }
  const auto entries = files.ListEntries(path);
  if (!entries.ok() || depth > kMaxNesting) return false;
  for (const io::FolderEntry& entry : *entries) {
    if (entry.name.starts_with('_') || entry.name.starts_with('.')) continue;
    return BeginsWithParquet(files, io::JoinPath(path, entry.name), entry.info, depth + 1);
  }
  return false;
}

bool NamesParquet(io::FileSystem& files, const std::string& pattern) {
  if (pattern.ends_with(kParquetEnding)) return true;
  if (std::any_of(kOtherEndings.begin(), kOtherEndings.end(),
                  [&](std::string_view ending) { return pattern.ends_with(ending); })) {
    return false;
  }
  const auto paths = io::Glob(files, pattern);
  if (!paths.ok() || paths->empty()) return false;
  const auto info = files.Stat(paths->front());
  return info.ok() && BeginsWithParquet(files, paths->front(), *info, 0);
}

// Returns the set for a pattern; null if it names files of records.
std::shared_ptr<const SourceSet> FindSet(io::FileSystem& files, const SourceSchemes& schemes,
                                         const std::string& pattern) {
  const auto found = schemes.find(io::PathScheme(pattern));
  if (found != schemes.end()) return found->second;
  const auto parquet = schemes.find(kParquetKind);
  return parquet != schemes.end() && NamesParquet(files, pattern) ? parquet->second : nullptr;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const SourceSet>> ChooseSourceSet(
    io::FileSystem& files, const SourceSchemes& schemes, const std::vector<std::string>& patterns) {
  std::shared_ptr<const SourceSet> chosen;
  for (size_t i = 0; i < patterns.size(); ++i) {
    std::shared_ptr<const SourceSet> set = FindSet(files, schemes, patterns[i]);
    if (i > 0 && set != chosen) {
      return absl::InvalidArgumentError(StrCat("data of two kinds cannot be mixed: ", patterns[0],
                                               " and ", patterns[i], "; give one kind"));
    }
    chosen = std::move(set);
  }
  if (chosen == nullptr) chosen = NewFileSet(files);
  return chosen;
}

absl::StatusOr<std::vector<SourceItem>> ListSources(io::FileSystem& files, const SourceSpec& spec) {
  MUSTER_ASSIGN_OR_RETURN(const auto set, ChooseSourceSet(files, spec.schemes, spec.patterns));
  return set->List(spec.patterns);
}

absl::StatusOr<std::vector<std::unique_ptr<RecordSource>>> OpenShards(io::FileSystem& files,
                                                                      const SourceSpec& spec,
                                                                      std::span<const Shard> shards,
                                                                      uint64_t max_bad_records) {
  for (const Shard& shard : shards) MUSTER_RETURN_IF_ERROR(CheckShard(shard));
  MUSTER_ASSIGN_OR_RETURN(const auto set, ChooseSourceSet(files, spec.schemes, spec.patterns));
  MUSTER_ASSIGN_OR_RETURN(auto sources, set->OpenShards(spec, shards, max_bad_records));
  if (spec.held_back.share <= 0) return sources;
  return TakePart(std::move(sources), spec);
}

absl::StatusOr<std::unique_ptr<RecordSource>> OpenSource(io::FileSystem& files,
                                                         const SourceSpec& spec,
                                                         uint64_t max_bad_records) {
  MUSTER_ASSIGN_OR_RETURN(auto sources,
                          OpenShards(files, spec, std::span(&spec.shard, 1), max_bad_records));
  return std::move(sources.front());
}

}  // namespace muster::data
