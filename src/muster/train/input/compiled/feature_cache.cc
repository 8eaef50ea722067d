#include "muster/train/input/compiled/feature_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"

#include "muster/base/crc32c.h"
#include "muster/base/strings.h"
#include "muster/data/batch_stream_reader.h"
#include "muster/features/fingerprint.h"
#include "muster/formats/json_fields.h"
#include "muster/io/path_scheme.h"
#include "muster/io/private_file_system.h"

namespace muster::train {
namespace {

using formats::Json;

constexpr std::string_view kEnding = ".features";
constexpr size_t kLongText = 64 << 10;
constexpr int64_t kStaleNanos = int64_t{3600} * 1'000'000'000;  // of a file that is written
constexpr int kOthersMayWrite = S_IWGRP | S_IWOTH;

int64_t NowNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// All of the model that decides what a row becomes, or fingerprints of it if it has many words.
std::string PrintColumns(const model::ModelSpec& spec) {
  model::ModelSpec columns;
  columns.features = spec.features;
  columns.head = spec.head;
  columns.format = spec.format;
  for (features::ColumnSpec& column : columns.features.columns) column.words_file.clear();
  const std::string text = model::PrintModelSpec(columns);
  if (text.size() <= kLongText) return text;
  return absl::StrFormat("%d bytes %016x %08x", text.size(),
                         features::Fingerprint64(std::string_view(text)), Crc32c(text));
}

// Gives files the names that they have from whichever folder a process was started in.
class AbsoluteNames {
 public:
  absl::StatusOr<std::string> Get(const std::string& name) {
    const std::string_view scheme = io::PathScheme(name);
    if (!scheme.empty() && scheme != io::kFileScheme) return name;
    MUSTER_ASSIGN_OR_RETURN(const std::string path, io::LocalPath(name));
    const std::string folder = io::Dirname(path);
    auto found = folders_.find(folder);
    if (found == folders_.end()) {
      std::error_code error;
      // Links must be followed before "..": the folder above is that of the link's target.
      const auto real = std::filesystem::weakly_canonical(folder, error);
      if (error || !real.is_absolute()) {
        return absl::NotFoundError(StrCat("cannot find the folder ", folder));
      }
      found = folders_.emplace(folder, real.string()).first;
    }
    return io::JoinPath(found->second, io::Basename(path));
  }

