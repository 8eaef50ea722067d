#include "muster/model/spec/exported_spec.h"

#include <memory>
#include <utility>

#include "muster/features/raw_columns.h"
#include "muster/formats/yaml_reader.h"
#include "muster/io/copy.h"
#include "muster/model/keras/export_folder.h"
#include "muster/model/keras/exported_columns.h"
#include "muster/model/keras/keras_optimizer.h"
#include "muster/model/spec/format_parser.h"

namespace muster::model {
namespace {

using engine::tensorflow::KerasExport;

constexpr int kKerasBatchSize = 32;  // the default of Model.fit
constexpr const char* kFormatFile = "data_format.yaml";
constexpr uint64_t kMaxFormatBytes = uint64_t{1} << 20;

}  // namespace

absl::StatusOr<ModelSpec> LoadExportedSpec(io::FileSystem& files, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(KerasExport model, engine::tensorflow::OpenKerasExport(files, folder));
  ModelSpec spec;
  auto schema = features::RawSchema(GetRawColumns(model), /*with_labels=*/true, /*with_key=*/true);
  if (!schema.ok()) return Annotate(schema.status(), folder);
  spec.features.schema = *std::move(schema);
  if (!model.labels.empty()) spec.features.label.input = model.labels[0].feature;
  if (model.key) spec.features.key = model.key->feature;
  MUSTER_ASSIGN_OR_RETURN(const KerasOptimizer optimizer, ParseKerasOptimizer(model));
  spec.clip_gradients = optimizer.clip;
  spec.train.batch_size = kKerasBatchSize;
  spec.exported = std::make_shared<const KerasExport>(std::move(model));
  return spec;
}

absl::Status SaveExport(io::FileSystem& files, const ModelSpec& spec, const std::string& folder) {
  return WriteExportFolder(files, folder, [&](const std::string& temporary) {
    return io::CopyFolder(files, spec.exported->folder, temporary);
  });
}

absl::Status SaveExportedFormat(io::FileSystem& files, const formats::DataFormat& format,
                                const std::string& folder) {
  const std::string path = io::JoinPath(folder, kFormatFile);
  if (format == formats::DataFormat()) {
    const absl::Status removed = files.Remove(path);
    return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
  }
  YAML::Emitter out;
  out << YAML::BeginMap;
  EmitDataFormat(out, format);
  out << YAML::EndMap;
  return io::WriteAsOnlyWriter(files, path, StrCat(out.c_str(), "\n"));
}

absl::StatusOr<formats::DataFormat> LoadExportedFormat(io::FileSystem& files,
                                                       const std::string& folder) {
  const std::string path = io::JoinPath(folder, kFormatFile);
  const absl::StatusOr<std::string> text = io::ReadFile(files, path, kMaxFormatBytes);
  if (absl::IsNotFound(text.status())) return formats::DataFormat();
  MUSTER_RETURN_IF_ERROR(text.status());
  MUSTER_ASSIGN_OR_RETURN(const formats::YamlReader root, formats::YamlReader::Parse(*text, path));
  root.CheckKeys({"format"});
  formats::DataFormat format;
  if (root.Has("format")) format = ParseDataFormat(root.At("format"));
  MUSTER_RETURN_IF_ERROR(root.status());
  return format;
}

std::string DescribeExportedDifference(const ModelSpec& a, const ModelSpec& b) {
  if (!a.exported || !b.exported)
    return "one comes from a model file, the other is an exported Keras model";
  const KerasExport &one = *a.exported, &other = *b.exported;
  if (one.checksum == other.checksum) return "";
  return StrCat("the model.json of ", one.folder, " and ", other.folder, " differ");
}

}  // namespace muster::model
