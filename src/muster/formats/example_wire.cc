#include "muster/formats/example_wire.h"

#include <cstring>

namespace muster::formats {
namespace {

bool AppendBytes(WireReader list, FeatureValues* values) {
  for (uint32_t tag; !list.done();) {
    if (!list.ReadTag(&tag)) return false;
    if (tag == kFirstFieldBytes) {
      std::string_view value;
      if (!list.ReadBytes(&value)) return false;
      values->bytes.push_back(value);
    } else if (!list.Skip(tag)) {
      return false;
    }
  }
  return true;
}

bool AppendFloats(WireReader list, FeatureValues* values) {
  constexpr uint32_t kUnpacked = WireTag(1, WireType::kFixed32);
  for (uint32_t tag; !list.done();) {
    if (!list.ReadTag(&tag)) return false;
    if (tag == kFirstFieldBytes) {
      std::string_view packed;
      if (!list.ReadBytes(&packed) || packed.size() % sizeof(float) != 0) return false;
      const size_t old = values->floats.size();
      values->floats.resize(old + packed.size() / sizeof(float));
      if (!packed.empty()) std::memcpy(values->floats.data() + old, packed.data(), packed.size());
    } else if (tag == kUnpacked) {
      uint32_t bits;
      if (!list.Read(&bits)) return false;
      values->floats.push_back(std::bit_cast<float>(bits));
    } else if (!list.Skip(tag)) {
      return false;
    }
  }
  return true;
}

bool AppendInts(WireReader list, FeatureValues* values) {
  constexpr uint32_t kUnpacked = WireTag(1, WireType::kVarint);
  for (uint32_t tag; !list.done();) {
    if (!list.ReadTag(&tag)) return false;
    uint64_t value;
    if (tag == kFirstFieldBytes) {
      std::string_view packed;
      if (!list.ReadBytes(&packed)) return false;
      for (WireReader varints(packed); !varints.done();) {
        if (!varints.ReadVarint(&value)) return false;
        values->ints.push_back(static_cast<int64_t>(value));
      }
    } else if (tag == kUnpacked) {
      if (!list.ReadVarint(&value)) return false;
      values->ints.push_back(static_cast<int64_t>(value));
    } else if (!list.Skip(tag)) {
      return false;
    }
  }
  return true;
}

bool AppendFeature(WireReader feature, FeatureValues* values) {
  for (uint32_t tag; !feature.done();) {
    if (!feature.ReadTag(&tag)) return false;
    const uint32_t field = tag >> 3;
    if (tag != WireTag(field, WireType::kBytes) || field > 3) {
      if (!feature.Skip(tag)) return false;
      continue;
    }
    std::string_view list;
    if (!feature.ReadBytes(&list)) return false;
    const auto kind = static_cast<FeatureKind>(field);
    if (values->kind != kind) {
      values->Clear();
      values->kind = kind;
    }
    const WireReader reader(list);
    const bool sound = kind == FeatureKind::kBytes   ? AppendBytes(reader, values)
                       : kind == FeatureKind::kFloat ? AppendFloats(reader, values)
                                                     : AppendInts(reader, values);
    if (!sound) return false;
  }
  return true;
}

}  // namespace

std::string_view FeatureKindName(FeatureKind kind) {
  switch (kind) {
    case FeatureKind::kBytes:
      return "bytes";
    case FeatureKind::kFloat:
      return "float";
    case FeatureKind::kInt64:
      return "int64";
    case FeatureKind::kNone:
      break;
  }
  return "none";
}

void FeatureValues::Clear() {
  kind = FeatureKind::kNone;
  bytes.clear();
  floats.clear();
  ints.clear();
}

bool ParseEntryName(std::string_view entry, std::string_view* name) {
  *name = {};
  WireReader reader(entry);
  for (uint32_t tag; !reader.done();) {
    if (!reader.ReadTag(&tag)) return false;
    if (!(tag == kFirstFieldBytes ? reader.ReadBytes(name) : reader.Skip(tag))) return false;
  }
  return true;
}

bool ParseEntryValues(std::string_view entry, FeatureValues* values) {
  values->Clear();
  WireReader reader(entry);
  for (uint32_t tag; !reader.done();) {
    if (!reader.ReadTag(&tag)) return false;
    if (tag != kSecondFieldBytes) {
      if (!reader.Skip(tag)) return false;
      continue;
    }
    std::string_view feature;
    if (!reader.ReadBytes(&feature) || !AppendFeature(WireReader(feature), values)) return false;
  }
  return true;
}

}  // namespace muster::formats
