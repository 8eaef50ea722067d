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
      : files_(files),
        prefix_(std::move(prefix)),
        old_shards_(old_shards),
        shards_(old_shards == 1 ? 2 : 1) {}

  ~FileBundleWriter() override {
    if (finished_) return;
    for (auto& file : data_files_) {
      if (file) file->Close().IgnoreError();
    }
    RemoveTemporaries();
  }

  absl::Status Open() {
    for (int shard = 0; shard < shards_; ++shard) {
      MUSTER_ASSIGN_OR_RETURN(auto file, files_.OpenForLargeWrite(TemporaryData(shard)));
      data_files_.push_back(std::move(file));
    }
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
    return data_files_.front()->Append(encoded.bytes);
  }

  absl::Status Finish() override {
    for (auto& file : data_files_) {
      MUSTER_RETURN_IF_ERROR(file->Sync());
      MUSTER_RETURN_IF_ERROR(file->Close());
      file.reset();
    }
    MUSTER_RETURN_IF_ERROR(WriteIndex());
    for (int shard = 0; shard < shards_; ++shard) {
      MUSTER_RETURN_IF_ERROR(
          files_.Rename(TemporaryData(shard), BundleDataPath(prefix_, shard, shards_)));
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
  std::string TemporaryData(int shard) const {
    return io::TemporaryPath(BundleDataPath(prefix_, shard, shards_));
  }
  std::string TemporaryIndex() const { return io::TemporaryPath(BundleIndexPath(prefix_)); }

  void RemoveTemporaries() {
    for (int shard = 0; shard < shards_; ++shard) files_.Remove(TemporaryData(shard)).IgnoreError();
    files_.Remove(TemporaryIndex()).IgnoreError();
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
    return data_files_.front()->Append(piece);
  }

  absl::Status WriteIndex() {
    TableBuilder table;
    table.Add("", SerializeBundleHeader({.shards = shards_}));
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
  const int shards_;
  std::vector<std::unique_ptr<io::WritableFile>> data_files_;  // the first one gets all tensors
  std::map<std::string, BundleEntry> entries_;
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
