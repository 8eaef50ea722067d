#include "muster/formats/bundle_files.h"

#include "absl/strings/str_format.h"

#include "muster/base/byte_reader.h"
#include "muster/base/crc32c.h"
#include "muster/formats/table_coding.h"

namespace muster::formats {
namespace {

uint32_t ExtendCrcByLength(uint32_t crc, uint64_t length) {
  std::string bytes;
  AppendFixed64(&bytes, length);
  if (length <= UINT32_MAX) bytes.resize(sizeof(uint32_t));
  return ExtendCrc32c(crc, bytes);
}

}  // namespace

std::string BundleIndexPath(const std::string& prefix) { return prefix + ".index"; }

std::string BundleDataPath(const std::string& prefix, int shard, int shards) {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix, shard, shards);
}

EncodedStrings EncodeStrings(std::span<const std::string> values) {
  EncodedStrings out;
  for (const std::string& value : values) {
    AppendVarint(&out.bytes, value.size());
    out.crc = ExtendCrcByLength(out.crc, value.size());
  }
  std::string lengths_crc;
  AppendFixed32(&lengths_crc, MaskCrc(out.crc));
  out.crc = ExtendCrc32c(out.crc, lengths_crc);
  out.bytes.append(lengths_crc);
  for (const std::string& value : values) {
    out.bytes.append(value);
    out.crc = ExtendCrc32c(out.crc, value);
  }
  return out;
}

absl::StatusOr<std::vector<std::string>> DecodeStrings(std::string_view bytes, uint64_t count,
                                                       uint32_t* crc) {
  if (count > bytes.size()) {
    return absl::DataLossError(StrCat(count, " strings do not fit in ", bytes.size(), " bytes"));
  }
  const uint64_t all_bytes = bytes.size();
  ByteReader reader(bytes);
  std::vector<uint64_t> lengths(count);
  uint64_t total = 0;
  *crc = 0;
  for (uint64_t& length : lengths) {
    if (!reader.ReadVarint(&length) || length > all_bytes || (total += length) > all_bytes) {
      return absl::DataLossError("the lengths of its strings reach beyond the tensor");
    }
    *crc = ExtendCrcByLength(*crc, length);
  }
  std::string_view lengths_crc;
  if (!reader.ReadBytes(sizeof(uint32_t), &lengths_crc) || reader.left() != total) {
    return absl::DataLossError("the lengths of its strings do not add up to the tensor's bytes");
  }
  if (GetFixed32(lengths_crc.data()) != MaskCrc(*crc)) {
    return absl::DataLossError("the checksum of its string lengths is wrong");
  }
  *crc = ExtendCrc32c(ExtendCrc32c(*crc, lengths_crc), bytes.substr(all_bytes - total));
  std::vector<std::string> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    std::string_view value;
    reader.ReadBytes(lengths[i], &value);
    values[i].assign(value);
  }
  return values;
}

}  // namespace muster::formats
