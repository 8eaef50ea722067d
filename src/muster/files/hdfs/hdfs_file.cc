#include "muster/files/hdfs/hdfs_file.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "muster/base/strings.h"
#include "muster/files/hdfs/read_window.h"

namespace muster::files {
namespace {

constexpr size_t kWriteBytes = size_t{16} << 20;  // gathered before they are sent
// A longer file is not written anew when an append to it was interrupted.
constexpr uint64_t kMostRewritten = uint64_t{64} << 20;

// The path of that very file, whatever its name means later; where no inode is known, its name.
std::string GetInodePath(const std::string& identity, const std::string& name) {
  return identity.empty() ? name : StrCat("/.reserved/.inodes/", identity);
}

class HdfsReader : public io::RandomAccessFile {
 public:
  HdfsReader(WebHdfs& calls, std::string path, const std::string& name,
             const HdfsFileStatus& status)
      : calls_(calls),
        path_(std::move(path)),
        name_(GetInodePath(status.info.identity, name)),
        size_(status.info.size),
        places_(status.block_bytes),
        window_(
            [this](uint64_t at, size_t size, char* buffer) { return Fetch(at, size, buffer); }) {}

  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    if (size > 0 && offset + size > size_) MUSTER_RETURN_IF_ERROR(LookAtSize());
    const uint64_t end = size_;
    if (offset >= end) return 0;
    size = static_cast<size_t>(std::min<uint64_t>(size, end - offset));
    MUSTER_RETURN_IF_ERROR(window_.Read(offset, size, buffer, end));
    return size;
  }
  const std::string& path() const override { return path_; }

 private:
  absl::Status Named(const absl::Status& status) const {
    if (absl::IsNotFound(status)) {
      return absl::NotFoundError(
          StrCat("read ", path_, ": the file was replaced or removed while it was read"));
    }
    return Annotate(status, StrCat("read ", path_));
  }

  absl::Status LookAtSize() const {
    const auto status = calls_.GetStatus(name_);
    if (!status.ok()) return Named(status.status());
    size_ = status->info.size;
    return absl::OkStatus();
  }

  absl::Status Fetch(uint64_t at, size_t size, char* buffer) const {
    const auto count = calls_.Read(name_, at, size, buffer, places_);
    if (!count.ok()) return Named(count.status());
    if (*count == size) return absl::OkStatus();
    return absl::DataLossError(StrCat("read ", path_, ": it ends at byte ", at + *count,
                                      ", where the NameNode says ", size_.load()));
  }

  WebHdfs& calls_;
  const std::string path_, name_;
  mutable std::atomic<uint64_t> size_;
  mutable BlockPlaces places_;
  mutable ReadWindow window_;  // last: its threads use the rest
};

// A file that this object made is written anew where HDFS would let an interrupted append wait for
// a minute: nobody else appends to it. A file that it continues may have another writer, which HDFS
// then protects from this one.
class HdfsWriter : public io::WritableFile {
 public:
  HdfsWriter(WebHdfs& calls, std::string path, std::string name, bool is_own, uint64_t length)
      : calls_(calls),
        path_(std::move(path)),
        name_(std::move(name)),
        is_own_(is_own),
        is_made_(!is_own),
        length_(length) {}

  absl::Status Append(std::string_view bytes) override {
    MUSTER_RETURN_IF_ERROR(CheckOpen());
    while (buffer_.size() + bytes.size() >= kWriteBytes) {
      const size_t count = kWriteBytes - buffer_.size();
      buffer_ += bytes.substr(0, count);
      bytes.remove_prefix(count);
      MUSTER_RETURN_IF_ERROR(Send());
    }
    buffer_ += bytes;
    return absl::OkStatus();
  }
  absl::Status Flush() override {
    MUSTER_RETURN_IF_ERROR(CheckOpen());
    return !is_made_ || !buffer_.empty() ? Send() : absl::OkStatus();
  }
  absl::Status Sync() override { return Flush(); }
  absl::Status Close() override {
    MUSTER_RETURN_IF_ERROR(Flush());
    is_closed_ = true;
    return CheckLength();
  }
  const std::string& path() const override { return path_; }

