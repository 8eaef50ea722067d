// The name of a topic of a Kafka cluster, or of ranges of its records:
//   kafka://BROKER,BROKER/TOPIC
//   kafka://BROKER,BROKER/TOPIC?ranges=0:100-2000,1:0-512&chunk=400
// The second form names the same records forever, and the same chunks of them: from each partition
// the records with offsets from the first number up to, but without, the second one. `chunk` is the
// number of offsets that are read at once. Further settings:
//   key=COLUMN&timestamp=COLUMN&header.NAME=COLUMN
// make columns of the data of what a message has beside its value, and compacted=allow lets a
// training read a topic that compaction changes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/status.h"

namespace muster::data {

inline constexpr std::string_view kKafkaScheme = "kafka";

struct OffsetRange {
  int32_t partition = 0;
  int64_t begin = 0;
  int64_t end = 0;  // the offset after the last one

  friend bool operator==(const OffsetRange&, const OffsetRange&) = default;
};

// Which parts of a message beside its value are columns of the data.
struct MessageColumns {
  std::string key = {};                                           // the column's name; "": none
  std::string timestamp = {};                                     // the same, of seconds since 1970
  std::vector<std::pair<std::string, std::string>> headers = {};  // a header and its column

  // In the order key, timestamp, headers.
  std::vector<std::string> Names() const;
  std::vector<std::string> HeaderNames() const;
  bool empty() const { return key.empty() && timestamp.empty() && headers.empty(); }
  friend bool operator==(const MessageColumns&, const MessageColumns&) = default;
};

struct KafkaName {
  std::string brokers;  // HOST or HOST:PORT, separated by commas
  std::string topic;
  std::vector<OffsetRange> ranges = {};  // by partition; none: not fixed yet
  int64_t chunk = 0;                     // offsets; 0: not fixed yet
  MessageColumns columns = {};
  bool may_be_compacted = false;

  bool is_fixed() const { return !ranges.empty(); }
  friend bool operator==(const KafkaName&, const KafkaName&) = default;
};

// INVALID_ARGUMENT says what is expected.
absl::StatusOr<KafkaName> ParseKafkaName(std::string_view text);
std::string PrintKafkaName(const KafkaName& name);
// Returns "TOPIC/3", a partition's name in messages.
std::string PartitionName(std::string_view topic, int32_t partition);

}  // namespace muster::data
