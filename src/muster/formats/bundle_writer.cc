#include <algorithm>

#include "muster/base/crc32c.h"
#include "muster/formats/bundle.h"
#include "muster/formats/bundle_files.h"
#include "muster/formats/bundle_proto.h"
#include "muster/formats/table.h"

namespace muster::formats {
namespace {

class FileBundleWriter : public BundleWriter {
 public:
  FileBundleWriter(io::FileSystem& files, std::string prefix, int old_shards)
      : files_(files), prefix_(std::move(prefix)), old_shards_(old_shards) {}

  ~FileBundleWriter() override {
    if (finished_) return;
    if (data_) data_->Close().IgnoreError();
    for (const std::string& path : data_paths_) files_.Remove(path).IgnoreError();
    files_.Remove(TemporaryIndex()).IgnoreError();
  }

  absl::Status Open() {
    data_paths_.push_back(io::TemporaryPath(BundleDataPath(prefix_, 0, 1)));
    MUSTER_ASSIGN_OR_RETURN(data_, files_.OpenForLargeWrite(data_paths_.front()));
    return absl::OkStatus();
  }

  int AddFile(std::string path) override {
    data_paths_.push_back(std::move(path));
    return static_cast<int>(data_paths_.size()) - 1;
  }

  absl::Status AddRows(std::string_view name, DataType type, std::span<const int64_t> shape,
                       std::span<const SavedRows> rows) override {
    MUSTER_ASSIGN_OR_RETURN(const uint64_t size, GetBytes(name, type, shape));
    if (size == 0 && rows.empty()) return Add(name, type, shape, "");
    if (shape.empty() || rows.empty()) return Refused(name, "it has no rows to be divided by");
    std::vector<SavedRows> sorted(rows.begin(), rows.end());
    std::ranges::sort(sorted, {}, &SavedRows::first);
    const auto count = static_cast<uint64_t>(shape.front());
    TensorSlice slice(shape.size());
    BundleEntry whole{.type = type, .shape = {shape.begin(), shape.end()}};
    int64_t next = 0;
    for (const SavedRows& each : sorted) {
      const bool fits = each.first == next && each.count > 0 && each.count <= shape[0] - next &&
                        each.file > 0 && each.file < static_cast<int>(data_paths_.size());
      if (!fits) return Refused(name, StrCat("its row ", next, " is missing or there twice"));
      next += each.count;
      slice.front() = {.start = each.first, .length = each.count};
      BundleEntry part = {.type = type,
                          .shape = whole.shape,
                          .shard = each.file,
                          .offset = static_cast<int64_t>(each.offset),
                          .size = static_cast<int64_t>(size / count) * each.count,
                          .masked_crc = MaskCrc(each.crc)};
      part.shape.front() = each.count;
      entries_.insert_or_assign(GetSliceKey(name, slice), std::move(part));
      whole.slices.push_back(slice);
    }
    if (next != shape[0]) return Refused(name, StrCat("its row ", next, " is missing"));
    MUSTER_ASSIGN_OR_RETURN(BundleEntry* const entry, NewEntry(name, type, shape, 0));
    *entry = std::move(whole);
    return absl::OkStatus();
  }

