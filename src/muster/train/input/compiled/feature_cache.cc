#include "muster/train/input/compiled/feature_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"

#include "muster/base/crc32c.h"
#include "muster/base/strings.h"
#include "muster/data/batch_stream_reader.h"
#include "muster/data/source_set.h"
#include "muster/features/fingerprint.h"
#include "muster/formats/json_fields.h"
#include "muster/io/private_file_system.h"

namespace muster::train {
namespace {

using formats::Json;

constexpr std::string_view kEnding = ".features";
constexpr size_t kLongText = 64 << 10;
constexpr int64_t kStaleNanos = int64_t{3600} * 1'000'000'000;  // of a file that is written

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

}  // namespace

FeatureCache::FeatureCache(FeatureCacheOptions options)
    : options_(std::move(options)), files_(io::NewPrivateFileSystem()) {}

absl::StatusOr<std::shared_ptr<FeatureCache>> FeatureCache::Open(FeatureCacheOptions options) {
  std::shared_ptr<FeatureCache> cache(new FeatureCache(std::move(options)));
  const std::string& folder = cache->options_.folder;
  MUSTER_RETURN_IF_ERROR(cache->files_->MakeFolders(folder));
  MUSTER_ASSIGN_OR_RETURN(const auto entries, cache->files_->ListEntries(folder));
  for (const io::FolderEntry& entry : entries) {
    if (io::IsTemporaryName(entry.name) && entry.name.find(kEnding) != std::string::npos &&
        entry.info.modified_ns < NowNanos() - kStaleNanos) {
      (void)cache->files_->Remove(io::JoinPath(folder, entry.name));  // another one may be quicker
    }
  }
  return cache;
}

absl::StatusOr<std::string> FeatureCache::MakeKey(io::FileSystem& files, const model::Model& model,
                                                  const data::SourceSpec& source,
                                                  bool with_labels) const {
  if (model.spec.exported || data::IsBatchStream(source)) return "";
  MUSTER_ASSIGN_OR_RETURN(const auto items, data::ListSources(files, source));
  Json data = Json::array();
  uint64_t bytes = 0;
  for (const data::SourceItem& item : items) {
    if (item.kind != data::SourceItem::Kind::kFile || item.modified_ns == 0) return "";
    bytes += item.size();
    data.push_back({item.name, item.size(), item.modified_ns});
  }
  if (bytes < options_.least_data) return "";
  const data::Shard& shard = source.shard;
  return formats::PrintJson(
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
}

std::string FeatureCache::GetPath(const std::string& key) const {
  return io::JoinPath(
      options_.folder,
      absl::StrFormat("%016x%s", features::Fingerprint64(std::string_view(key)), ToAbsl(kEnding)));
}

std::shared_ptr<const CompiledFile> FeatureCache::Find(const std::string& key,
                                                       std::string* note) const {
  const std::string path = GetPath(key);
  const auto about = files_->Stat(path);
  if (!about.ok() || about->owner != absl::StrFormat("%d", geteuid())) return nullptr;
  auto file = CompiledFile::Open(*files_, path);
  if (absl::IsDataLoss(file.status())) {
    *note = StrCat("the compiled features in ", file.status().message(), ": they are made again");
    (void)files_->Remove(path);  // else its successor replaces it
  }
  if (!file.ok() || (*file)->info().key != key) return nullptr;
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
  std::erase_if(*entries, [](const io::FolderEntry& entry) {
    return !std::string_view(entry.name).ends_with(kEnding) || io::IsTemporaryName(entry.name);
  });
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

}  // namespace muster::train
