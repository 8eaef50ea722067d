#include "muster/formats/idx.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "muster/formats/compression.h"
#include "muster/formats/tfrecord.h"

namespace muster::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "items are given little-endian");

constexpr size_t kIdxMagicBytes = 4;
constexpr size_t kIdxPieceBytes = size_t{256} << 10;
constexpr int kMaxIdxRank = 16;

struct IdxTypeRow {
  IdxType type;
  std::string_view name;
  size_t bytes;
};

constexpr IdxTypeRow kIdxTypes[] = {
    {IdxType::kUint8, "uint8", 1},     {IdxType::kInt8, "int8", 1},
    {IdxType::kInt16, "int16", 2},     {IdxType::kInt32, "int32", 4},
    {IdxType::kFloat32, "float32", 4}, {IdxType::kFloat64, "float64", 8},
};

const IdxTypeRow* FindIdxType(IdxType type) {
  const auto* const found = std::ranges::find(kIdxTypes, type, &IdxTypeRow::type);
  return found == std::end(kIdxTypes) ? nullptr : found;
}

uint32_t LoadBigEndian(const char* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return __builtin_bswap32(value);
}

class FileIdxReader : public IdxReader {
 public:
  FileIdxReader(std::string path, std::unique_ptr<ByteStream> stream)
      : path_(std::move(path)), stream_(std::move(stream)) {}

  absl::Status ReadHead() {
    MUSTER_RETURN_IF_ERROR(Fill(kIdxMagicBytes, "its first 4 bytes"));
    const IdxTypeRow* const type =
        FindIdxType(static_cast<IdxType>(static_cast<uint8_t>(item_[2])));
    if (item_[0] != 0 || item_[1] != 0 || type == nullptr) {
      return Broken("this is not an IDX file: it does not begin with two zeros and a type");
    }
    type_ = type->type;
    element_bytes_ = type->bytes;
    const int rank = static_cast<unsigned char>(item_[3]);
    if (rank < 1 || rank > kMaxIdxRank) {
      return Broken(StrCat("it has ", rank, " dimensions, but an array has 1 to ", kMaxIdxRank));
    }
    MUSTER_RETURN_IF_ERROR(Fill(static_cast<size_t>(rank) * 4, "its dimensions"));
    items_ = LoadBigEndian(item_.data());
    item_bytes_ = element_bytes_;
    for (int i = 1; i < rank; ++i) {
      const uint32_t size = LoadBigEndian(item_.data() + size_t{4} * i);
      if (size == 0) return Broken(StrCat("its dimension ", i + 1, " is 0: items have no bytes"));
      shape_.push_back(size);
      if (__builtin_mul_overflow(item_bytes_, size, &item_bytes_) ||
          item_bytes_ > kMaxIdxItemBytes) {
        return Broken(StrCat("its dimensions make items of more than ", kMaxIdxItemBytes,
                             " bytes: they are damaged"));
      }
    }
    return absl::OkStatus();
  }

  IdxType type() const override { return type_; }
  uint64_t items() const override { return items_; }
  const std::vector<int64_t>& shape() const override { return shape_; }
  uint64_t item_bytes() const override { return item_bytes_; }

  absl::StatusOr<bool> Next(std::string_view* item) override {
    MUSTER_RETURN_IF_ERROR(failure_);
    absl::StatusOr<bool> more = ReadNext(item);
    failure_ = more.status();
    return more;
  }

 private:
  absl::Status Broken(std::string_view what) const {
    return absl::DataLossError(StrCat(path_, ": ", what));
  }

  absl::StatusOr<bool> ReadNext(std::string_view* item) {
    if (next_ == items_) {
      char byte;
      MUSTER_ASSIGN_OR_RETURN(const size_t count, Read(1, &byte));
      if (count > 0) {
        return Broken(StrCat("bytes follow after the last of its ", items_,
                             " items: its dimensions or its end are damaged"));
      }
      return false;
    }
    MUSTER_RETURN_IF_ERROR(Fill(item_bytes_, StrCat("item ", next_, " of ", items_)));
    ++next_;
    if (element_bytes_ > 1) {
      for (size_t at = 0; at < item_.size(); at += element_bytes_) {
        std::reverse(item_.begin() + static_cast<ptrdiff_t>(at),
                     item_.begin() + static_cast<ptrdiff_t>(at + element_bytes_));
      }
    }
    *item = item_;
    return true;
  }

  absl::StatusOr<size_t> Read(size_t size, char* buffer) {
    const absl::StatusOr<size_t> count = stream_->Read(size, buffer);
    return count.ok() ? count : Annotate(count.status(), path_);
  }

  // Reads the next `size` bytes into item_.
  absl::Status Fill(uint64_t size, std::string_view what) {
    item_.clear();
    while (item_.size() < size) {
      const size_t before = item_.size();
      item_.resize(before + std::min<uint64_t>(size - before, kIdxPieceBytes));
      MUSTER_ASSIGN_OR_RETURN(const size_t count,
                              Read(item_.size() - before, item_.data() + before));
      item_.resize(before + count);
      if (count == 0) {
        return Broken(StrCat("it is cut at byte ", offset_ + before, ", in ", what));
      }
    }
    offset_ += size;
    return absl::OkStatus();
  }

  const std::string path_;
  const std::unique_ptr<ByteStream> stream_;
  IdxType type_ = IdxType::kUint8;
  size_t element_bytes_ = 1;
  uint64_t items_ = 0;
  std::vector<int64_t> shape_;
  uint64_t item_bytes_ = 0;
  uint64_t next_ = 0;
  uint64_t offset_ = 0;  // uncompressed; of what is read next
  std::string item_;
  absl::Status failure_;
};

template <typename T>
int64_t ParseInteger(std::string_view item) {
  T value;
  std::memcpy(&value, item.data(), sizeof value);
  return value;
}

}  // namespace

size_t IdxTypeBytes(IdxType type) {
  const IdxTypeRow* const row = FindIdxType(type);
  return row == nullptr ? 0 : row->bytes;
}

std::string_view IdxTypeName(IdxType type) {
  const IdxTypeRow* const row = FindIdxType(type);
  return row == nullptr ? "unknown" : row->name;
}

bool IsIdxInteger(IdxType type) { return type != IdxType::kFloat32 && type != IdxType::kFloat64; }

int64_t IdxInteger(IdxType type, std::string_view item) {
  switch (type) {
    case IdxType::kUint8:
      return ParseInteger<uint8_t>(item);
    case IdxType::kInt8:
      return ParseInteger<int8_t>(item);
    case IdxType::kInt16:
      return ParseInteger<int16_t>(item);
    case IdxType::kInt32:
      return ParseInteger<int32_t>(item);
    default:
      return 0;
  }
}

absl::StatusOr<std::unique_ptr<IdxReader>> IdxReader::Open(
    std::shared_ptr<const io::RandomAccessFile> file) {
  MUSTER_ASSIGN_OR_RETURN(const Compression compression, DetectCompression(*file));
  std::string path = file->path();
  auto reader =
      std::make_unique<FileIdxReader>(std::move(path), NewByteStream(std::move(file), compression));
  MUSTER_RETURN_IF_ERROR(reader->ReadHead());
  return reader;
}

}  // namespace muster::formats
