#include "muster/train/input/shared_feeds.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "muster/data/batch_stream_reader.h"

namespace muster::train {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Group = std::shared_ptr<const InputGroup>;

bool CanBeShared(const model::Model& model, const InputSpec& spec) {
  return !model.spec.exported && !spec.with_keys && spec.group.empty() &&
         spec.source.shard.count == 1 && !data::IsBatchStream(spec.source);
}

}  // namespace

// What two trainings must have in common to get the same batches.
struct SharedFeeds::Key {
  std::vector<std::string> patterns;
  data::HeldBack held_back;
  formats::DataFormat format;
  features::FeatureSpec features;
  features::FeatureRequest request;
  engine::HeadSpec head;
  ClassWeights class_weights;
  bool with_labels, watch_data;
  int batch_size, open_chunks;
  bool shuffle, drop_remainder;
  uint64_t seed, max_bad_records;
  int64_t epochs;

  Key(const model::Model& model, const InputSpec& spec)
      : patterns(spec.source.patterns),
        held_back(spec.source.held_back),
        format(spec.source.format),
        features(model.spec.features),
        request(model.request),
        head(model.spec.head),
        class_weights(spec.class_weights),
        with_labels(spec.with_labels),
        watch_data(spec.watch_data),
        batch_size(spec.reader.batch_size),
        open_chunks(spec.reader.open_chunks),
        shuffle(spec.reader.shuffle),
        drop_remainder(spec.reader.drop_remainder),
        seed(spec.reader.seed),
        max_bad_records(spec.reader.max_bad_records),
        epochs(spec.reader.epochs) {}
  friend bool operator==(const Key&, const Key&) = default;
};

class SharedFeeds::Feed {
 public:
  // Adds the readers that fall behind to *detached.
  Feed(const Options& options, Key key, std::unique_ptr<Input> input,
       std::shared_ptr<std::atomic<size_t>> detached)
      : options_(options),
        key_(std::move(key)),
        input_(std::move(input)),
        detached_(std::move(detached)),
        closes_(SteadyClock::now() + options.begin_patience) {}

  const Key& key() const { return key_; }
  const Input& input() const { return *input_; }

  // Whether the reader gets all batches from the first one on.
  bool Join(Reader* reader) {
    const std::lock_guard lock(mutex_);
    if (first_ > 0) return false;
    places_[reader] = 0;
    ++joined_;
    return true;
  }

  void Leave(Reader* reader) {
    const std::lock_guard lock(mutex_);
    places_.erase(reader);
    Trim();
    changed_.notify_all();
  }

  enum class Outcome { kGroup, kEnd, kDetached };
  // Replaces *group by the reader's next one.
  absl::StatusOr<Outcome> Next(Reader* reader, Group* group) {
    group->reset();
    std::unique_lock lock(mutex_);
    while (true) {
      const auto place = places_.find(reader);
      if (place == places_.end()) return Outcome::kDetached;
      if (place->second < first_ + window_.size()) {
        *group = window_[static_cast<size_t>(place->second - first_)];
        ++place->second;
        Trim();
        changed_.notify_all();
        return Outcome::kGroup;
      }
      if (ended_) {
        MUSTER_RETURN_IF_ERROR(status_);
        return Outcome::kEnd;
      }
      if (is_pulling_) {
        changed_.wait(lock);
      } else if (window_.size() < options_.window) {
        Pull(lock);
      } else {
        WaitForOthers(lock);
      }
    }
  }

 private:
  // The caller's thread reads the next group, for all.
  void Pull(std::unique_lock<std::mutex>& lock) {
    is_pulling_ = true;
    std::shared_ptr<InputGroup> group = TakeSpare();
    lock.unlock();
    const absl::StatusOr<bool> more = input_->NextGroup(group.get());
    lock.lock();
    is_pulling_ = false;
    if (more.ok() && *more) {
      window_.push_back(std::move(group));
    } else {
      ended_ = true;
      status_ = more.status();
    }
    changed_.notify_all();
  }

  // The window is full: somebody has not read its first group, or may still begin.
  void WaitForOthers(std::unique_lock<std::mutex>& lock) {
    const uint64_t before = first_;
    const bool lags = Slowest() == first_;
    const auto deadline = lags ? SteadyClock::now() + options_.patience : closes_;
    changed_.wait_until(lock, deadline, [&] { return first_ != before; });
    if (first_ != before) return;
    closes_ = SteadyClock::time_point::min();
    if (lags) {
      *detached_ += std::erase_if(places_, [&](const auto& each) { return each.second == first_; });
    }
    Trim();
    changed_.notify_all();
  }

  uint64_t Slowest() const {
    uint64_t slowest = first_ + window_.size();
    for (const auto& [reader, place] : places_) slowest = std::min(slowest, place);
    return slowest;
  }

  // Drops the groups that all have read, unless another training may still begin with them.
  void Trim() {
    const bool is_open = joined_ < options_.readers && SteadyClock::now() < closes_;
    if (first_ == 0 && is_open) return;
    for (const uint64_t slowest = Slowest(); first_ < slowest; ++first_) {
      spare_.push_back(std::move(window_.front()));
      window_.pop_front();
    }
  }

  // A group that no reader uses any more, for its memory; or a new one.
  std::shared_ptr<InputGroup> TakeSpare() {
    const auto found =
        std::ranges::find_if(spare_, [](const auto& group) { return group.use_count() == 1; });
    if (found == spare_.end()) return std::make_shared<InputGroup>();
    std::shared_ptr<InputGroup> group = std::move(*found);
    spare_.erase(found);
    return group;
  }

