#include "muster/launch/yarn/aggregated_log.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "muster/base/byte_reader.h"
#include "muster/base/strings.h"
#include "muster/formats/compression.h"

namespace muster::launch::yarn {
namespace {

constexpr std::string_view kMagic(
    "\xd1\x11\xd3\x68\x91\xb5\xd7\xb6\x39\xdf\x41\x40\x92\xba\xe1\x50", 16);
constexpr size_t kTrailerBytes = 8 + 4 + kMagic.size();  // the meta index's offset, the version
constexpr std::string_view kMetaPrefix = "data:", kIndexName = "BCFile.index";
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxBlockBytes = uint64_t{1} << 30;
constexpr char kTaskFile[] = "task", kOutputFile[] = "stdout";
constexpr std::string_view kBeingWritten = ".tmp";

// Reads what Java's DataOutput and TFile's Utils write.
class JavaReader {
 public:
  explicit JavaReader(std::string_view bytes) : reader_(bytes) {}

  bool ok() const { return reader_.ok(); }
  size_t left() const { return reader_.left(); }

  uint64_t Big(int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) {
      uint8_t byte = 0;
      reader_.Read(&byte);
      value = value << 8 | byte;
    }
    return value;
  }
  // Utils.readVLong.
  int64_t Long() {
    int8_t first = 0;
    reader_.Read(&first);
    if (first >= -32) return first;
    const int kind = (first + 128) / 8;
    if (kind >= 7) return static_cast<int64_t>(first + 52) * 256 + static_cast<int64_t>(Big(1));
    if (kind >= 3) return static_cast<int64_t>(first + 88) * 65536 + static_cast<int64_t>(Big(2));
    if (kind >= 1) {
      return static_cast<int64_t>(first + 112) * 16777216 + static_cast<int64_t>(Big(3));
    }
    const int bytes = first + 129;  // 1 to 8; the value has a sign
    const uint64_t value = Big(bytes);
    const int unused = 64 - 8 * bytes;
    return static_cast<int64_t>(value << unused) >> unused;
  }
  std::string_view Bytes(int64_t size) {
    std::string_view bytes;
    // A negative size is one that no memory has.
    reader_.ReadBytes(static_cast<uint64_t>(size), &bytes);
    return bytes;
  }
  std::string_view Text() { return Bytes(Long()); }                       // Utils.readString
  std::string_view Utf() { return Bytes(static_cast<int64_t>(Big(2))); }  // DataInput.readUTF

 private:
  ByteReader reader_;
};

// Bytes of memory as a file.
class MemoryFile : public io::RandomAccessFile {
 public:
  MemoryFile(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}
  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    if (offset >= bytes_.size()) return 0;
    return bytes_.copy(buffer, size, static_cast<size_t>(offset));
  }
  const std::string& path() const override { return name_; }

 private:
  const std::string_view bytes_;
  const std::string name_;
};

struct Block {
  uint64_t offset = 0, size = 0, raw_size = 0;
};

Block ReadBlock(JavaReader& reader) {
  Block block;
  block.offset = static_cast<uint64_t>(reader.Long());
  block.size = static_cast<uint64_t>(reader.Long());
  block.raw_size = static_cast<uint64_t>(reader.Long());
  return block;
}

