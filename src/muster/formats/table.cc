#include "muster/formats/table.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "muster/base/byte_reader.h"
#include "muster/base/crc32c.h"
#include "muster/formats/table_coding.h"

namespace muster::formats {
namespace {

constexpr uint64_t kTableMagic = 0xdb4775248b80fb57;
constexpr size_t kFooterBytes = 48;
constexpr size_t kHandlesBytes = 40;  // two handles of at most 20 bytes, padded with zeros
// the type of compression, and the masked CRC-32C of block and type
constexpr size_t kTrailerBytes = 5;
constexpr char kUncompressed = 0;
constexpr char kSnappy = 1;

std::string EncodeHandle(uint64_t offset, uint64_t size) {
  std::string handle;
  AppendVarint(&handle, offset);
  AppendVarint(&handle, size);
  return handle;
}

// Returns the shortest key that is >= `key` and < `next`.
std::string Separator(std::string key, std::string_view next) {
  const size_t common = std::min(key.size(), next.size());
  size_t i = 0;
  while (i < common && key[i] == next[i]) ++i;
  if (i == common) return key;
  const auto byte = static_cast<uint8_t>(key[i]);
  if (byte < 0xff && byte + 1 < static_cast<uint8_t>(next[i])) {
    key.resize(i + 1);
    ++key[i];
  }
  return key;
}

// Returns a short key that is >= `key`.
std::string Successor(std::string key) {
  const size_t i = key.find_first_not_of('\xff');
  if (i == std::string::npos) return key;
  key.resize(i + 1);
  ++key[i];
  return key;
}

// Walks a table's bytes; every offset is checked before it is used.
class TableWalker {
 public:
  using Visit = std::function<absl::Status(std::string_view, std::string_view)>;

  TableWalker(std::string_view bytes, std::string_view file)
      : bytes_(bytes), file_(file), key_budget_((uint64_t{1} << 20) + 16 * bytes.size()) {}

  absl::Status Walk(const Visit& visit) {
    if (bytes_.size() < kFooterBytes) {
      return Broken(0, StrCat("the file has ", bytes_.size(),
                              " bytes, fewer than the footer of a checkpoint index"));
    }
    const uint64_t footer = bytes_.size() - kFooterBytes;
    if (GetFixed64(bytes_.data() + footer + kHandlesBytes) != kTableMagic) {
      return Broken(footer + kHandlesBytes,
                    "no magic number of a checkpoint index (cut short, or another format)");
    }
    ByteReader handles(bytes_.substr(footer, kHandlesBytes));
    uint64_t meta_offset, meta_size, index_offset, index_size;
    if (!handles.ReadVarint(&meta_offset) || !handles.ReadVarint(&meta_size) ||
        !handles.ReadVarint(&index_offset) || !handles.ReadVarint(&index_size)) {
      return Broken(footer, "the footer's block positions cannot be read");
    }
    MUSTER_ASSIGN_OR_RETURN(const std::string_view index, Block(index_offset, index_size, footer));
    return ForEachEntry(index, index_offset, [&](std::string_view, std::string_view handle) {
      return WalkDataBlock(handle, index_offset, footer, visit);
    });
  }

 private:
  absl::Status Broken(uint64_t offset, std::string_view what) const {
    return absl::DataLossError(StrCat(file_, ": byte ", offset, ": ", what));
  }

  absl::Status WalkDataBlock(std::string_view handle, uint64_t index_offset, uint64_t limit,
                             const Visit& visit) {
    uint64_t offset, size;
    ByteReader reader(handle);
    if (!reader.ReadVarint(&offset) || !reader.ReadVarint(&size)) {
      return Broken(index_offset, "the position of a data block cannot be read");
    }
    MUSTER_ASSIGN_OR_RETURN(const std::string_view block, Block(offset, size, limit));
    return ForEachEntry(block, offset, [&](std::string_view key, std::string_view value) {
      if (any_key_ && key <= last_key_) return Broken(offset, "keys are not in ascending order");
      any_key_ = true;
      last_key_.assign(key);
      return visit(key, value);
    });
  }

  // Returns a block's contents, after checking its checksum.
  absl::StatusOr<std::string_view> Block(uint64_t offset, uint64_t size, uint64_t limit) const {
    if (limit < kTrailerBytes || size > limit - kTrailerBytes ||
        offset > limit - kTrailerBytes - size) {
      return Broken(offset, StrCat("a block of ", size, " bytes reaches beyond the file"));
    }
    const std::string_view with_type = bytes_.substr(offset, size + 1);
    if (MaskedCrc32c(with_type) != GetFixed32(bytes_.data() + offset + size + 1)) {
      return Broken(offset, "the checksum of a block is wrong");
    }
    if (with_type.back() == kSnappy) {
      return absl::UnimplementedError(StrCat(file_, ": byte ", offset,
                                             ": a block is compressed with Snappy, which "
                                             "TensorFlow's checkpoints do not use"));
    }
    if (with_type.back() != kUncompressed) return Broken(offset, "a block of unknown compression");
    return with_type.substr(0, size);
  }

