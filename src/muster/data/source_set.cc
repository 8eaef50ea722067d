#include "muster/data/source_set.h"

#include <utility>

#include "muster/data/chunk_table.h"
#include "muster/io/path_scheme.h"

namespace muster::data {
namespace {

// Returns the set for a pattern's scheme; null if the pattern names files.
std::shared_ptr<const SourceSet> FindSet(const SourceSchemes& schemes, std::string_view pattern) {
  const auto found = schemes.find(io::PathScheme(pattern));
  return found == schemes.end() ? nullptr : found->second;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const SourceSet>> ChooseSourceSet(
    io::FileSystem& files, const SourceSchemes& schemes, const std::vector<std::string>& patterns) {
  std::shared_ptr<const SourceSet> chosen;
  for (size_t i = 0; i < patterns.size(); ++i) {
    std::shared_ptr<const SourceSet> set = FindSet(schemes, patterns[i]);
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
  return set->OpenShards(spec, shards, max_bad_records);
}

absl::StatusOr<std::unique_ptr<RecordSource>> OpenSource(io::FileSystem& files,
                                                         const SourceSpec& spec,
                                                         uint64_t max_bad_records) {
  MUSTER_ASSIGN_OR_RETURN(auto sources,
                          OpenShards(files, spec, std::span(&spec.shard, 1), max_bad_records));
  return std::move(sources.front());
}

}  // namespace muster::data
