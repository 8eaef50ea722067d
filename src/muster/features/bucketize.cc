// Bucketized columns.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <utility>

#include "muster/features/column_type.h"
#include "muster/formats/yaml_emitter.h"

namespace muster::features {
namespace {

// Up to this many boundaries it is quicker to compare with each than to search, and it vectorizes.
constexpr size_t kMaxLinear = 32;

// Does what TensorFlow's kernels do, which read denormal floats as zero.
float FlushDenormal(float value) { return std::fabs(value) < FLT_MIN ? 0.0F : value; }

// TensorFlow's Bucketize kernel over the value cast to float: upper_bound, so that a value on a
// boundary belongs to the upper bucket, and NaN, which is less than no boundary, to the last one.
// Value number i of a list has ids after those of value i - 1.
class BucketizedLookup final : public IdLookup {
 public:
  BucketizedLookup(const formats::Schema& schema, const ColumnSpec& column)
      : IdLookup(schema, schema.Find(column.input)),
        boundaries_(column.boundaries),
        shape_(column.shape) {
    for (float& boundary : boundaries_) boundary = FlushDenormal(boundary);
  }

  absl::Status CheckRows(const formats::Columns& rows, int* bad_row) const override {
    return CheckLengths(rows.column(field()), shape_, bad_row);
  }

  absl::Status Lookup(const formats::Columns& rows, const Scratch&, size_t first, int count,
                      int64_t* ids, size_t*) const override {
    float values[kBlock];
    const formats::Column& column = rows.column(field());
    if (type() == formats::ValueType::kInt) {
      const int64_t* const ints = column.ints.data() + first;
      for (int i = 0; i < count; ++i) values[i] = static_cast<float>(ints[i]);
    } else {
      const float* const floats = column.floats.data() + first;
      for (int i = 0; i < count; ++i) values[i] = FlushDenormal(floats[i]);
    }
    if (boundaries_.size() <= kMaxLinear) {
      Count(values, count, ids);
    } else {
      Search(values, count, ids);
    }
    if (shape_ > 1) {
      const auto buckets = static_cast<int64_t>(boundaries_.size()) + 1;
      size_t place = first % static_cast<size_t>(shape_);
      for (int i = 0; i < count; ++i) {
        ids[i] += static_cast<int64_t>(place) * buckets;
        if (std::cmp_equal(++place, shape_)) place = 0;
      }
    }
    return absl::OkStatus();
  }

 private:
  void Count(const float* values, int count, int64_t* ids) const {
    int32_t buckets[kBlock] = {};
    for (const float boundary : boundaries_) {
      for (int i = 0; i < count; ++i) buckets[i] += !(values[i] < boundary);
    }
    for (int i = 0; i < count; ++i) ids[i] = buckets[i];
  }

  void Search(const float* values, int count, int64_t* ids) const {
    for (int i = 0; i < count; ++i) {
      ids[i] =
          std::upper_bound(boundaries_.begin(), boundaries_.end(), values[i]) - boundaries_.begin();
    }
  }

  std::vector<float> boundaries_;
  int shape_;
};

class BucketizedColumn final : public ColumnType {
 public:
  ColumnKind kind() const override { return ColumnKind::kBucketized; }
  std::string_view name() const override { return "bucketized"; }
  bool is_categorical() const override { return true; }

  void Parse(const formats::YamlReader& node, const ColumnFiles& /*files*/,
             ColumnSpec* column) const override {
    node.CheckKeys({"bucketized", "boundaries", "shape"});
    column->input = node.At("bucketized").AsString();
    column->boundaries = node.At("boundaries").AsFloats();
    column->shape = ParseShape(node);
  }
  void Print(const ColumnSpec& column, YAML::Emitter& out) const override {
    formats::EmitText(out, "bucketized", column.input);
    out << YAML::Key << "boundaries" << YAML::Value << YAML::Flow << YAML::BeginSeq;
    for (const float boundary : column.boundaries) out << formats::Shortest(boundary);
    out << YAML::EndSeq;
    if (column.shape != 1) formats::EmitNumber(out, "shape", column.shape);
  }
  absl::Status Check(const ColumnCheck& check) const override {
    const ColumnSpec& column = check.column();
    MUSTER_RETURN_IF_ERROR(check.Numbers("a bucketized column"));
    const std::vector<float>& boundaries = column.boundaries;
    if (boundaries.empty()) return Invalid("boundaries are empty; give at least one");
    for (size_t i = 0; i < boundaries.size(); ++i) {
      if (!std::isfinite(boundaries[i])) return Invalid("boundary ", i, " is not finite");
      if (i > 0 && !(boundaries[i - 1] < boundaries[i])) {
        return Invalid("boundaries must ascend as 32-bit floats; boundary ", i, " is ",
                       boundaries[i], " after ", boundaries[i - 1]);
      }
    }
    return check.NumIds();
  }
  std::string FindCrossFault(const ColumnSpec& /*column*/) const override { return ""; }
  bool has_fixed_length() const override { return true; }

  int64_t NumIds(const FeatureSpec& /*spec*/, const ColumnSpec& column) const override {
    return (static_cast<int64_t>(column.boundaries.size()) + 1) * column.shape;
  }

  std::unique_ptr<IdLookup> MakeLookup(const formats::Schema& schema,
                                       const ColumnSpec& column) const override {
    return std::make_unique<BucketizedLookup>(schema, column);
  }
};

}  // namespace

const ColumnType& GetBucketizedColumn() {
  static const BucketizedColumn kColumn;
  return kColumn;
}

}  // namespace muster::features