  absl::Status ForEachEntry(std::string_view block, uint64_t offset, const Visit& visit) {
    if (block.size() < 4) return Broken(offset, "a block without its restart count");
    const uint64_t restarts = GetFixed32(block.data() + block.size() - 4);
    if (restarts > (block.size() - 4) / 4) {
      return Broken(offset, StrCat("a block claims ", restarts, " restart points"));
    }
    ByteReader rest(block.substr(0, block.size() - 4 - 4 * restarts));
    std::string key;
    while (!rest.done()) {
      uint64_t shared, unshared, value_size;
      std::string_view key_end, value;
      if (!rest.ReadVarint(&shared) || !rest.ReadVarint(&unshared) ||
          !rest.ReadVarint(&value_size) || shared > key.size() ||
          !rest.ReadBytes(unshared, &key_end) || !rest.ReadBytes(value_size, &value)) {
        return Broken(offset, "an entry's lengths do not fit its block");
      }
      if (shared + unshared > key_budget_) {
        return Broken(offset, "keys take much more memory than the file");
      }
      key_budget_ -= shared + unshared;
      key.resize(shared);
      key.append(key_end);
      MUSTER_RETURN_IF_ERROR(visit(key, value));
    }
    return absl::OkStatus();
  }

  std::string_view bytes_;
  std::string_view file_;
  uint64_t key_budget_;
  std::string last_key_;
  bool any_key_ = false;
};

}  // namespace

void TableBuilder::Block::Add(std::string_view key, std::string_view value) {
  size_t shared = 0;
  if (since_restart_ < restart_interval_) {
    const size_t common = std::min(key.size(), last_key_.size());
    while (shared < common && key[shared] == last_key_[shared]) ++shared;
  } else {
    restarts_.push_back(static_cast<uint32_t>(bytes_.size()));
    since_restart_ = 0;
  }
  AppendVarint(&bytes_, shared);
  AppendVarint(&bytes_, key.size() - shared);
  AppendVarint(&bytes_, value.size());
  bytes_.append(key.substr(shared));
  bytes_.append(value);
  last_key_.assign(key);
  ++since_restart_;
}

std::string TableBuilder::Block::Finish() {
  std::string block = std::move(bytes_);
  for (const uint32_t restart : restarts_) AppendFixed32(&block, restart);
  AppendFixed32(&block, static_cast<uint32_t>(restarts_.size()));
  *this = Block(restart_interval_);
  return block;
}

TableBuilder::TableBuilder(TableOptions options)
    : options_(options), data_(options.restart_interval) {}

void TableBuilder::Add(std::string_view key, std::string_view value) {
  if (key.size() + value.size() >= 2 * options_.block_size) FlushData();
  if (!pending_handle_.empty()) {
    index_.Add(Separator(std::move(last_key_), key), pending_handle_);
    pending_handle_.clear();
  }
  last_key_.assign(key);
  data_.Add(key, value);
  if (data_.size() >= options_.block_size) FlushData();
}

std::string TableBuilder::Write(Block& block) {
  std::string contents = block.Finish();
  std::string handle = EncodeHandle(file_.size(), contents.size());
  contents.push_back(kUncompressed);
  const uint32_t checksum = MaskedCrc32c(contents);
  file_.append(contents);
  AppendFixed32(&file_, checksum);
  return handle;
}

void TableBuilder::FlushData() {
  if (!data_.empty()) pending_handle_ = Write(data_);
}

std::string TableBuilder::Finish() {
  FlushData();
  Block meta(options_.restart_interval);
  std::string handles = Write(meta);
  if (!pending_handle_.empty()) index_.Add(Successor(std::move(last_key_)), pending_handle_);
  handles += Write(index_);
  handles.resize(kHandlesBytes, '\0');
  file_.append(handles);
  AppendFixed64(&file_, kTableMagic);
  return std::move(file_);
}

absl::Status ReadTable(
    std::string_view bytes, std::string_view file,
    const std::function<absl::Status(std::string_view key, std::string_view value)>& visit) {
  return TableWalker(bytes, file).Walk(visit);
}

}  // namespace muster::formats
