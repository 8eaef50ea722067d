#include "muster/formats/summary.h"

#include <protozero/pbf_builder.hpp>

#include "muster/formats/bundle.h"
#include "muster/formats/event_fields.h"

namespace muster::formats {
namespace {

enum class HistogramField : protozero::pbf_tag_type {
  kMin = 1,
  kMax = 2,
  kCount = 3,
  kSum = 4,
  kSumOfSquares = 5,
  kLimits = 6,
  kBuckets = 7,
};
enum class MetadataField : protozero::pbf_tag_type { kPluginData = 1 };
enum class PluginDataField : protozero::pbf_tag_type { kName = 1, kContent = 2 };
enum class TensorField : protozero::pbf_tag_type { kType = 1, kShape = 2, kStrings = 8 };

using ValueBuilder = protozero::pbf_builder<SummaryValueField>;

void AddPlugin(ValueBuilder* value, std::string_view plugin, std::string_view content) {
  protozero::pbf_builder<MetadataField> metadata(*value, SummaryValueField::kMetadata);
  protozero::pbf_builder<PluginDataField> data(metadata, MetadataField::kPluginData);
  data.add_string(PluginDataField::kName, plugin.data(), plugin.size());
  if (!content.empty()) data.add_bytes(PluginDataField::kContent, content.data(), content.size());
}

ValueBuilder NewValue(protozero::pbf_builder<SummaryField>* summary, std::string_view tag) {
  ValueBuilder value(*summary, SummaryField::kValue);
  value.add_string(SummaryValueField::kTag, tag.data(), tag.size());
  return value;
}

}  // namespace

void Summary::AddScalar(std::string_view tag, float value) {
  protozero::pbf_builder<SummaryField> summary(bytes_);
  NewValue(&summary, tag).add_float(SummaryValueField::kSimpleValue, value);
}

void Summary::AddHistogram(std::string_view tag, const Histogram& histogram) {
  protozero::pbf_builder<SummaryField> summary(bytes_);
  ValueBuilder value = NewValue(&summary, tag);
  protozero::pbf_builder<HistogramField> message(value, SummaryValueField::kHistogram);
  message.add_double(HistogramField::kMin, histogram.min);
  message.add_double(HistogramField::kMax, histogram.max);
  message.add_double(HistogramField::kCount, histogram.count);
  message.add_double(HistogramField::kSum, histogram.sum);
  message.add_double(HistogramField::kSumOfSquares, histogram.sum_of_squares);
  message.add_packed_double(HistogramField::kLimits, histogram.limits.begin(),
                            histogram.limits.end());
  message.add_packed_double(HistogramField::kBuckets, histogram.buckets.begin(),
                            histogram.buckets.end());
}

void Summary::AddText(std::string_view tag, std::string_view markdown) {
  protozero::pbf_builder<SummaryField> summary(bytes_);
  ValueBuilder value = NewValue(&summary, tag);
  {
    protozero::pbf_builder<TensorField> tensor(value, SummaryValueField::kTensor);
    tensor.add_enum(TensorField::kType, static_cast<int>(DataType::kString));
    tensor.add_message(TensorField::kShape, "", 0);  // a scalar
    tensor.add_bytes(TensorField::kStrings, markdown.data(), markdown.size());
  }
  AddPlugin(&value, "text", "");
}

void Summary::AddMetadata(std::string_view tag, std::string_view plugin, std::string_view content) {
  protozero::pbf_builder<SummaryField> summary(bytes_);
  ValueBuilder value = NewValue(&summary, tag);
  {
    // The value that tensorboard/plugins/hparams/metadata.py calls NULL_TENSOR: floats of shape
    // [0].
    constexpr std::string_view kShapeOfNone("\x12\x00", 2);
    protozero::pbf_builder<TensorField> tensor(value, SummaryValueField::kTensor);
    tensor.add_enum(TensorField::kType, static_cast<int>(DataType::kFloat));
    tensor.add_message(TensorField::kShape, kShapeOfNone.data(), kShapeOfNone.size());
  }
  AddPlugin(&value, plugin, content);
}

std::string CodeBlock(std::string_view text) {
  // The block is indented, not fenced, so that no text can end it.
  std::string block;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    block.append("    ").append(text.substr(0, end)).push_back('\n');
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return block;
}

}  // namespace muster::formats
