#include <algorithm>
#include <functional>

#include "muster/base/crc32c.h"
#include "muster/base/nearest.h"
#include "muster/formats/bundle.h"
#include "muster/formats/bundle_files.h"
#include "muster/formats/bundle_proto.h"
#include "muster/formats/table.h"

namespace muster::formats {
namespace {

class FileBundleReader : public BundleReader {
 public:
  FileBundleReader(io::FileSystem& files, std::string prefix)
      : files_(files), prefix_(std::move(prefix)), index_path_(BundleIndexPath(prefix_)) {}

  absl::Status Open() {
    MUSTER_ASSIGN_OR_RETURN(const std::string index, io::ReadFile(files_, index_path_));
    MUSTER_RETURN_IF_ERROR(
        ReadTable(index, index_path_, [this](std::string_view key, std::string_view value) {
          return has_header_ ? AddEntry(key, value) : AddHeader(key, value);
        }));
    if (!has_header_) return Broken("it has no header");
    return CheckExtents();
  }

  const std::map<std::string, TensorInfo>& tensors() const override { return tensors_; }

  absl::Status Read(std::string_view name, std::span<char> buffer) const override {
    MUSTER_ASSIGN_OR_RETURN(const BundleEntry* entry, Find(name));
    if (entry->type == DataType::kString) {
      return absl::InvalidArgumentError(
          StrCat(prefix_, ": tensor '", name, "' has strings, not plain bytes"));
    }
    if (buffer.size() != static_cast<uint64_t>(entry->size)) {
      return absl::InvalidArgumentError(StrCat(prefix_, ": tensor '", name, "' has ", entry->size,
                                               " bytes, but the buffer has ", buffer.size()));
    }
    return ReadParts(
        name, *entry, {},
        [&](uint64_t offset, size_t size) { return buffer.subspan(offset, size); },
        [](uint64_t, std::span<const char>) { return absl::OkStatus(); });
  }

  absl::Status ReadPieces(std::string_view name, const WantsRows& wants,
                          const TakePiece& take) const override {
    MUSTER_ASSIGN_OR_RETURN(const BundleEntry* entry, Find(name));
    std::vector<char> piece;
    return ReadParts(
        name, *entry, wants,
        [&](uint64_t, size_t size) {
          piece.resize(size);
          return std::span(piece);
        },
        take);
  }

  absl::StatusOr<std::vector<std::string>> ReadStrings(std::string_view name) const override {
    MUSTER_ASSIGN_OR_RETURN(const BundleEntry* entry, Find(name));
    if (entry->type != DataType::kString) {
      return absl::InvalidArgumentError(
          StrCat(prefix_, ": tensor '", name, "' is ", DataTypeName(entry->type), ", not string"));
    }
    if (entry->size == 0) return std::vector<std::string>();
    std::string bytes(entry->size, '\0');
    uint32_t crc = 0;  // of the file's bytes; a string tensor's is computed differently
    MUSTER_RETURN_IF_ERROR(ReadPiece(name, *entry, 0, bytes, &crc));
    auto values = DecodeStrings(bytes, *ElementCount(entry->shape), &crc);
    if (!values.ok()) return Annotate(values.status(), Where(name, *entry));
    MUSTER_RETURN_IF_ERROR(CheckCrc(name, *entry, crc));
    return values;
  }

  absl::Status Verify(std::string_view name) const override {
    MUSTER_ASSIGN_OR_RETURN(const BundleEntry* entry, Find(name));
    if (entry->type == DataType::kString) return ReadStrings(name).status();
    return ReadPieces(name, {}, [](uint64_t, std::span<const char>) { return absl::OkStatus(); });
  }

 private:
  // Where a piece at an offset of a tensor is to be read.
  using GetRoom = std::function<std::span<char>(uint64_t offset, size_t size)>;

  absl::Status ReadParts(std::string_view name, const BundleEntry& entry, const WantsRows& wants,
                         const GetRoom& room, const TakePiece& take) const {
    uint64_t offset = 0;
    int64_t row = 0;
    for (const BundleEntry* const part : GetParts(name, entry)) {
      const auto bytes = static_cast<size_t>(part->size);
      const bool is_wanted = part == &entry || !wants || wants(row, part->shape.front());
      uint32_t crc = 0;
      for (size_t done = 0; is_wanted && done < bytes;) {
        const size_t size = std::min(bytes - done, kBundlePieceBytes);
        const std::span<char> piece = room(offset + done, size);
        MUSTER_RETURN_IF_ERROR(ReadPiece(name, *part, done, piece, &crc));
        MUSTER_RETURN_IF_ERROR(take(offset + done, piece));
        done += size;
      }
      if (is_wanted) MUSTER_RETURN_IF_ERROR(CheckCrc(name, *part, crc));
      offset += bytes;
      if (part != &entry) row += part->shape.front();
    }
    return absl::OkStatus();
  }