 private:
  absl::Status CheckOpen() const {
    if (!is_closed_) return status_;
    return absl::FailedPreconditionError(StrCat(path_, ": the file is closed"));
  }

  absl::Status Send() {
    status_ = Named(is_made_ ? Continue() : calls_.Create(name_, buffer_));
    if (!status_.ok()) return status_;
    is_made_ = is_written_ = true;
    length_ += buffer_.size();
    buffer_.clear();
    return absl::OkStatus();
  }

  absl::Status Continue() {
    if (is_own_ && !is_continued_) {
      MUSTER_ASSIGN_OR_RETURN(const HdfsFileStatus status, calls_.GetStatus(name_));
      identity_ = status.info.identity;
      is_continued_ = true;
    }
    const bool may_write_anew = is_own_ && !identity_.empty() && length_ <= kMostRewritten;
    const absl::Status status = calls_.Append(name_, length_, buffer_, !may_write_anew);
    return absl::IsAborted(status) ? WriteAnew() : status;
  }

  absl::Status WriteAnew() {
    std::string bytes(length_, '\0');
    BlockPlaces places(0);
    MUSTER_ASSIGN_OR_RETURN(const size_t count, calls_.Read(GetInodePath(identity_, name_), 0,
                                                            length_, bytes.data(), places));
    if (count < length_) return DifferentLength(count);
    bytes += buffer_;
    const std::string temporary = io::TemporaryPath(name_);
    MUSTER_RETURN_IF_ERROR(calls_.Create(temporary, bytes));
    MUSTER_ASSIGN_OR_RETURN(const HdfsFileStatus made, calls_.GetStatus(temporary));
    if (made.info.size != bytes.size()) return DifferentLength(made.info.size);
    MUSTER_RETURN_IF_ERROR(calls_.Rename(temporary, made.info.identity, name_));
    identity_ = made.info.identity;
    return absl::OkStatus();
  }

  // A connection that breaks leaves a closed file with a part of the bytes.
  absl::Status CheckLength() {
    if (!is_written_) return absl::OkStatus();
    const auto status = calls_.GetStatus(name_);
    if (!status.ok()) return status_ = Named(status.status());
    if (status->info.size != length_) status_ = Named(DifferentLength(status->info.size));
    return status_;
  }

  absl::Status DifferentLength(uint64_t found) const {
    return absl::DataLossError(StrCat("write: ", length_, " bytes were written, but ", found,
                                      " are there; another process may have written the file"));
  }

  absl::Status Named(const absl::Status& status) const {
    return status.ok() ? status : Annotate(status, path_);
  }

  WebHdfs& calls_;
  const std::string path_, name_;
  const bool is_own_;  // this object makes the file
  bool is_made_;       // the file is there
  bool is_continued_ = false;
  std::string identity_;  // of an own file that is continued
  uint64_t length_;       // of the file without buffer_
  bool is_written_ = false, is_closed_ = false;
  std::string buffer_;
  absl::Status status_;
};

}  // namespace

std::unique_ptr<io::RandomAccessFile> NewHdfsReader(WebHdfs& calls, std::string path,
                                                    const std::string& name,
                                                    const HdfsFileStatus& status) {
  return std::make_unique<HdfsReader>(calls, std::move(path), name, status);
}

std::unique_ptr<io::WritableFile> NewHdfsWriter(WebHdfs& calls, std::string path,
                                                std::string name) {
  return std::make_unique<HdfsWriter>(calls, std::move(path), std::move(name), /*is_own=*/true, 0);
}

std::unique_ptr<io::WritableFile> NewHdfsAppender(WebHdfs& calls, std::string path,
                                                  std::string name, uint64_t length) {
  return std::make_unique<HdfsWriter>(calls, std::move(path), std::move(name), /*is_own=*/false,
                                      length);
}

}  // namespace muster::files
