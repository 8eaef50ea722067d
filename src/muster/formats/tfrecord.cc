#include "muster/formats/tfrecord.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "muster/base/crc32c.h"

namespace muster::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "lengths and CRCs are little-endian");

constexpr size_t kFrameHeaderBytes = 12;
constexpr size_t kFrameFooterBytes = 4;
constexpr size_t kRecordBlockBytes = size_t{256} << 10;
constexpr size_t kKeptRecordBufferBytes = size_t{1} << 20;  // a larger buffer is freed

template <typename T>
T LoadFrameWord(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <typename T>
void StoreFrameWord(T value, char* bytes) {
  std::memcpy(bytes, &value, sizeof value);
}

bool HeaderIsSound(const char* header) {
  return LoadFrameWord<uint32_t>(header + 8) == MaskedCrc32c({header, 8});
}

absl::Status RecordError(std::string_view file, uint64_t offset, std::string_view what) {
  return absl::DataLossError(StrCat(file, ": record at byte ", offset, ": ", what));
}

absl::Status HeaderCut(std::string_view file, uint64_t offset, size_t available) {
  return RecordError(file, offset,
                     StrCat("the file is cut: it ends after ", available, " of the ",
                            kFrameHeaderBytes, " bytes of the record's header"));
}

absl::Status DataCut(std::string_view file, uint64_t offset, uint64_t length, size_t available) {
  return RecordError(
      file, offset,
      StrCat("the file is cut: the record has ", length + kTfRecordOverhead,
             " bytes with its frame, but the file ends after ", available, " of them"));
}

absl::Status WrongDataCrc(std::string_view file, uint64_t offset, uint64_t length) {
  return RecordError(
      file, offset, StrCat("the CRC of its ", length, " bytes of data is wrong: they are damaged"));
}

// Returns the length that the 12 bytes of a header contain.
absl::StatusOr<uint64_t> CheckHeader(const char* header, std::string_view file, uint64_t offset) {
  if (!HeaderIsSound(header)) [[unlikely]] {
    return RecordError(file, offset,
                       offset == 0 ? "the CRC of its length is wrong: this is not a TFRecord file, "
                                     "or its first bytes are damaged"
                                   : "the CRC of its length is wrong: the file is damaged from "
                                     "here on");
  }
  const auto length = LoadFrameWord<uint64_t>(header);
  if (length > kMaxRecordBytes) [[unlikely]] {
    return RecordError(file, offset,
                       StrCat("its length is ", length, " bytes, more than the ", kMaxRecordBytes,
                              " that a record may have"));
  }
  return length;
}

bool DataIsSound(const char* data, uint64_t length) {
  return LoadFrameWord<uint32_t>(data + length) == MaskedCrc32c({data, length});
}

class StreamingTfRecordReader : public TfRecordReader {
 public:
  StreamingTfRecordReader(std::shared_ptr<const io::RandomAccessFile> file, Compression compression,
                          uint64_t offset)
      : path_(file->path()),
        stream_(NewByteStream(std::move(file), compression, offset)),
        offset_(offset) {
    Reallocate(kRecordBlockBytes);
  }

  absl::StatusOr<bool> Next(std::string_view* record) override {
    skippable_ = false;
    MUSTER_RETURN_IF_ERROR(failure_);
    absl::StatusOr<bool> found = NextFrame(record);
    if (!found.ok() && !skippable_) failure_ = found.status();
    return found;
  }

  bool SkippableError() const override { return skippable_; }
  uint64_t offset() const override { return offset_; }

 private:
  size_t available() const { return end_ - begin_; }

  absl::StatusOr<bool> NextFrame(std::string_view* record) {
    MUSTER_RETURN_IF_ERROR(Want(kFrameHeaderBytes));
    if (available() == 0) return false;
    if (available() < kFrameHeaderBytes) return HeaderCut(path_, offset_, available());
    MUSTER_ASSIGN_OR_RETURN(const uint64_t length,
                            CheckHeader(buffer_.get() + begin_, path_, offset_));
    const size_t frame = length + kTfRecordOverhead;
    MUSTER_RETURN_IF_ERROR(Want(frame));
    if (available() < frame) return DataCut(path_, offset_, length, available());
    const char* data = buffer_.get() + begin_ + kFrameHeaderBytes;
    const uint64_t offset = offset_;
    begin_ += frame;
    offset_ += frame;
    *record = {data, length};
    if (!DataIsSound(data, length)) [[unlikely]] {
      skippable_ = true;
      return WrongDataCrc(path_, offset, length);
    }
    return true;
  }

  // Makes at least `size` bytes available, or fewer at the end of the file.
  absl::Status Want(size_t size) {
    if (available() >= size) [[likely]] {
      return absl::OkStatus();
    }
    return Fill(size);
  }

  absl::Status Fill(size_t size) {
    if (capacity_ > kKeptRecordBufferBytes && std::max(size, available()) <= kRecordBlockBytes) {
      Reallocate(kRecordBlockBytes);
    } else if (begin_ > 0) {
      std::memmove(buffer_.get(), buffer_.get() + begin_, available());
      end_ -= begin_;
      begin_ = 0;
    }
    while (available() < size) {
      if (end_ == capacity_) Reallocate(std::min(size, 2 * capacity_));
      absl::StatusOr<size_t> count = stream_->Read(capacity_ - end_, buffer_.get() + end_);
      if (absl::IsDataLoss(count.status())) {
        return RecordError(path_, offset_, ToStd(count.status().message()));
      }
      MUSTER_RETURN_IF_ERROR(count.status());
      if (*count == 0) break;
      end_ += *count;
    }
    return absl::OkStatus();
  }

  // Moves the available bytes to the beginning of a buffer of another size.
  void Reallocate(size_t capacity) {
    auto buffer = std::make_unique_for_overwrite<char[]>(capacity);
    if (available() > 0) std::memcpy(buffer.get(), buffer_.get() + begin_, available());
    end_ -= begin_;
    begin_ = 0;
    buffer_ = std::move(buffer);
    capacity_ = capacity;
  }

  std::string path_;
  std::unique_ptr<ByteStream> stream_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0, begin_ = 0, end_ = 0;
  uint64_t offset_;
  bool skippable_ = false;
  absl::Status failure_;
};

class FileTfRecordWriter : public TfRecordWriter {
 public:
  FileTfRecordWriter(std::unique_ptr<io::WritableFile> file, Compression compression)
      : file_(std::move(file)) {
    if (compression != Compression::kNone) deflater_.emplace(compression);
  }

  absl::Status Write(std::string_view record) override {
    if (record.size() > kMaxRecordBytes) {
      return absl::InvalidArgumentError(StrCat("write ", file_->path(), ": a record of ",
                                               record.size(), " bytes; at most ", kMaxRecordBytes,
                                               " are possible"));
    }
    char header[kFrameHeaderBytes];
    StoreFrameWord<uint64_t>(record.size(), header);
    StoreFrameWord<uint32_t>(MaskedCrc32c({header, 8}), header + 8);
    char footer[kFrameFooterBytes];
    StoreFrameWord<uint32_t>(MaskedCrc32c(record), footer);
    MUSTER_RETURN_IF_ERROR(Append({header, sizeof header}));
    MUSTER_RETURN_IF_ERROR(Append(record));
    MUSTER_RETURN_IF_ERROR(Append({footer, sizeof footer}));
    offset_ += record.size() + kTfRecordOverhead;
    return absl::OkStatus();
  }

  uint64_t offset() const override { return offset_; }

  absl::Status Close() override {
    absl::Status status;
    if (deflater_.has_value()) status = deflater_->Finish(file_.get());
    if (status.ok()) status = file_->Sync();
    const absl::Status closed = file_->Close();
    return status.ok() ? closed : status;
  }

 private:
  absl::Status Append(std::string_view bytes) {
    return deflater_.has_value() ? deflater_->Write(bytes, file_.get()) : file_->Append(bytes);
  }

  std::unique_ptr<io::WritableFile> file_;
  std::optional<Deflater> deflater_;
  uint64_t offset_ = 0;
};

}  // namespace

