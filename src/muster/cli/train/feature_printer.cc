#include "muster/cli/train/feature_printer.h"

#include <charconv>
#include <cstdio>

#include "muster/cli/common/format_flags.h"
#include "muster/data/reader.h"
#include "muster/features/transform.h"
#include "muster/model/model.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

std::string Shortest(float value) {
  char buffer[32];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

std::string GetFloats(const features::DenseColumn& column, int row) {
  std::string text;
  for (int i = 0; i < column.width; ++i) {
    const float value = column.values[static_cast<size_t>(row) * column.width + i];
    text += StrCat(i > 0 ? "," : "", Shortest(value));
  }
  return text;
}

std::string GetIds(const features::IdList& list, int row) {
  std::string text;
  for (size_t i = list.begin(row); i < list.end(row); ++i) {
    if (list.ids[i] < 0) continue;
    text += StrCat(text.empty() ? "" : ",", list.keys.empty() ? list.ids[i] : list.keys[i]);
  }
  return text;
}

// Returns the weights of the ids that GetIds prints.
std::string GetWeights(const features::IdList& list, int row) {
  std::string text;
  for (size_t i = list.begin(row); i < list.end(row); ++i) {
    if (list.ids[i] >= 0) text += StrCat(text.empty() ? "" : ",", Shortest(list.weights[i]));
  }
  return text;
}

std::string JsonMember(const std::string& name, const std::string& values, bool first) {
  return StrCat(first ? "" : ",", nlohmann::json(name).dump(), ":[", values, "]");
}

std::string JsonRow(const features::FeatureRequest& request, const features::FeatureBatch& batch,
                    int row) {
  std::string text = "{\"dense\":{";
  for (size_t i = 0; i < request.dense.size(); ++i) {
    text += JsonMember(request.dense[i], GetFloats(batch.dense[i], row), i == 0);
  }
  text += "},\"ids\":{";
  for (size_t i = 0; i < request.categorical.size(); ++i) {
    text += JsonMember(request.categorical[i], GetIds(batch.id_lists[i], row), i == 0);
  }
  text += "}";
  std::string weights;
  for (size_t i = 0; i < request.categorical.size(); ++i) {
    if (batch.id_lists[i].weights.empty()) continue;
    weights +=
        JsonMember(request.categorical[i], GetWeights(batch.id_lists[i], row), weights.empty());
  }
  if (!weights.empty()) text += StrCat(",\"weights\":{", weights, "}");
  return text + "}";
}

std::string TextRow(const features::FeatureRequest& request, const features::FeatureBatch& batch,
                    int row) {
  std::string text;
  for (size_t i = 0; i < request.dense.size(); ++i) {
    text += StrCat("  ", request.dense[i], " = ", GetFloats(batch.dense[i], row), "\n");
  }
  for (size_t i = 0; i < request.categorical.size(); ++i) {
    text += StrCat("  ", request.categorical[i], " -> ", GetIds(batch.id_lists[i], row));
    if (!batch.id_lists[i].weights.empty()) {
      text += StrCat(" with weights ", GetWeights(batch.id_lists[i], row));
    }
    text += "\n";
  }
  return text;
}

}  // namespace

absl::Status PrintFeatures(io::FileSystem& files, const model::ModelSpec& spec,
                           const FeaturePrinterOptions& options) {
  features::FeatureRequest request;
  for (const features::ColumnSpec& column : spec.features.columns) {
    if (column.kind == features::ColumnKind::kEmbedding) continue;
    (column.is_categorical() ? request.categorical : request.dense).push_back(column.name);
  }
  features::FeatureSpec used =
      model::UsedFeatures(spec.features, request, /*with_label=*/false, /*with_key=*/false);
  MUSTER_ASSIGN_OR_RETURN(const auto transform, features::FeatureTransform::Create(used, request));
  data::SourceSpec source_spec;
  source_spec.patterns = options.patterns;
  source_spec.format =
      formats::NameColumns(formats::Override(spec.format, options.format), spec.features.schema);
  source_spec.may_lack = spec.LabelInputs();
  source_spec.note = PrintNotesOnce();
  used.schema = formats::WithMissing(std::move(used.schema), source_spec.format);
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const data::RecordSource> source,
                          data::OpenSource(files, source_spec));
  MUSTER_ASSIGN_OR_RETURN(const auto reader,
                          data::BatchReader::Create(source, used.schema, data::ReaderSpec()));
  formats::Columns columns(used.schema);
  features::FeatureBatch batch;
  int64_t printed = 0;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, reader->Next(&columns));
    if (!more) return absl::OkStatus();
    int bad_row = -1;
    const absl::Status status = transform->Apply(columns, /*with_labels=*/false, &batch, &bad_row);
    if (!status.ok()) {
      return bad_row < 0 ? status : Annotate(status, reader->Origin(bad_row));
    }
    for (int row = 0; row < batch.rows; ++row) {
      if (options.limit > 0 && printed == options.limit) return absl::OkStatus();
      if (options.json) {
        std::printf("%s\n", JsonRow(request, batch, row).c_str());
      } else {
        std::printf("%s\n%s", reader->Origin(row).c_str(), TextRow(request, batch, row).c_str());
      }
      ++printed;
    }
  }
}

}  // namespace muster::cli