  const Options options_;
  const Key key_;
  const std::unique_ptr<Input> input_;  // used by whoever has set is_pulling_
  const std::shared_ptr<std::atomic<size_t>> detached_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  SteadyClock::time_point closes_;  // to trainings that begin, once the window is full
  std::map<Reader*, uint64_t> places_;
  std::deque<std::shared_ptr<InputGroup>> window_;
  std::vector<std::shared_ptr<InputGroup>> spare_;
  uint64_t first_ = 0;  // the number of window_.front()
  size_t joined_ = 0;
  bool is_pulling_ = false, ended_ = false;
  absl::Status status_;
};

// One training's view of a feed.
class SharedFeeds::Reader : public BatchSource {
 public:
  Reader(io::FileSystem& files, const model::Model& model, InputSpec spec)
      : files_(files), model_(model), spec_(std::move(spec)) {
    spec_.feeds.reset();
  }
  ~Reader() override {
    if (feed_ != nullptr) feed_->Leave(this);
  }

  bool Join(std::shared_ptr<Feed> feed) {
    if (!feed->Join(this)) return false;
    feed_ = std::move(feed);
    return true;
  }

  absl::StatusOr<const InputBatch*> Next() override {
    if (alone_ != nullptr) return alone_->Next();
    if (group_ == nullptr || next_ == group_->count) {
      if (group_ != nullptr && group_->count > 0) {
        position_ = group_->batches[group_->count - 1].position;
      }
      MUSTER_ASSIGN_OR_RETURN(const Feed::Outcome outcome, feed_->Next(this, &group_));
      if (outcome == Feed::Outcome::kDetached) return ReadAlone();
      if (outcome == Feed::Outcome::kEnd) return nullptr;
      next_ = 0;
      std::ranges::copy(group_->warnings, std::back_inserter(warnings_));
      if (group_->count == 0) {
        end_ = group_;
        bad_rows_ = group_->bad_rows;
        return nullptr;
      }
    }
    const InputBatch& batch = group_->batches[next_++];
    bad_rows_ = batch.bad_rows;
    return &batch;
  }

  int64_t steps() const override { return feed_->input().steps(); }
  int64_t epochs() const override { return feed_->input().epochs(); }
  int dropped_at_end() const override {
    if (alone_ != nullptr) return alone_->dropped_at_end();
    return end_ == nullptr ? 0 : end_->dropped_at_end;
  }
  std::span<const data::BadRecord> bad_at_end() const override {
    if (alone_ != nullptr) return alone_->bad_at_end();
    if (end_ == nullptr) return {};
    return end_->bad_at_end;
  }
  uint64_t bad_records() const override {
    return alone_ != nullptr ? alone_->bad_records() : bad_rows_ + feed_->input().unread_records();
  }
  bool has_positions() const override { return true; }
  std::vector<std::string> ConsumeWarnings() override {
    if (alone_ != nullptr)
      std::ranges::move(alone_->ConsumeWarnings(), std::back_inserter(warnings_));
    return std::exchange(warnings_, {});
  }

 private:
  absl::StatusOr<const InputBatch*> ReadAlone() {
    MUSTER_ASSIGN_OR_RETURN(alone_,
                            Input::Open(files_, model_, spec_, position_ ? &*position_ : nullptr));
    return alone_->Next();
  }

  io::FileSystem& files_;
  const model::Model& model_;
  InputSpec spec_;
  std::shared_ptr<Feed> feed_;
  Group group_;
  size_t next_ = 0;
  std::optional<data::Position> position_;  // after the groups before group_
  Group end_;
  std::vector<std::string> warnings_;
  uint64_t bad_rows_ = 0;
  std::unique_ptr<Input> alone_;  // after the reader fell behind
};

SharedFeeds::SharedFeeds(const Options& options)
    : options_(options), detached_(std::make_shared<std::atomic<size_t>>(0)) {}
SharedFeeds::~SharedFeeds() = default;

absl::StatusOr<std::unique_ptr<BatchSource>> SharedFeeds::Open(io::FileSystem& files,
                                                               const model::Model& model,
                                                               const InputSpec& spec) {
  if (!CanBeShared(model, spec)) return Input::Open(files, model, spec);
  auto reader = std::make_unique<Reader>(files, model, spec);
  Key key(model, spec);
  // One training opens the data at a time, so that the next one finds its feed.
  const std::lock_guard lock(mutex_);
  std::erase_if(feeds_, [](const auto& feed) { return feed.expired(); });
  for (const auto& weak : feeds_) {
    std::shared_ptr<Feed> feed = weak.lock();
    if (feed == nullptr || feed->key() != key || !reader->Join(std::move(feed))) continue;
    ++counts_.joined;
    return reader;
  }
  InputSpec own = spec;
  own.feeds.reset();
  MUSTER_ASSIGN_OR_RETURN(auto input, Input::Open(files, model, own));
  const auto feed = std::make_shared<Feed>(options_, std::move(key), std::move(input), detached_);
  feeds_.push_back(feed);
  ++counts_.feeds;
  reader->Join(feed);
  return reader;
}

SharedFeeds::Counts SharedFeeds::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.detached = *detached_;
  return counts;
}

}  // namespace muster::train
