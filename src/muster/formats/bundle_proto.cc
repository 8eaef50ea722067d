#include "muster/formats/bundle_proto.h"

#include <protozero/pbf_message.hpp>
#include <protozero/pbf_writer.hpp>

namespace muster::formats {
namespace {

constexpr size_t kMaxDimensions = 254;  // TensorFlow's own limit

enum class HeaderField : protozero::pbf_tag_type { kShards = 1, kEndianness = 2, kVersion = 3 };
enum class VersionField : protozero::pbf_tag_type { kProducer = 1, kMinConsumer = 2 };
enum class EntryField : protozero::pbf_tag_type {
  kType = 1,
  kShape = 2,
  kShard = 3,
  kOffset = 4,
  kSize = 5,
  kCrc = 6,
  kSlices = 7,
};
enum class ShapeField : protozero::pbf_tag_type { kDimension = 2, kUnknownRank = 3 };
enum class DimensionField : protozero::pbf_tag_type { kSize = 1 };
enum class SliceField : protozero::pbf_tag_type { kExtent = 1 };
enum class ExtentField : protozero::pbf_tag_type { kFirst = 1, kLength = 2 };

using protozero::pbf_wire_type;

template <typename Field>
protozero::pbf_tag_type Tag(Field field) {
  return static_cast<protozero::pbf_tag_type>(field);
}

// A field with an unexpected wire type is skipped, as libprotobuf does.
template <typename Field>
constexpr uint32_t As(Field field, pbf_wire_type type) {
  return protozero::tag_and_type(field, type);
}

bool ParseShape(protozero::pbf_message<ShapeField> message, std::vector<int64_t>* shape) {
  shape->clear();
  while (message.next()) {
    switch (message.tag_and_type()) {
      case As(ShapeField::kDimension, pbf_wire_type::length_delimited): {
        if (shape->size() == kMaxDimensions) return false;
        int64_t size = 0;
        protozero::pbf_message<DimensionField> dimension = message.get_message();
        while (dimension.next()) {
          if (dimension.tag_and_type() == As(DimensionField::kSize, pbf_wire_type::varint)) {
            size = dimension.get_int64();
          } else {
            dimension.skip();
          }
        }
        shape->push_back(size);
        break;
      }
      case As(ShapeField::kUnknownRank, pbf_wire_type::varint):
        if (message.get_bool()) return false;
        break;
      default:
        message.skip();
    }
  }
  return true;
}

bool ParseSlice(protozero::pbf_message<SliceField> message, TensorSlice* slice) {
  while (message.next()) {
    if (message.tag_and_type() != As(SliceField::kExtent, pbf_wire_type::length_delimited)) {
      message.skip();
      continue;
    }
    if (slice->size() == kMaxDimensions) return false;
    Extent extent;
    protozero::pbf_message<ExtentField> part = message.get_message();
    while (part.next()) {
      switch (part.tag_and_type()) {
        case As(ExtentField::kFirst, pbf_wire_type::varint):
          extent.start = part.get_int64();
          break;
        case As(ExtentField::kLength, pbf_wire_type::varint):
          extent.length = part.get_int64();
          break;
        default:
          part.skip();
      }
    }
    slice->push_back(extent);
  }
  return true;
}

std::string SerializeSlice(const TensorSlice& slice) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  for (const Extent& extent : slice) {
    std::string extent_bytes;
    protozero::pbf_writer part(extent_bytes);
    if (extent.length >= 0) {
      if (extent.start != 0) part.add_int64(Tag(ExtentField::kFirst), extent.start);
      part.add_int64(Tag(ExtentField::kLength), extent.length);
    }
    writer.add_message(Tag(SliceField::kExtent), extent_bytes);
  }
  return bytes;
}

// OrderedCode: the order of the bytes is that of the values.
void AppendOrderedUnsigned(uint64_t value, std::string* bytes) {
  std::string digits;
  for (; value > 0; value >>= 8) digits.insert(digits.begin(), static_cast<char>(value & 0xff));
  *bytes += static_cast<char>(digits.size());
  *bytes += digits;
}

void AppendOrderedString(std::string_view text, std::string* bytes) {
  for (const char c : text) {
    *bytes += c;
    if (c == '\0') *bytes += '\xff';
    if (c == '\xff') *bytes += '\0';
  }
  bytes->append("\0\1", 2);
}

// As many leading ones as there are bytes, then a zero and the number; -1 is written with them
// inverted. Numbers below -1 and from 2^55 on are in no slice.
void AppendOrderedSigned(int64_t value, std::string* bytes) {
  int count = 1;
  while (count < 8 && value >= 0 && value >> (7 * count - 1) != 0) ++count;
  for (int i = count - 1; i >= 0; --i) *bytes += static_cast<char>(value >> (8 * i) & 0xff);
  const auto leading = static_cast<char>(0xff << (8 - count));
  (*bytes)[bytes->size() - static_cast<size_t>(count)] ^= leading;
}

}  // namespace