class AggregatedFile {
 public:
  AggregatedFile(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  absl::StatusOr<std::vector<ContainerFiles>> Read() {
    MUSTER_RETURN_IF_ERROR(ReadIndex());
    std::vector<ContainerFiles> all;
    for (const Block& block : blocks_) {
      MUSTER_ASSIGN_OR_RETURN(const std::string raw, Unpack(block, compression_));
      MUSTER_RETURN_IF_ERROR(ReadRecords(raw, &all));
    }
    return all;
  }

 private:
  absl::Status Broken(std::string_view what) const {
    return absl::DataLossError(StrCat(name_, ": this is no aggregated log of YARN: ", what));
  }

  absl::StatusOr<std::string> Unpack(const Block& block, const std::string& compression) const {
    if (block.offset > bytes_.size() || block.size > bytes_.size() - block.offset ||
        block.raw_size > kMaxBlockBytes) {
      return Broken("a block lies outside of the file");
    }
    const std::string_view packed = bytes_.substr(block.offset, block.size);
    if (compression == "none") return std::string(packed);
    if (compression != "gz") {
      return absl::InvalidArgumentError(
          StrCat(name_, ": its compression '", compression, "' is not known here: use yarn logs"));
    }
    const auto stream = formats::NewByteStream(std::make_shared<MemoryFile>(packed, name_),
                                               formats::Compression::kZlib);
    std::string raw(static_cast<size_t>(block.raw_size), '\0');
    size_t size = 0;
    while (size < raw.size()) {
      MUSTER_ASSIGN_OR_RETURN(const size_t read,
                              stream->Read(raw.size() - size, raw.data() + size));
      if (read == 0) return Broken("a block is shorter than it says");
      size += read;
    }
    return raw;
  }

  // The blocks with records; the file ends with where its index is.
  absl::Status ReadIndex() {
    if (bytes_.size() < kTrailerBytes || !bytes_.ends_with(kMagic)) return Broken("its end");
    JavaReader trailer(bytes_.substr(bytes_.size() - kTrailerBytes));
    const uint64_t at = trailer.Big(8);
    if (at > bytes_.size()) return Broken("its index");
    JavaReader meta(bytes_.substr(at));
    for (int64_t left = meta.Long(); left > 0 && meta.ok(); --left) {
      const std::string_view name = meta.Text();
      const std::string compression(meta.Text());
      const Block block = ReadBlock(meta);
      if (!meta.ok()) break;
      if (name != StrCat(kMetaPrefix, kIndexName)) continue;
      MUSTER_ASSIGN_OR_RETURN(const std::string index, Unpack(block, compression));
      return ReadBlocks(index);
    }
    return Broken("it has no index");
  }

  absl::Status ReadBlocks(std::string_view index) {
    JavaReader reader(index);
    compression_ = std::string(reader.Text());
    for (int64_t left = reader.Long(); left > 0 && reader.ok(); --left) {
      blocks_.push_back(ReadBlock(reader));
    }
    return reader.ok() ? absl::OkStatus() : Broken("its index is cut off");
  }

  // A value is written in chunks; the last one's length is not negative.
  static std::string ReadValue(JavaReader& reader) {
    constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
    std::string value;
    while (reader.ok()) {
      const int64_t length = reader.Long();
      // The least number has no positive one: it stays negative, which is a size that no memory
      // has.
      value += reader.Bytes(length < 0 && length != kLeast ? -length : length);
      if (length >= 0) break;
    }
    return value;
  }

  absl::Status ReadRecords(std::string_view raw, std::vector<ContainerFiles>* all) const {
    JavaReader reader(raw);
    while (reader.left() > 0) {
      const std::string_view key = reader.Text();
      const std::string value = ReadValue(reader);
      if (!reader.ok()) return Broken("a record is cut off");
      const std::string_view container = JavaReader(key).Utf();
      if (!container.starts_with("container_")) continue;  // the version, the owner
      ContainerFiles read = {.container = std::string(container)};
      ReadFiles(value, &read);
      all->push_back(std::move(read));
    }
    return absl::OkStatus();
  }

  static void ReadFiles(std::string_view value, ContainerFiles* read) {
    JavaReader reader(value);
    while (reader.left() > 0) {
      const std::string file(reader.Utf());
      const std::string_view length = reader.Utf();
      int64_t bytes = -1;
      std::from_chars(length.data(), length.data() + length.size(), bytes);
      const std::string_view contents = reader.Bytes(bytes);
      if (!reader.ok()) return;  // the value's end
      read->files[file] += contents;
    }
  }

  const std::string_view bytes_;
  const std::string& name_;
  std::string compression_;
  std::vector<Block> blocks_;
};

// "application_1795224297403_0009": 9.
int64_t GetNumber(const std::string& application) {
  const std::string_view text = std::string_view(application).substr(application.rfind('_') + 1);
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Hadoop 3.3 and later have buckets of applications.
std::vector<std::string> GetFolders(const AggregatedPlace& place, const std::string& application) {
  std::string bucket = StrCat(GetNumber(application) % 10000);
  bucket.insert(0, 4 - std::min<size_t>(4, bucket.size()), '0');
  const std::string user = StrCat(place.folder, "/", place.user);
  return {StrCat(user, "/bucket-", place.suffix, "-tfile/", bucket, "/", application),
          StrCat(user, "/", place.suffix, "-tfile/", application),
          StrCat(user, "/", place.suffix, "/", application)};
}

// Of a container that ran the task, which its ApplicationMaster has written as "worker-0 3".
std::optional<int64_t> GetIncarnation(std::string_view said, const std::string& task) {
  if (!said.starts_with(StrCat(task, " "))) return std::nullopt;
  said.remove_prefix(task.size() + 1);
  int64_t incarnation = 0;
  const auto parsed = std::from_chars(said.data(), said.data() + said.size(), incarnation);
  return parsed.ec == std::errc() ? std::optional(incarnation) : std::nullopt;
}

}  // namespace

absl::StatusOr<std::vector<ContainerFiles>> ParseAggregatedLog(std::string_view bytes,
                                                               const std::string& name) {
  return AggregatedFile(bytes, name).Read();
}

absl::StatusOr<std::vector<KeptOutput>> ReadAggregatedLog(io::FileSystem& files,
                                                          const AggregatedPlace& place,
                                                          const std::string& application,
                                                          const std::string& task) {
  std::map<int64_t, KeptOutput> outputs;  // by incarnation
  bool is_there = false;
  for (const std::string& folder : GetFolders(place, application)) {
    const auto names = files.List(folder);
    if (absl::IsNotFound(names.status())) continue;
    MUSTER_RETURN_IF_ERROR(names.status());
    is_there = is_there || !names->empty();
    for (const std::string& name : *names) {
      const std::string path = StrCat(folder, "/", name);
      if (name.ends_with(kBeingWritten)) {
        return absl::UnavailableError(StrCat(path, " is being written"));
      }
      MUSTER_ASSIGN_OR_RETURN(const std::string bytes, io::ReadFile(files, path, kMaxFileBytes));
      MUSTER_ASSIGN_OR_RETURN(auto containers, ParseAggregatedLog(bytes, path));
      for (ContainerFiles& each : containers) {
        const auto incarnation = GetIncarnation(each.files[kTaskFile], task);
        if (!incarnation) continue;
        outputs[*incarnation] = {.incarnation = *incarnation,
                                 .bytes = std::move(each.files[kOutputFile])};
      }
    }
  }
  if (!is_there) {
    return absl::NotFoundError(
        StrCat("YARN has aggregated no output of ", application, " in ", place.folder));
  }
  std::vector<KeptOutput> all;
  for (auto& [incarnation, output] : outputs) all.push_back(std::move(output));
  return all;
}

}  // namespace muster::launch::yarn
