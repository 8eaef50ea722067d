// Field numbers of tensorflow.Event, Summary and Summary.Value.
// Source: tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto.
#pragma once

#include <protozero/types.hpp>

namespace muster::formats {

enum class EventField : protozero::pbf_tag_type {
  kWallTime = 1,
  kStep = 2,
  kFileVersion = 3,
  kGraphDef = 4,
  kSummary = 5,
};
enum class SummaryField : protozero::pbf_tag_type { kValue = 1 };
enum class SummaryValueField : protozero::pbf_tag_type {
  kTag = 1,
  kSimpleValue = 2,
  kHistogram = 5,
  kTensor = 8,
  kMetadata = 9,
};

}  // namespace muster::formats