std::string GetSliceKey(std::string_view tensor, const TensorSlice& slice) {
  std::string key;
  AppendOrderedUnsigned(0, &key);
  AppendOrderedString(tensor, &key);
  AppendOrderedUnsigned(slice.size(), &key);
  for (const Extent& extent : slice) {
    AppendOrderedSigned(extent.start, &key);
    AppendOrderedSigned(extent.length, &key);
  }
  return key;
}

std::string SerializeBundleHeader(const BundleHeader& header) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_int32(Tag(HeaderField::kShards), header.shards);
  if (header.big_endian) writer.add_enum(Tag(HeaderField::kEndianness), 1);
  protozero::pbf_writer version(writer, Tag(HeaderField::kVersion));
  version.add_int32(Tag(VersionField::kProducer), kBundleVersion);
  if (header.min_consumer != 0) {
    version.add_int32(Tag(VersionField::kMinConsumer), header.min_consumer);
  }
  version.commit();
  return bytes;
}

// As in libprotobuf, a field that is zero is left out, but an empty message is not.
std::string SerializeBundleEntry(const BundleEntry& entry) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_enum(Tag(EntryField::kType), static_cast<int32_t>(entry.type));
  std::string shape_bytes;
  protozero::pbf_writer shape(shape_bytes);
  for (const int64_t size : entry.shape) {
    std::string dimension_bytes;
    protozero::pbf_writer dimension(dimension_bytes);
    if (size != 0) dimension.add_int64(Tag(DimensionField::kSize), size);
    shape.add_message(Tag(ShapeField::kDimension), dimension_bytes);
  }
  writer.add_message(Tag(EntryField::kShape), shape_bytes);
  if (entry.shard != 0) writer.add_int32(Tag(EntryField::kShard), entry.shard);
  if (entry.offset != 0) writer.add_int64(Tag(EntryField::kOffset), entry.offset);
  if (entry.size != 0) writer.add_int64(Tag(EntryField::kSize), entry.size);
  if (entry.masked_crc != 0) writer.add_fixed32(Tag(EntryField::kCrc), entry.masked_crc);
  for (const TensorSlice& slice : entry.slices) {
    writer.add_message(Tag(EntryField::kSlices), SerializeSlice(slice));
  }
  return bytes;
}

std::optional<BundleHeader> ParseBundleHeader(std::string_view bytes) try {
  BundleHeader header{.shards = 0};
  protozero::pbf_message<HeaderField> message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case As(HeaderField::kShards, pbf_wire_type::varint):
        header.shards = message.get_int32();
        break;
      case As(HeaderField::kEndianness, pbf_wire_type::varint):
        header.big_endian = message.get_enum() != 0;
        break;
      case As(HeaderField::kVersion, pbf_wire_type::length_delimited): {
        protozero::pbf_message<VersionField> version = message.get_message();
        while (version.next()) {
          if (version.tag_and_type() == As(VersionField::kMinConsumer, pbf_wire_type::varint)) {
            header.min_consumer = version.get_int32();
          } else {
            version.skip();
          }
        }
        break;
      }
      default:
        message.skip();
    }
  }
  return header;
} catch (const protozero::exception&) {
  return std::nullopt;
}

std::optional<BundleEntry> ParseBundleEntry(std::string_view bytes) try {
  BundleEntry entry;
  entry.type = DataType{0};
  protozero::pbf_message<EntryField> message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case As(EntryField::kType, pbf_wire_type::varint):
        entry.type = static_cast<DataType>(message.get_enum());
        break;
      case As(EntryField::kShape, pbf_wire_type::length_delimited):
        if (!ParseShape(message.get_message(), &entry.shape)) return std::nullopt;
        break;
      case As(EntryField::kShard, pbf_wire_type::varint):
        entry.shard = message.get_int32();
        break;
      case As(EntryField::kOffset, pbf_wire_type::varint):
        entry.offset = message.get_int64();
        break;
      case As(EntryField::kSize, pbf_wire_type::varint):
        entry.size = message.get_int64();
        break;
      case As(EntryField::kCrc, pbf_wire_type::fixed32):
        entry.masked_crc = message.get_fixed32();
        break;
      case As(EntryField::kSlices, pbf_wire_type::length_delimited):
        if (!ParseSlice(message.get_message(), &entry.slices.emplace_back())) return std::nullopt;
        break;
      default:
        message.skip();
    }
  }
  return entry;
} catch (const protozero::exception&) {
  return std::nullopt;
}

}  // namespace muster::formats
