#include "muster/data/kafka/kafka_growth.h"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/base/strings.h"
#include "muster/data/kafka/kafka_segments.h"
#include "muster/data/kafka/kafka_set.h"

namespace muster::data {
namespace {

constexpr int64_t kPollNanos = 500'000'000;
constexpr double kNanosPerSecond = 1e9;
constexpr int64_t kBatchesOfSegment = 64;

DataSegment DescribeSegment(const KafkaSegment& segment) {
  DataSegment found = {.patterns = {}, .records = static_cast<uint64_t>(CountOffsets(segment))};
  for (const KafkaName& name : segment) found.patterns.push_back(PrintKafkaName(name));
  return found;
}

class RecordedGrowth : public GrowingData {
 public:
  explicit RecordedGrowth(std::string folder) : record_(std::move(folder)) {}

  absl::StatusOr<std::optional<DataSegment>> GetSegment(io::FileSystem& files,
                                                        int64_t number) override {
    // Segments have begun since the files were read.
    if (number == 0) record_ = SegmentRecord(record_.folder());
    MUSTER_ASSIGN_OR_RETURN(const auto segment, record_.Find(files, number));
    if (!segment) return std::nullopt;
    return DescribeSegment(*segment);
  }
  absl::StatusOr<uint64_t> CountLater() override { return 0; }

 private:
  SegmentRecord record_;
};

class KafkaGrowth : public GrowingData {
 public:
  KafkaGrowth(KafkaGrowthSpec spec, const Clock& clock)
      : spec_(std::move(spec)), clock_(clock), record_(spec_.folder) {}

  absl::Status Connect() {
    for (const std::string& text : spec_.names) {
      MUSTER_ASSIGN_OR_RETURN(KafkaName name, ParseKafkaName(text));
      if (name.is_fixed()) {
        return absl::InvalidArgumentError(
            StrCat(text, ": has ranges, which end; to follow the topic, leave them out"));
      }
      MUSTER_ASSIGN_OR_RETURN(clusters_.emplace_back(),
                              KafkaCluster::Connect(name.brokers, spec_.settings));
      topics_.push_back(std::move(name));
    }
    MUSTER_RETURN_IF_ERROR(Poll());
    for (size_t i = 0; i < topics_.size(); ++i) {
      MUSTER_RETURN_IF_ERROR(CheckNotCompacted(*clusters_[i], topics_[i]));
    }
    return absl::OkStatus();
  }