  absl::Status Broken(std::string_view what) const {
    return absl::DataLossError(StrCat(index_path_, ": ", what));
  }

  // Returns "FILE: tensor 'x' at byte N".
  std::string Where(std::string_view name, const BundleEntry& entry) const {
    return StrCat(data_files_[entry.shard]->path(), ": tensor '", name, "' at byte ", entry.offset);
  }

  absl::Status AddHeader(std::string_view key, std::string_view value) {
    const std::optional<BundleHeader> header = ParseBundleHeader(value);
    if (!key.empty() || !header) return Broken("its first entry is not a checkpoint's header");
    if (header->big_endian) {
      return absl::UnimplementedError(
          StrCat(index_path_, ": a checkpoint from a big-endian machine"));
    }
    if (header->min_consumer > kBundleVersion) {
      return absl::UnimplementedError(StrCat(index_path_, ": written for readers of version ",
                                             header->min_consumer, ", but this is version ",
                                             kBundleVersion));
    }
    if (header->shards < 0) return Broken(StrCat("it claims ", header->shards, " data files"));
    shards_ = header->shards;
    has_header_ = true;
    return absl::OkStatus();
  }

  absl::Status AddEntry(std::string_view key, std::string_view value) {
    std::optional<BundleEntry> entry = ParseBundleEntry(value);
    if (key.front() == '\0') {  // a slice of a partitioned tensor
      if (entry) slices_.emplace(key, *std::move(entry));
      return absl::OkStatus();
    }
    if (!entry) return Broken(StrCat("the entry of tensor '", key, "' cannot be read"));
    const std::string name(key);
    TensorInfo& info = tensors_[name];
    info.type = entry->type;
    info.shape = entry->shape;
    info.bytes = static_cast<uint64_t>(entry->slices.empty() ? entry->size : 0);
    entries_.emplace(name, *std::move(entry));
    return absl::OkStatus();
  }