 private:
  std::map<std::string, std::string> folders_;
};

// Whether a file has a name that GetPath() gives: 16 hexadecimal digits and the ending. Others in
// the folder belong to somebody else.
bool IsOurs(std::string_view name) {
  constexpr size_t kDigits = 16;
  return name.size() == kDigits + kEnding.size() && name.ends_with(kEnding) &&
         name.find_first_not_of("0123456789abcdef") == kDigits;
}

}  // namespace

FeatureCache::FeatureCache(FeatureCacheOptions options)
    : options_(std::move(options)), files_(io::NewPrivateFileSystem()) {}

absl::StatusOr<std::shared_ptr<FeatureCache>> FeatureCache::Open(FeatureCacheOptions options) {
  std::shared_ptr<FeatureCache> cache(new FeatureCache(std::move(options)));
  const std::string& folder = cache->options_.folder;
  MUSTER_RETURN_IF_ERROR(cache->files_->MakeFolders(folder));
  MUSTER_ASSIGN_OR_RETURN(const auto entries, cache->files_->ListEntries(folder));
  for (const io::FolderEntry& entry : entries) {
    const bool is_begun =
        io::IsTemporaryName(entry.name) &&
        IsOurs(entry.name.substr(1, entry.name.find(kEnding) + kEnding.size() - 1));
    if (is_begun && entry.info.modified_ns < NowNanos() - kStaleNanos) {
      (void)cache->files_->Remove(io::JoinPath(folder, entry.name));  // another one may be quicker
    }
  }
  return cache;
}

absl::StatusOr<FeatureKey> FeatureCache::MakeKey(io::FileSystem& files, const model::Model& model,
                                                 const data::SourceSpec& source,
                                                 bool with_labels) const {
  FeatureKey key;
  if (model.spec.exported || data::IsBatchStream(source)) return key;
  MUSTER_ASSIGN_OR_RETURN(auto items, data::ListSources(files, source));
  Json data = Json::array();
  AbsoluteNames names;
  uint64_t bytes = 0;
  for (const data::SourceItem& item : items) {
    if (item.kind != data::SourceItem::Kind::kFile || item.modified_ns == 0) return key;
    bytes += item.size();
    MUSTER_ASSIGN_OR_RETURN(std::string name, names.Get(item.name));
    data.push_back({std::move(name), item.size(), item.modified_ns});
  }
  if (bytes < options_.least_data) return key;
  key.data = std::move(items);
  const data::Shard& shard = source.shard;
  key.text = formats::PrintJson(
      {{"muster", options_.version},
       {"data", std::move(data)},
       {"shard", {shard.index, shard.count, static_cast<int>(shard.by), shard.multiple}},
       {"first_number", source.first_number},
       {"format", formats::Describe(source.format)},
       {"missing", source.format.missing.value_or(std::vector<std::string>())},
       {"columns", PrintColumns(model.spec)},
       {"dense", model.request.dense},
       {"categorical", model.request.categorical},
       {"labels", with_labels}});
  return key;
}

std::string FeatureCache::GetPath(const std::string& key) const {
  return io::JoinPath(
      options_.folder,
      absl::StrFormat("%016x%s", features::Fingerprint64(std::string_view(key)), ToAbsl(kEnding)));
}

absl::StatusOr<std::shared_ptr<const CompiledFile>> FeatureCache::Open(
    const std::string& path, const std::string& key) const {
  MUSTER_ASSIGN_OR_RETURN(const io::FileInfo about, files_->Stat(path));
  if (about.owner != StrCat(geteuid())) {
    return absl::PermissionDeniedError(
        StrCat(path, ": the file belongs to another user (", about.owner, ")"));
  }
  if ((about.mode & kOthersMayWrite) != 0) {
    return absl::PermissionDeniedError(
        absl::StrFormat("%s: other users may write the file (mode %04o)", path, about.mode));
  }
  MUSTER_ASSIGN_OR_RETURN(auto file, CompiledFile::Open(*files_, path));
  if (file->info().key != key) {
    return absl::FailedPreconditionError(StrCat(path, ": the file is of other data or columns"));
  }
  return file;
}

std::shared_ptr<const CompiledFile> FeatureCache::Find(const std::string& key,
                                                       std::string* note) const {
  const std::string path = GetPath(key);
  auto file = Open(path, key);
  if (absl::IsNotFound(file.status())) return nullptr;
  if (!file.ok()) {
    *note = StrCat("compiled features are made again: ", file.status().message());
    // What is not removed is replaced by its successor.
    if (absl::IsDataLoss(file.status())) (void)files_->Remove(path);
    return nullptr;
  }
  (void)utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // without it the file only seems less used
  return *std::move(file);
}

absl::StatusOr<std::unique_ptr<CompiledFileWriter>> FeatureCache::Begin(
    const std::string& key) const {
  return CompiledFileWriter::Create(*files_, GetPath(key));
}

void FeatureCache::RemoveOldest() const {
  auto entries = files_->ListEntries(options_.folder);
  if (!entries.ok()) return;
  std::erase_if(*entries, [](const io::FolderEntry& entry) { return !IsOurs(entry.name); });
  std::ranges::sort(*entries, std::greater(),
                    [](const io::FolderEntry& entry) { return entry.info.modified_ns; });
  uint64_t bytes = 0;
  for (size_t i = 0; i < entries->size(); ++i) {
    const io::FolderEntry& entry = (*entries)[i];
    bytes += entry.info.size;
    if (i > 0 && bytes > options_.most_bytes) {
      (void)files_->Remove(io::JoinPath(options_.folder, entry.name));  // or another one has
    }
  }
}

void FeatureCache::Remove(const CompiledFile& file) const {
  (void)files_->Remove(file.path());  // else its successor replaces it
}

std::string FeatureCache::NotKept(std::string_view why) const {
  return StrCat("the features are not kept in ", options_.folder, ": ", why);
}

absl::Status CheckUnchanged(io::FileSystem& files, const data::SourceSpec& source,
                            const FeatureKey& key) {
  MUSTER_ASSIGN_OR_RETURN(const auto items, data::ListSources(files, source));
  std::map<std::string_view, const data::SourceItem*> by_name;
  for (const data::SourceItem& item : items) by_name[item.name] = &item;
  for (const data::SourceItem& before : key.data) {
    const auto now = by_name.find(before.name);
    if (now == by_name.end() || *now->second != before) {
      return absl::FailedPreconditionError(
          StrCat(before.name, " was changed or removed after this program began to read it"));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::train
