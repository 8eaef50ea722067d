// Keys columns.
#include <limits>

#include "muster/features/ids.h"
#include "muster/features/remainder.h"

namespace muster::features {
namespace {

// TensorFlow's StringToHashBucketFast into so many buckets is all but the whole fingerprint.
constexpr auto kStringKeys = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

// An int is its own key.
class KeysTransform final : public IdTransform {
 public:
  KeysTransform(const FeatureSpec& spec, const ColumnSpec& column)
      : field_(spec.schema.Find(column.input)),
        is_text_(spec.schema.fields[field_].type == formats::ValueType::kString),
        list_(spec.schema.fields[field_].list),
        buckets_(kStringKeys) {}

  void MarkFingerprints(std::vector<bool>* fields) const override {
    if (is_text_) (*fields)[field_] = true;
  }

  absl::Status Apply(const formats::Columns& rows, Scratch* scratch, IdList* ids,
                     int*) const override {
    const formats::Column& column = rows.column(field_);
    ids->weights.clear();
    ids->offsets = column.offsets;
    if (is_text_) {
      const std::vector<uint64_t>& fingerprints = scratch->fingerprints[field_];
      ids->keys.resize(fingerprints.size());
      for (size_t i = 0; i < fingerprints.size(); ++i) {
        ids->keys[i] = static_cast<int64_t>(buckets_.Of(fingerprints[i]));
      }
    } else {
      ids->keys = column.ints;
    }
    ids->ids.assign(ids->keys.size(), 0);
    if (list_) return absl::OkStatus();
    for (size_t i = 0; i < ids->ids.size(); ++i) {
      if (is_text_ ? column.strings[i].empty() : column.ints[i] == -1) ids->ids[i] = -1;
    }
    return absl::OkStatus();
  }

 private:
  const int field_;
  const bool is_text_, list_;
  const Remainder buckets_;
};

}  // namespace

std::unique_ptr<IdTransform> MakeKeys(const FeatureSpec& spec, const ColumnSpec& column) {
  return std::make_unique<KeysTransform>(spec, column);
}

}  // namespace muster::features
