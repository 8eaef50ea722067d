#include "muster/data/convert_idx.h"

#include <memory>
#include <utility>

#include "muster/formats/columns.h"
#include "muster/formats/example.h"
#include "muster/formats/idx.h"

namespace muster::data {
namespace {

using formats::IdxReader;

constexpr uint64_t kItemsBetweenReports = 1024;

absl::StatusOr<std::unique_ptr<IdxReader>> OpenIdx(io::FileSystem& files, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const io::RandomAccessFile> file,
                          files.OpenForRead(path));
  return IdxReader::Open(std::move(file));
}

absl::StatusOr<std::unique_ptr<IdxReader>> OpenLabels(io::FileSystem& files,
                                                      const IdxConversionSpec& spec,
                                                      const IdxReader& images) {
  MUSTER_ASSIGN_OR_RETURN(auto labels, OpenIdx(files, spec.labels));
  if (!labels->shape().empty() || !formats::IsIdxInteger(labels->type())) {
    return absl::InvalidArgumentError(
        StrCat(spec.labels, ": an array of ", labels->shape().size() + 1, " dimensions of ",
               formats::IdxTypeName(labels->type()),
               " is no list of labels, which has one dimension of whole numbers"));
  }
  if (labels->items() != images.items()) {
    return absl::InvalidArgumentError(StrCat(spec.labels, " has ", labels->items(), " labels, ",
                                             spec.images, " ", images.items(),
                                             " images: they do not belong together"));
  }
  return labels;
}

formats::Schema SchemaOfIdx(const IdxConversionSpec& spec) {
  formats::Schema schema;
  schema.fields.emplace_back().name = spec.image_feature;
  if (spec.labels.empty()) return schema;
  formats::Field& label = schema.fields.emplace_back();
  label.name = spec.label_feature;
  label.type = formats::ValueType::kInt;
  return schema;
}

class IdxConversion {
 public:
  IdxConversion(const IdxConversionSpec& spec, IdxReader& images, IdxReader* labels)
      : images_(images),
        labels_(labels),
        schema_(SchemaOfIdx(spec)),
        columns_(schema_),
        encoder_(schema_) {}

  // Replaces *record by the next one. Returns false at the end of both files.
  absl::StatusOr<bool> Next(std::string* record) {
    std::string_view image, label;
    MUSTER_ASSIGN_OR_RETURN(const bool more, images_.Next(&image));
    if (labels_ != nullptr) MUSTER_RETURN_IF_ERROR(labels_->Next(&label).status());
    if (!more) return false;
    columns_.Clear();
    columns_.mutable_column(0).strings.push_back(image);
    if (labels_ != nullptr) {
      columns_.mutable_column(1).ints.push_back(formats::IdxInteger(labels_->type(), label));
    }
    columns_.AddRow();
    encoder_.Encode(columns_, 0, record);
    return true;
  }

 private:
  IdxReader& images_;
  IdxReader* const labels_;  // may be null
  const formats::Schema schema_;
  formats::Columns columns_;  // one row
  const formats::ExampleEncoder encoder_;
};

}  // namespace

absl::StatusOr<ConversionCounts> ConvertIdx(io::FileSystem& files, const IdxConversionSpec& spec,
                                            const ConversionProgress& progress) {
  if (!spec.labels.empty() && spec.image_feature == spec.label_feature) {
    return absl::InvalidArgumentError(
        StrCat("image and label would both be the feature '", spec.image_feature, "'"));
  }
  MUSTER_ASSIGN_OR_RETURN(const auto images, OpenIdx(files, spec.images));
  std::unique_ptr<IdxReader> labels;
  if (!spec.labels.empty()) {
    MUSTER_ASSIGN_OR_RETURN(labels, OpenLabels(files, spec, *images));
  }
  if (images->items() == 0) return absl::InvalidArgumentError(StrCat(spec.images, ": no items"));
  MUSTER_ASSIGN_OR_RETURN(const auto writer, PartFileWriter::Create(files, spec.output));
  IdxConversion conversion(spec, *images, labels.get());
  ConversionCounts counts;
  for (std::string record;;) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, conversion.Next(&record));
    const bool report = progress && (!more || counts.rows % kItemsBetweenReports == 0);
    if (report) MUSTER_RETURN_IF_ERROR(progress(counts));
    if (!more) break;
    MUSTER_RETURN_IF_ERROR(writer->Write(record));
    ++counts.rows;
  }
  MUSTER_RETURN_IF_ERROR(writer->Commit());
  counts.bytes = writer->file_bytes();
  return counts;
}

}  // namespace muster::data