  absl::Status Add(std::string_view name, DataType type, std::span<const int64_t> shape,
                   std::string_view bytes) override {
    MUSTER_ASSIGN_OR_RETURN(const uint64_t size, GetBytes(name, type, shape));
    if (bytes.size() != size) return WrongSize(name, bytes.size());
    MUSTER_ASSIGN_OR_RETURN(BundleEntry* const entry, NewEntry(name, type, shape, size));
    uint32_t crc = 0;
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kBundlePieceBytes))) {
      MUSTER_RETURN_IF_ERROR(AppendPiece(bytes.substr(0, kBundlePieceBytes), &crc));
    }
    entry->masked_crc = MaskCrc(crc);
    return absl::OkStatus();
  }

  absl::Status AddPieces(std::string_view name, DataType type, std::span<const int64_t> shape,
                         const ReadPiece& read) override {
    MUSTER_ASSIGN_OR_RETURN(const uint64_t size, GetBytes(name, type, shape));
    MUSTER_ASSIGN_OR_RETURN(BundleEntry* const entry, NewEntry(name, type, shape, size));
    uint32_t crc = 0;
    for (uint64_t done = 0; done < size;) {
      piece_.resize(std::min<uint64_t>(size - done, kBundlePieceBytes));
      MUSTER_RETURN_IF_ERROR(read(piece_));
      MUSTER_RETURN_IF_ERROR(AppendPiece({piece_.data(), piece_.size()}, &crc));
      done += piece_.size();
    }
    entry->masked_crc = MaskCrc(crc);
    return absl::OkStatus();
  }

  absl::Status AddStrings(std::string_view name, std::span<const int64_t> shape,
                          std::span<const std::string> values) override {
    const std::optional<int64_t> count = ElementCount(shape);
    if (!count || static_cast<uint64_t>(*count) != values.size()) {
      return Refused(name, StrCat(values.size(), " strings do not fit its shape"));
    }
    const EncodedStrings encoded = EncodeStrings(values);
    MUSTER_ASSIGN_OR_RETURN(BundleEntry* const entry,
                            NewEntry(name, DataType::kString, shape, encoded.bytes.size()));
    entry->masked_crc = MaskCrc(encoded.crc);
    return data_->Append(encoded.bytes);
  }

  absl::Status Finish() override {
    MUSTER_RETURN_IF_ERROR(data_->Sync());
    MUSTER_RETURN_IF_ERROR(data_->Close());
    data_.reset();
    if (static_cast<int>(data_paths_.size()) == old_shards_) MUSTER_RETURN_IF_ERROR(AddEmptyFile());
    const int shards = static_cast<int>(data_paths_.size());
    MUSTER_RETURN_IF_ERROR(WriteIndex(shards));
    for (int shard = 0; shard < shards; ++shard) {
      std::string& path = data_paths_[static_cast<size_t>(shard)];
      MUSTER_RETURN_IF_ERROR(files_.Rename(path, BundleDataPath(prefix_, shard, shards)));
    }
    // The names of the data files must be durable before the index that refers to them.
    const std::string folder = io::Dirname(prefix_);
    MUSTER_RETURN_IF_ERROR(files_.SyncFolder(folder));
    MUSTER_RETURN_IF_ERROR(files_.Rename(TemporaryIndex(), BundleIndexPath(prefix_)));
    finished_ = true;
    MUSTER_RETURN_IF_ERROR(files_.SyncFolder(folder));
    for (int shard = 0; shard < old_shards_; ++shard) {
      files_.Remove(BundleDataPath(prefix_, shard, old_shards_)).IgnoreError();
    }
    return absl::OkStatus();
  }

 private:
  std::string TemporaryIndex() const { return io::TemporaryPath(BundleIndexPath(prefix_)); }

  // The data files of the bundle that this one replaces keep their names until its index is there.
  absl::Status AddEmptyFile() {
    const auto shard = static_cast<int>(data_paths_.size());
    data_paths_.push_back(io::TemporaryPath(BundleDataPath(prefix_, shard, shard + 1)));
    MUSTER_ASSIGN_OR_RETURN(const auto file, files_.OpenForWrite(data_paths_.back()));
    MUSTER_RETURN_IF_ERROR(file->Sync());
    return file->Close();
  }

  absl::Status Refused(std::string_view name, std::string_view what) const {
    return absl::InvalidArgumentError(
        StrCat("writing checkpoint ", prefix_, ": tensor '", name, "': ", what));
  }

  absl::Status WrongSize(std::string_view name, uint64_t bytes) const {
    return Refused(name, StrCat(bytes, " bytes do not fit its type and shape"));
  }

  // Returns the number of bytes of a tensor of plain elements.
  absl::StatusOr<uint64_t> GetBytes(std::string_view name, DataType type,
                                    std::span<const int64_t> shape) const {
    const std::optional<int64_t> count = ElementCount(shape);
    const size_t width = DataTypeBytes(type);
    if (!count || width == 0) return Refused(name, "its type or shape cannot be stored");
    uint64_t bytes;
    if (__builtin_mul_overflow(static_cast<uint64_t>(*count), width, &bytes)) {
      return Refused(name, "its shape cannot be stored");
    }
    return bytes;
  }

  // Adds an entry at the end of the data. The caller must set its checksum.
  absl::StatusOr<BundleEntry*> NewEntry(std::string_view name, DataType type,
                                        std::span<const int64_t> shape, uint64_t bytes) {
    if (name.empty() || name.front() == '\0') return Refused(name, "this name cannot be stored");
    const auto [entry, is_new] = entries_.try_emplace(std::string(name));
    if (!is_new) return Refused(name, "added twice");
    entry->second.type = type;
    entry->second.shape.assign(shape.begin(), shape.end());
    entry->second.offset = static_cast<int64_t>(offset_);
    entry->second.size = static_cast<int64_t>(bytes);
    offset_ += bytes;
    return &entry->second;
  }

  absl::Status AppendPiece(std::string_view piece, uint32_t* crc) {
    *crc = ExtendCrc32c(*crc, piece);
    return data_->Append(piece);
  }

  absl::Status WriteIndex(int shards) {
    TableBuilder table;
    table.Add("", SerializeBundleHeader({.shards = shards}));
    for (const auto& [name, entry] : entries_) table.Add(name, SerializeBundleEntry(entry));
    MUSTER_ASSIGN_OR_RETURN(auto file, files_.OpenForWrite(TemporaryIndex()));
    absl::Status status = file->Append(table.Finish());
    if (status.ok()) status = file->Sync();
    status.Update(file->Close());
    return status;
  }

  io::FileSystem& files_;
  const std::string prefix_;
  const int old_shards_;  // shards of the bundle that this one replaces; 0: there is none
  std::unique_ptr<io::WritableFile> data_;      // gets all tensors but those of AddRows
  std::vector<std::string> data_paths_;         // the first one is that of data_
  std::map<std::string, BundleEntry> entries_;  // of slices too
  uint64_t offset_ = 0;
  std::vector<char> piece_;
  bool finished_ = false;
};

// Returns the number of shards that the index of `prefix` names; 0 if there is no readable index.
absl::StatusOr<int> ExistingShards(io::FileSystem& files, const std::string& prefix) {
  const absl::StatusOr<std::string> index = io::ReadFile(files, BundleIndexPath(prefix));
  if (absl::IsNotFound(index.status())) return 0;
  MUSTER_RETURN_IF_ERROR(index.status());
  int shards = 0;
  absl::Status end_of_walk = absl::CancelledError();
  const absl::Status read =
      ReadTable(*index, BundleIndexPath(prefix), [&](std::string_view key, std::string_view value) {
        const std::optional<BundleHeader> header = ParseBundleHeader(value);
        if (key.empty() && header) shards = header->shards;
        return end_of_walk;
      });
  return read == end_of_walk ? shards : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BundleWriter>> BundleWriter::Create(io::FileSystem& files,
                                                                   const std::string& prefix) {
  MUSTER_ASSIGN_OR_RETURN(const int old_shards, ExistingShards(files, prefix));
  auto writer = std::make_unique<FileBundleWriter>(files, prefix, old_shards);
  MUSTER_RETURN_IF_ERROR(writer->Open());
  return writer;
}

}  // namespace muster::formats