  // Opens the data files. Every tensor must lie within its file and have as many bytes as its shape
  // needs.
  absl::Status CheckExtents() {
    std::vector<uint64_t> sizes;
    for (int shard = 0; shard < shards_; ++shard) {
      const std::string path = BundleDataPath(prefix_, shard, shards_);
      MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, files_.Stat(path));
      MUSTER_ASSIGN_OR_RETURN(auto file, files_.OpenForRead(path));
      sizes.push_back(info.size);
      data_files_.push_back(std::move(file));
    }
    for (auto& [name, entry] : entries_) {
      if (entry.slices.empty()) {
        MUSTER_RETURN_IF_ERROR(CheckExtent(name, entry, sizes));
      } else {
        MUSTER_RETURN_IF_ERROR(JoinSlices(name, &entry, sizes));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckExtent(const std::string& name, const BundleEntry& entry,
                           std::span<const uint64_t> sizes) const {
    const std::optional<int64_t> count = ElementCount(entry.shape);
    if (!count) return Broken(StrCat("tensor '", name, "' has an impossible shape"));
    if (entry.shard < 0 || entry.shard >= shards_) {
      return Broken(StrCat("tensor '", name, "' is in data file ", entry.shard, " of ", shards_));
    }
    const uint64_t file_size = sizes[entry.shard];
    if (entry.offset < 0 || entry.size < 0 || static_cast<uint64_t>(entry.size) > file_size ||
        static_cast<uint64_t>(entry.offset) > file_size - entry.size) {
      return Broken(StrCat("tensor '", name, "' of ", entry.size, " bytes at byte ", entry.offset,
                           " reaches beyond ", data_files_[entry.shard]->path(), ", which has ",
                           file_size));
    }
    const auto width = static_cast<int64_t>(DataTypeBytes(entry.type));
    if (width != 0 && (entry.size / width != *count || entry.size % width != 0)) {
      return Broken(StrCat("tensor '", name, "' has ", entry.size, " bytes for ", *count,
                           " elements of type ", DataTypeName(entry.type)));
    }
    return absl::OkStatus();
  }

  // Finds the rows of a tensor that is partitioned by its first dimension alone, in their order,
  // and its size. Other partitioned tensors are listed, and refused when they are read.
  absl::Status JoinSlices(const std::string& name, BundleEntry* entry,
                          std::span<const uint64_t> sizes) {
    const std::optional<int64_t> count = ElementCount(entry->shape);
    if (!count) return Broken(StrCat("tensor '", name, "' has an impossible shape"));
    if (entry->shape.empty() || *count == 0 || DataTypeBytes(entry->type) == 0) {
      return absl::OkStatus();
    }
    for (TensorSlice& slice : entry->slices) {
      if (slice.size() != entry->shape.size()) return Broken(StrCat("slices of '", name, "'"));
      for (size_t i = 1; i < slice.size(); ++i) {
        const bool is_whole = slice[i].start == 0 && slice[i].length == entry->shape[i];
        if (slice[i].length != -1 && !is_whole) return absl::OkStatus();
      }
    }
    std::ranges::sort(entry->slices, {}, [](const TensorSlice& slice) { return slice[0].start; });
    std::vector<const BundleEntry*> parts;
    int64_t next = 0, bytes = 0;
    for (const TensorSlice& slice : entry->slices) {
      const auto found = slices_.find(GetSliceKey(name, slice));
      if (found == slices_.end()) return MissesRow(name, next);
      const BundleEntry& part = found->second;
      MUSTER_RETURN_IF_ERROR(CheckExtent(name, part, sizes));
      std::vector<int64_t> shape = entry->shape;
      if (slice[0].length >= 0) shape[0] = slice[0].length;
      if (slice[0].start != next || part.shape != shape || part.type != entry->type) {
        return MissesRow(name, next);
      }
      parts.push_back(&part);
      next += shape[0];
      bytes += part.size;
    }
    if (next != entry->shape[0]) return MissesRow(name, next);
    entry->size = bytes;
    tensors_[name].bytes = static_cast<uint64_t>(bytes);
    parts_.emplace(name, std::move(parts));
    return absl::OkStatus();
  }

  absl::Status MissesRow(const std::string& name, int64_t row) const {
    return Broken(
        StrCat("row ", row, " of tensor '", name, "' is in none of its slices, or in two"));
  }

  // The entries that together have the tensor's bytes, in their order.
  std::vector<const BundleEntry*> GetParts(std::string_view name, const BundleEntry& entry) const {
    const auto found = parts_.find(std::string(name));
    return found == parts_.end() ? std::vector<const BundleEntry*>{&entry} : found->second;
  }

  absl::StatusOr<const BundleEntry*> Find(std::string_view name) const {
    const auto found = entries_.find(std::string(name));
    if (found == entries_.end()) {
      std::vector<std::string> names;
      for (const auto& [known, entry] : entries_) names.push_back(known);
      return absl::NotFoundError(
          StrCat("checkpoint ", prefix_, " has no tensor '", name, "'", DidYouMean(name, names)));
    }
    const BundleEntry& entry = found->second;
    if (!entry.slices.empty() && !parts_.contains(found->first)) {
      return absl::UnimplementedError(StrCat(
          "checkpoint ", prefix_, ": tensor '", name, "' is partitioned into ", entry.slices.size(),
          " slices by more than its rows, which cannot be read: save it without a "
          "partitioner, or with one of its first dimension"));
    }
    return &found->second;
  }

  // Reads the bytes from `offset` in the tensor on, and extends *crc by them.
  absl::Status ReadPiece(std::string_view name, const BundleEntry& entry, uint64_t offset,
                         std::span<char> piece, uint32_t* crc) const {
    MUSTER_ASSIGN_OR_RETURN(
        const size_t count,
        data_files_[entry.shard]->Read(entry.offset + offset, piece.size(), piece.data()));
    if (count < piece.size()) {
      return absl::DataLossError(StrCat(Where(name, entry), ": the file ends after ",
                                        offset + count, " of ", entry.size, " bytes"));
    }
    *crc = ExtendCrc32c(*crc, {piece.data(), piece.size()});
    return absl::OkStatus();
  }

  absl::Status CheckCrc(std::string_view name, const BundleEntry& entry, uint32_t crc) const {
    if (MaskCrc(crc) == entry.masked_crc) return absl::OkStatus();
    return absl::DataLossError(
        StrCat(Where(name, entry), ": the checksum of its ", entry.size, " bytes is wrong"));
  }

  io::FileSystem& files_;
  const std::string prefix_;
  const std::string index_path_;
  bool has_header_ = false;
  int shards_ = 0;
  std::map<std::string, BundleEntry> entries_;
  std::map<std::string, BundleEntry> slices_;  // by GetSliceKey
  // Of tensors that are partitioned by rows: entries in slices_.
  std::map<std::string, std::vector<const BundleEntry*>> parts_;
  std::map<std::string, TensorInfo> tensors_;
  std::vector<std::unique_ptr<io::RandomAccessFile>> data_files_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BundleReader>> BundleReader::Open(io::FileSystem& files,
                                                                 const std::string& prefix) {
  auto reader = std::make_unique<FileBundleReader>(files, prefix);
  MUSTER_RETURN_IF_ERROR(reader->Open());
  return reader;
}

}  // namespace muster::formats
