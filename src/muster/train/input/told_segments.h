// ToldSegments: the segments of data that grows (data/growing_data.h), for replicas that train on
// them together. The chief alone decides which records a segment has, and tells the others in a
// text. All replicas go on to a segment when all have taken the one before, so that the batches of
// each step depend on the segments alone, and not on when they began.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/growing_data.h"

namespace muster::train {

// One owner thread.
class ToldSegments : public data::GrowingData {
 public:
  // `origin`: what the chief asks; null in the other replicas.
  explicit ToldSegments(std::shared_ptr<data::GrowingData> origin) : origin_(std::move(origin)) {}

  // The number of the segment that was told last; -1: none was.
  int64_t number() const { return number_; }
  // Returns the text of segment `number`; "" if it has not begun, or if this is not the chief. May
  // wait for records, as GrowingData::GetSegment.
  absl::StatusOr<std::string> Ask(io::FileSystem& files, int64_t number);
  // INVALID_ARGUMENT for what is not the text of a segment.
  absl::Status Tell(std::string_view text);
  void Forget() { number_ = -1; }

  // Returns the segment that was told last, and no other one.
  absl::StatusOr<std::optional<data::DataSegment>> GetSegment(io::FileSystem& files,
                                                              int64_t number) override;
  // 0 in a replica that is not the chief.
  absl::StatusOr<uint64_t> CountLater() override;

 private:
  const std::shared_ptr<data::GrowingData> origin_;
  int64_t number_ = -1;
  data::DataSegment segment_;
};

// Returns the segment in which replicas with these positions ("": none yet) train: the last one of
// which any of them has taken a batch, since all have taken those before it; -1: there is none.
absl::StatusOr<int64_t> FindPresentSegment(const std::vector<std::string>& positions);

// The error of a position in a segment that has not begun.
absl::Status NoSuchSegment(int64_t number);

}  // namespace muster::train
