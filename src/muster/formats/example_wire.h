// The wire format of the messages of tensorflow/core/example/{example,feature}.proto:
//   Example { Features features = 1; }   Features { map<string, Feature> feature = 1; }
//   Feature { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2;
//                          Int64List int64_list = 3; } }   each list: repeated value = 1
// Shared by the decoder and DescribeExample. Merging follows protobuf's rules.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "muster/formats/wire_reader.h"

namespace muster::formats {

// Field numbers of Feature's kinds.
enum class FeatureKind : uint32_t { kNone = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };

// Returns "bytes", "float", "int64" or "none".
std::string_view FeatureKindName(FeatureKind kind);

// The values of one Feature: the vector of its kind is used, the others are empty.
struct FeatureValues {
  FeatureKind kind = FeatureKind::kNone;
  std::vector<std::string_view> bytes;  // they point into the record
  std::vector<float> floats;
  std::vector<int64_t> ints;

  void Clear();
  size_t size() const { return bytes.size() + floats.size() + ints.size(); }
};

constexpr uint32_t kFirstFieldBytes = WireTag(1, WireType::kBytes);   // also a map entry's key
constexpr uint32_t kSecondFieldBytes = WireTag(2, WireType::kBytes);  // also a map entry's value

// Parses the name of a map entry: its last key field; "" if there is none.
bool ParseEntryName(std::string_view entry, std::string_view* name);

// Replaces *values by those of a map entry, with all its value fields merged. Values of one kind
// follow one another, also across pieces; a later piece of another kind replaces them.
bool ParseEntryValues(std::string_view entry, FeatureValues* values);

// Calls found(entry) for each map entry of a serialized Example, in order. False if the bytes are
// not an Example or if `found` returns false.
template <typename Found>
bool ForEachEntry(std::string_view record, Found&& found) {
  WireReader example(record);
  for (uint32_t tag; !example.done();) {
    if (!example.ReadTag(&tag)) return false;
    if (tag != kFirstFieldBytes) {
      if (!example.Skip(tag)) return false;
      continue;
    }
    std::string_view message;
    if (!example.ReadBytes(&message)) return false;
    WireReader features(message);
    while (!features.done()) {
      if (!features.ReadTag(&tag)) return false;
      if (tag != kFirstFieldBytes) {
        if (!features.Skip(tag)) return false;
        continue;
      }
      std::string_view entry;
      if (!features.ReadBytes(&entry) || !found(entry)) return false;
    }
  }
  return true;
}

}  // namespace muster::formats