bool BeginsWithRecord(std::string_view bytes) {
  return bytes.size() >= kFrameHeaderBytes && HeaderIsSound(bytes.data());
}

absl::StatusOr<Compression> DetectCompression(const io::RandomAccessFile& file) {
  char bytes[kFrameHeaderBytes];
  MUSTER_ASSIGN_OR_RETURN(const size_t size, file.Read(0, sizeof bytes, bytes));
  if (size == sizeof bytes && HeaderIsSound(bytes)) return Compression::kNone;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  if (size >= 3 && byte(0) == 0x1f && byte(1) == 0x8b && byte(2) == 8) return Compression::kGzip;
  if (IsZstd({bytes, size})) return Compression::kZstd;
  // See RFC 1950: method 8, a window of at most 32 KiB, and a check over both bytes.
  if (size >= 2 && (byte(0) & 0x0f) == 8 && byte(0) >> 4 <= 7 &&
      (byte(0) * 256 + byte(1)) % 31 == 0) {
    return Compression::kZlib;
  }
  return Compression::kNone;
}

absl::StatusOr<std::unique_ptr<TfRecordReader>> TfRecordReader::Open(
    std::shared_ptr<const io::RandomAccessFile> file, Compression compression, uint64_t offset) {
  return std::make_unique<StreamingTfRecordReader>(std::move(file), compression, offset);
}

absl::StatusOr<std::unique_ptr<TfRecordWriter>> TfRecordWriter::Create(
    std::unique_ptr<io::WritableFile> file, Compression compression) {
  return std::make_unique<FileTfRecordWriter>(std::move(file), compression);
}

absl::StatusOr<uint64_t> ParseRecord(std::string_view bytes, std::string_view file,
                                     uint64_t file_offset, std::string_view* record) {
  *record = {};
  if (bytes.size() < kFrameHeaderBytes) return HeaderCut(file, file_offset, bytes.size());
  MUSTER_ASSIGN_OR_RETURN(const uint64_t length, CheckHeader(bytes.data(), file, file_offset));
  const uint64_t frame = length + kTfRecordOverhead;
  if (bytes.size() < frame) return DataCut(file, file_offset, length, bytes.size());
  *record = bytes.substr(kFrameHeaderBytes, length);
  if (!DataIsSound(record->data(), length)) [[unlikely]] {
    return WrongDataCrc(file, file_offset, length);
  }
  return frame;
}

}  // namespace muster::formats
