#include "muster/engine/tensorflow/raw_columns.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "muster/formats/number_type.h"

namespace muster::engine::tensorflow {
namespace {

using features::FeatureBatch;
using features::RawColumn;
using features::ShapeText;
using formats::DataType;

bool ShapeFits(const std::vector<int64_t>& shape, const std::vector<int64_t>& wanted) {
  return std::ranges::equal(shape, wanted, [](int64_t size, int64_t want) {
    return want == kAnySize ? size >= 0 : size == want;
  });
}

bool StringsFit(const RawColumn& column, int64_t elements) {
  return column.offsets.size() == static_cast<size_t>(elements) + 1 &&
         column.offsets.front() == 0 && column.offsets.back() == column.bytes.size() &&
         std::is_sorted(column.offsets.begin(), column.offsets.end());
}

absl::Status CheckColumn(const KerasColumn& wanted, const char* what, const RawColumn& column,
                         int rows) {
  const std::string name =
      StrCat(what, " ", wanted.name,
             wanted.feature.empty() ? "" : StrCat(" (feature ", wanted.feature, ")"));
  if (column.type != wanted.type || !ShapeFits(column.shape, wanted.shape)) {
    return absl::InvalidArgumentError(
        StrCat(name, ": the batch has ", formats::DataTypeName(column.type), " ",
               ShapeText(column.shape), " per row, but the model takes ",
               formats::DataTypeName(wanted.type), " ", ShapeText(wanted.shape)));
  }
  std::vector<int64_t> shape = column.shape;
  shape.push_back(rows);
  const std::optional<int64_t> elements = formats::ElementCount(shape);
  const bool fits =
      elements &&
      (column.type == DataType::kString
           ? StringsFit(column, *elements)
           : std::cmp_equal(column.bytes.size() / formats::DataTypeBytes(column.type), *elements) &&
                 column.bytes.size() % formats::DataTypeBytes(column.type) == 0);
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(name, ": its ", column.bytes.size(), " bytes and ",
                                           column.offsets.size(), " offsets are not ", rows,
                                           " rows of shape ", ShapeText(column.shape)));
}

template <typename Number>
bool AppendIds(std::span<const std::byte> bytes, std::vector<int32_t>* ids) {
  const size_t count = bytes.size() / sizeof(Number);
  ids->resize(count);
  bool good = true;
  for (size_t i = 0; i < count; ++i) {
    Number value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    if constexpr (std::is_floating_point_v<Number>) {
      good = good && value > Number{-2147483648.0} && value < Number{2147483648.0};
    } else {
      good = good && std::in_range<int32_t>(value);
    }
    (*ids)[i] = good ? static_cast<int32_t>(value) : 0;
  }
  return good;
}

}  // namespace

bool HasLabels(const KerasExport& model, const FeatureBatch& batch) {
  return batch.raw.size() > model.inputs.size();
}

absl::Status CheckRawColumns(const KerasExport& model, const FeatureBatch& batch, bool labels) {
  if (batch.rows < 1) return absl::InvalidArgumentError("the batch has no rows");
  const size_t inputs = model.inputs.size();
  const size_t all = inputs + model.labels.size() + (model.sample_weight ? 1 : 0);
  if (batch.raw.size() != all && (labels || batch.raw.size() != inputs)) {
    return absl::InvalidArgumentError(StrCat("the batch has ", batch.raw.size(),
                                             " columns, but the model has ", inputs, " inputs and ",
                                             all - inputs, " labels and sample weights"));
  }
  for (size_t i = 0; i < batch.raw.size(); ++i) {
    const bool is_input = i < inputs, is_label = i < inputs + model.labels.size();
    const KerasColumn& wanted = is_input   ? model.inputs[i]
                                : is_label ? model.labels[i - inputs]
                                           : *model.sample_weight;
    const char* const what = is_input ? "input" : is_label ? "label" : "sample weight";
    MUSTER_RETURN_IF_ERROR(CheckColumn(wanted, what, batch.raw[i], batch.rows));
  }
  return absl::OkStatus();
}

host::TensorPlace GetPlace(const RawColumn& column, int rows) {
  host::TensorPlace place;
  place.type = static_cast<uint64_t>(column.type);
  place.bytes = column.bytes.size() + column.offsets.size() * sizeof(uint64_t);
  place.rank = column.shape.size() + 1;
  place.dims[0] = static_cast<uint64_t>(rows);
  for (size_t i = 0; i < column.shape.size(); ++i) {
    place.dims[i + 1] = static_cast<uint64_t>(column.shape[i]);
  }
  return place;
}

void WriteRaw(const RawColumn& column, std::byte* to) {
  const auto offsets = std::as_bytes(std::span(column.offsets));
  to = std::copy(offsets.begin(), offsets.end(), to);
  std::copy(column.bytes.begin(), column.bytes.end(), to);
}

RawColumn ReadRaw(const host::TensorPlace& place, const std::byte* from) {
  RawColumn column{.type = static_cast<DataType>(place.type)};
  uint64_t elements = 1;
  for (uint64_t i = 0; i < place.rank; ++i) {
    elements *= place.dims[i];
    if (i > 0) column.shape.push_back(static_cast<int64_t>(place.dims[i]));
  }
  uint64_t begin = 0;
  if (place.type == host::kStringType) {
    column.offsets.resize(elements + 1);
    begin = column.offsets.size() * sizeof(uint64_t);
    std::memcpy(column.offsets.data(), from, begin);
  }
  column.bytes.assign(from + begin, from + place.bytes);
  return column;
}

absl::StatusOr<std::vector<int32_t>> ReadIds(DataType type, std::span<const std::byte> bytes,
                                             const std::string& what) {
  std::vector<int32_t> ids;
  bool good = false;
  const bool numbers = formats::VisitNumber(type, [&]<class Number>(std::type_identity<Number>) {
    good = AppendIds<Number>(bytes, &ids);
  });
  if (!numbers) {
    return absl::InvalidArgumentError(
        StrCat(what, ": values of ", formats::DataTypeName(type), " cannot be ids"));
  }
  if (good) return ids;
  return absl::InvalidArgumentError(StrCat(
      what,
      ": a value is no id: an id is at least 0 and less than the number of its table's rows"));
}

}  // namespace muster::engine::tensorflow
