#include "muster/data/kafka/trained_offsets.h"

#include <utility>

#include "muster/base/strings.h"
#include "muster/data/kafka/kafka_group.h"
#include "muster/data/kafka/kafka_segments.h"

namespace muster::data {
namespace {

class CommittedSegments : public TrainedOffsets {
 public:
  explicit CommittedSegments(std::string folder) : folder_(std::move(folder)) {}

  absl::Status Open(const TrainedOffsetsSpec& spec) {
    for (const std::string& text : spec.names) {
      MUSTER_ASSIGN_OR_RETURN(const KafkaName name, ParseKafkaName(text));
      MUSTER_ASSIGN_OR_RETURN(groups_.emplace_back(),
                              KafkaGroup::Open(name.brokers, spec.group, spec.settings));
      MUSTER_RETURN_IF_ERROR(groups_.back()->FindOffset(name.topic, 0).status());
    }
    return absl::OkStatus();
  }

  absl::Status Commit(io::FileSystem& files, int64_t segments) override {
    if (segments < 1) return absl::OkStatus();
    // Segments have begun since the last call.
    MUSTER_ASSIGN_OR_RETURN(const auto segment, SegmentRecord(folder_).Find(files, segments - 1));
    if (!segment || segment->size() != groups_.size()) {
      return absl::InternalError(StrCat(folder_, " has no segment ", segments - 1));
    }
    for (size_t i = 0; i < groups_.size(); ++i) {
      const KafkaName& name = (*segment)[i];
      MUSTER_RETURN_IF_ERROR(groups_[i]->Commit(name.topic, name.ranges));
    }
    return absl::OkStatus();
  }

 private:
  const std::string folder_;
  std::vector<std::unique_ptr<KafkaGroup>> groups_;  // by topic
};

}  // namespace

absl::StatusOr<std::unique_ptr<TrainedOffsets>> OpenTrainedOffsets(const TrainedOffsetsSpec& spec) {
  auto opened = std::make_unique<CommittedSegments>(spec.folder);
  MUSTER_RETURN_IF_ERROR(opened->Open(spec));
  return opened;
}

}  // namespace muster::data
