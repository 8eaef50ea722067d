// FeatureCache: a folder of compiled files (compiled_file.h), one for each set of data and columns
// that was read to its end. Trainings of any process use it: the last use of each file is its
// modification time, and the files that were used longest ago are removed when there are too many
// bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/source.h"
#include "muster/data/source_set.h"
#include "muster/io/file_system.h"
#include "muster/model/model.h"
#include "muster/train/input/compiled/compiled_file.h"

namespace muster::train {

struct FeatureCacheOptions {
  std::string folder = {};  // on this machine; made if it is missing
  uint64_t most_bytes = uint64_t{20} << 30;
  uint64_t least_data = 0;   // bytes: smaller data is not compiled
  std::string version = {};  // of this program: files of other ones are not used
};

// What a compiled file is made of.
struct FeatureKey {
  std::string text = {};  // exactly (CompiledInfo::key); "" for data that is not compiled
  std::vector<data::SourceItem> data = {};  // its files
};

// Thread-safe.
class FeatureCache {
 public:
  // Removes what killed writers have left. Errors of making the folder.
  static absl::StatusOr<std::shared_ptr<FeatureCache>> Open(FeatureCacheOptions options);

  // Returns what a compiled file is made of: the files of the data with sizes and times, the shard,
  // and all that decides a batch's floats and ids. Local files have absolute paths in it, without
  // symbolic links to their folders. There is no key for data that is smaller than least_data or
  // not in files, and for exported models. Errors of listing the data.
  absl::StatusOr<FeatureKey> MakeKey(io::FileSystem& files, const model::Model& model,
                                     const data::SourceSpec& source, bool with_labels) const;
  // Returns null if there is none that may be used; *note says why if there is one, and a damaged
  // one is removed. A file that another user owns or may write is not used.
  std::shared_ptr<const CompiledFile> Find(const std::string& key, std::string* note) const;
  // Begins the file of the key.
  absl::StatusOr<std::unique_ptr<CompiledFileWriter>> Begin(const std::string& key) const;
  // To be called when a file was finished: removes files if there are too many bytes.
  void RemoveOldest() const;
  // Removes a file that turned out to be damaged.
  void Remove(const CompiledFile& file) const;
  // The words for features that are not kept.
  std::string NotKept(std::string_view why) const;
  const std::string& folder() const { return options_.folder; }

 private:
  explicit FeatureCache(FeatureCacheOptions options);
  std::string GetPath(const std::string& key) const;
  absl::StatusOr<std::shared_ptr<const CompiledFile>> Open(const std::string& path,
                                                           const std::string& key) const;

  const FeatureCacheOptions options_;
  const std::unique_ptr<io::FileSystem> files_;
};

// Returns FAILED_PRECONDITION if a file of the key is not what it was when the key was made. Files
// that came later do not matter.
absl::Status CheckUnchanged(io::FileSystem& files, const data::SourceSpec& source,
                            const FeatureKey& key);

}  // namespace muster::train