  absl::Status WaitForRecords(const std::atomic<bool>& stop,
                              const std::function<void(const std::string&)>& note) {
    while (CountOffsets(now_) == 0) {
      if (!noted_)
        note(StrCat("Waiting for the first records of ", absl::StrJoin(spec_.names, " ")));
      noted_ = true;
      if (stop) return absl::CancelledError("stopped while it waited for the first records");
      MUSTER_RETURN_IF_ERROR(PollPatiently());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<DataSegment>> GetSegment(io::FileSystem& files,
                                                        int64_t number) override {
    if (std::exchange(spec_.fresh, false)) MUSTER_RETURN_IF_ERROR(record_.Clear(files));
    MUSTER_ASSIGN_OR_RETURN(std::optional<KafkaSegment> segment, record_.Find(files, number));
    if (!segment) {
      MUSTER_ASSIGN_OR_RETURN(segment, Begin(files, number));
      if (!segment) return std::nullopt;
    }
    MUSTER_RETURN_IF_ERROR(TakeRecorded(*segment));
    last_ = *segment;
    return DescribeSegment(*segment);
  }

  absl::StatusOr<uint64_t> CountLater() override {
    if (clock_.MonotonicNanos() - polled_ >= kPollNanos) MUSTER_RETURN_IF_ERROR(Poll());
    MUSTER_ASSIGN_OR_RETURN(const KafkaSegment later, FindLater(last_));
    return static_cast<uint64_t>(CountOffsets(later));
  }

 private:
  // Reads which offsets the topics have now.
  absl::Status Poll() {
    polled_ = clock_.MonotonicNanos();
    KafkaSegment now = topics_;
    for (size_t i = 0; i < now.size(); ++i) {
      MUSTER_ASSIGN_OR_RETURN(const auto partitions, clusters_[i]->ListPartitions(now[i].topic));
      for (const int32_t partition : partitions) {
        MUSTER_ASSIGN_OR_RETURN(now[i].ranges.emplace_back(),
                                clusters_[i]->FindRange(now[i].topic, partition));
      }
    }
    now_ = std::move(now);
    silent_since_.reset();
    has_warned_ = false;
    return absl::OkStatus();
  }

  // Polls, not more often than every kPollNanos. Brokers that are away are waited for.
  absl::Status PollPatiently() {
    const int64_t left = polled_ + kPollNanos - clock_.MonotonicNanos();
    if (left > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(left));
    const absl::Status polled = Poll();
    // A partition that was just added may be unknown to some brokers.
    const bool may_return = absl::IsUnavailable(polled) || absl::IsNotFound(polled);
    if (!may_return) return polled;
    if (!silent_since_) silent_since_ = polled_;
    const double silence =
        static_cast<double>(clock_.MonotonicNanos() - *silent_since_) / kNanosPerSecond;
    if (silence >= kKafkaSilenceSeconds) return polled;
    if (silence >= kKafkaWarningSeconds && !std::exchange(has_warned_, true)) {
      WarnOfSilence(topics_.front().brokers, "asking for new records", silence);
    }
    return absl::OkStatus();
  }

  // Returns what the topics have after `segment`; empty: all that they have.
  absl::StatusOr<KafkaSegment> FindLater(const KafkaSegment& segment) const {
    KafkaSegment later = now_;
    for (size_t i = 0; i < segment.size(); ++i) {
      MUSTER_ASSIGN_OR_RETURN(later[i].ranges,
                              FindLaterRanges(later[i].topic, segment[i].ranges, now_[i].ranges));
      later[i].chunk = segment[i].chunk;
    }
    return later;
  }

  // Begins a segment and writes it down, if there are enough records.
  absl::StatusOr<std::optional<KafkaSegment>> Begin(io::FileSystem& files, int64_t number) {
    std::optional<KafkaSegment> before = KafkaSegment();
    if (number > 0) {
      MUSTER_ASSIGN_OR_RETURN(before, record_.Find(files, number - 1));
      if (!before) {
        return absl::FailedPreconditionError(
            StrCat("the checkpoint's position is in segment ", number, " of data that grows, but ",
                   record_.folder(), " does not have it: the model was trained on other data; ",
                   "give that again, or begin this one with --fresh-data"));
      }
      MUSTER_RETURN_IF_ERROR(TakeRecorded(*before));
    }
    MUSTER_RETURN_IF_ERROR(PollPatiently());
    MUSTER_ASSIGN_OR_RETURN(KafkaSegment segment, FindLater(*before));
    if (!IsEnough(CountOffsets(segment))) return std::nullopt;
    CutToMultiple(spec_.batch_size, &segment);
    for (KafkaName& name : segment) MUSTER_RETURN_IF_ERROR(ChooseChunk(&name));
    MUSTER_RETURN_IF_ERROR(record_.Append(files, number, segment));
    return segment;
  }

  bool IsEnough(int64_t offsets) {
    const int64_t now = clock_.MonotonicNanos();
    if (offsets == 0) {
      waits_since_.reset();
      return false;
    }
    if (!waits_since_) waits_since_ = now;
    const bool is_enough = offsets >= kBatchesOfSegment * spec_.batch_size ||
                           static_cast<double>(now - *waits_since_) * 1e-9 >= spec_.most_seconds;
    if (is_enough) waits_since_.reset();
    return is_enough;
  }

  // A topic keeps the size of its chunks, once its records have shown it.
  absl::Status ChooseChunk(KafkaName* name) const {
    if (name->chunk > 0 && name->chunk < kMaxChunkOffsets) return absl::OkStatus();
    name->chunk = kMaxChunkOffsets;
    if (CountOffsets({*name}) == 0) return absl::OkStatus();
    name->chunk = 0;
    MUSTER_ASSIGN_OR_RETURN(const auto fixed,
                            FixKafkaNames({PrintKafkaName(*name)}, spec_.settings));
    MUSTER_ASSIGN_OR_RETURN(*name, ParseKafkaName(fixed.front()));
    return absl::OkStatus();
  }

  // Gives a segment that was written down what the names of this run say beside its ranges.
  absl::Status TakeRecorded(KafkaSegment& segment) const {
    bool is_same = segment.size() == topics_.size();
    for (size_t i = 0; is_same && i < segment.size(); ++i) {
      is_same = segment[i].topic == topics_[i].topic;
      KafkaName name = topics_[i];
      name.ranges = std::move(segment[i].ranges);
      name.chunk = segment[i].chunk;
      segment[i] = std::move(name);
    }
    if (is_same) return absl::OkStatus();
    return absl::FailedPreconditionError(StrCat(
        record_.folder(), ": has segments of other topics than ", absl::StrJoin(spec_.names, " "),
        "; give those again, or begin these with --fresh-data"));
  }

  KafkaGrowthSpec spec_;
  const Clock& clock_;
  SegmentRecord record_;
  KafkaSegment topics_;                                  // without ranges
  std::vector<std::unique_ptr<KafkaCluster>> clusters_;  // by topic
  KafkaSegment now_;                                     // what Poll has found last
  KafkaSegment last_;                                    // what GetSegment has returned last
  int64_t polled_ = 0;
  std::optional<int64_t> silent_since_;  // when the first poll began of those that failed in a row
  std::optional<int64_t> waits_since_;
  bool noted_ = false;
  bool has_warned_ = false;  // of the brokers' silence
};

}  // namespace

std::shared_ptr<GrowingData> NewRecordedGrowth(std::string folder) {
  return std::make_shared<RecordedGrowth>(std::move(folder));
}

absl::StatusOr<std::shared_ptr<GrowingData>> OpenKafkaGrowth(
    KafkaGrowthSpec spec, io::FileSystem& files, const Clock& clock, const std::atomic<bool>& stop,
    const std::function<void(const std::string&)>& note) {
  const bool has_begun = !spec.fresh && files.Stat(spec.folder).ok();
  const bool waits = spec.waits_for_first && !has_begun;
  auto growth = std::make_shared<KafkaGrowth>(std::move(spec), clock);
  MUSTER_RETURN_IF_ERROR(growth->Connect());
  if (waits) MUSTER_RETURN_IF_ERROR(growth->WaitForRecords(stop, note));
  return growth;
}

}  // namespace muster::data
