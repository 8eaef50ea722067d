#include "muster/score/prediction_columns.h"

#include <utility>

#include "absl/strings/numbers.h"

#include "muster/base/strings.h"

namespace muster::score {
namespace {

using formats::ValueType;

formats::Schema MakeSchema(const PredictionWriter::Options& options,
                           const engine::Predictions& shape, std::span<const size_t> places) {
  const auto field = [](std::string name, ValueType type, bool list) {
    formats::Field f;
    f.name = std::move(name);
    f.type = type;
    f.list = list;
    return f;
  };
  formats::Schema schema;
  schema.fields.push_back(
      field(options.key, options.numeric_key ? ValueType::kInt : ValueType::kString, false));
  for (const size_t place : places) {
    const engine::PredictionTensor& tensor = shape.tensors[place];
    schema.fields.push_back(field(tensor.name, tensor.type, tensor.width > 1));
  }
  return schema;
}

}  // namespace

std::vector<size_t> FindWrittenTensors(const engine::Predictions& shape, bool csv) {
  const bool says_logistic = shape.Find("logistic") != nullptr;
  std::vector<size_t> places;
  for (size_t i = 0; i < shape.tensors.size(); ++i) {
    const engine::PredictionTensor& tensor = shape.tensors[i];
    if (tensor.same_in_all_rows) continue;
    if (csv && says_logistic && tensor.name == "probabilities") continue;
    places.push_back(i);
  }
  return places;
}

PredictionColumns::PredictionColumns(PredictionWriter::Options options,
                                     const engine::Predictions& shape)
    : options_(std::move(options)),
      places_(FindWrittenTensors(shape, /*csv=*/false)),
      schema_(MakeSchema(options_, shape, places_)),
      columns_(schema_) {}

absl::StatusOr<const formats::Columns*> PredictionColumns::Fill(
    std::span<const std::string> keys, const engine::Predictions& predictions) {
  columns_.Clear();
  for (int row = 0; row < predictions.rows; ++row) {
    MUSTER_RETURN_IF_ERROR(Append(
        predictions, row, keys.empty() ? StrCat(row_ + row) : keys[static_cast<size_t>(row)]));
  }
  row_ += columns_.rows();
  return &columns_;
}

absl::Status PredictionColumns::Append(const engine::Predictions& predictions, int row,
                                       const std::string& key) {
  if (options_.numeric_key) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(key, &number)) {
      return absl::InternalError(StrCat("prediction key '", key, "' is not a number"));
    }
    columns_.mutable_column(0).ints.push_back(number);
  } else {
    columns_.mutable_column(0).strings.push_back(columns_.Store(key));
  }
  for (size_t field = 0; field < places_.size(); ++field) {
    const engine::PredictionTensor& tensor = predictions.tensors[places_[field]];
    formats::Column& column = columns_.mutable_column(static_cast<int>(field) + 1);
    const auto append = [&](const auto& values, auto* out) {
      const auto begin = values.begin() + static_cast<ptrdiff_t>(tensor.begin(row));
      out->insert(out->end(), begin, begin + tensor.width);
    };
    switch (tensor.type) {
      case ValueType::kInt:
        append(tensor.ints, &column.ints);
        break;
      case ValueType::kFloat:
        append(tensor.floats, &column.floats);
        break;
      case ValueType::kString:  // the strings live until they are encoded
        append(tensor.strings, &column.strings);
        break;
    }
  }
  columns_.AddRow();
  return absl::OkStatus();
}

}  // namespace muster::score
