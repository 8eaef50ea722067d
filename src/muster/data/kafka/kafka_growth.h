// Topics as data that grows (data/growing_data.h): a segment ends at the offsets that can be read
// when it begins, and a partition that was added to a topic is in the next segment.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/data/growing_data.h"
#include "muster/data/kafka/kafka_cluster.h"

namespace muster::data {

struct KafkaGrowthSpec {
  std::vector<std::string> names;  // of topics, without ranges
  KafkaSettings settings = {};
  std::string folder;  // where the segments are written down
  // A segment begins when there are records for 64 batches, and is cut to whole batches; or when
  // records have waited for so many seconds.
  int64_t batch_size = 1;
  double most_seconds = 10;
  bool fresh = false;  // the segments that are written down are removed by the first GetSegment
  // Whether OpenKafkaGrowth waits until the topics have records, if no segment has begun yet.
  bool waits_for_first = true;
};

// Connects; `note` is told if this waits for the first records. INVALID_ARGUMENT for a name with
// ranges, and what FixKafkaNames refuses; CANCELLED if `stop` ends the wait. All arguments but
// `spec` must outlive the result.
absl::StatusOr<std::shared_ptr<GrowingData>> OpenKafkaGrowth(
    KafkaGrowthSpec spec, io::FileSystem& files, const Clock& clock, const std::atomic<bool>& stop,
    const std::function<void(const std::string&)>& note);

// The segments that a training has written down in `folder`, for its evaluations. None begins here,
// and no broker is asked: GetSegment returns nullopt after the last one.
std::shared_ptr<GrowingData> NewRecordedGrowth(std::string folder);

}  // namespace muster::data
