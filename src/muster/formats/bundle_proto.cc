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

}  // namespace

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
        ++entry.slices;
        message.skip();
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
