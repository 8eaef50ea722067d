// SharedFeeds: trainings of one process that read the same data in the same order read and decode
// it once. Each gets every batch, in the order and with the positions that it would get alone.
//
// A feed keeps a window of batches. A training that falls behind the window reads alone from its
// position on, and one that begins when the window has left the beginning begins a feed of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "muster/base/status.h"
#include "muster/train/input/input.h"

namespace muster::train {

// Thread-safe.
class SharedFeeds {
 public:
  struct Options {
    size_t readers = 1;  // trainings at a time: a feed that has so many waits for no more
    size_t window = 16;  // groups of batches (InputGroup) that a feed keeps
    // How long the fastest training waits for others: to begin, and to follow.
    std::chrono::milliseconds begin_patience = std::chrono::seconds(1);
    std::chrono::milliseconds patience = std::chrono::seconds(5);
  };
  explicit SharedFeeds(const Options& options);
  ~SharedFeeds();

  // As Input::Open from the beginning of the data, with the same result. Data that is a stream, an
  // exported model, and rows with keys are read alone. `files` must outlive the source.
  absl::StatusOr<std::unique_ptr<BatchSource>> Open(io::FileSystem& files,
                                                    const model::Model& model,
                                                    const InputSpec& spec);

  // Of all feeds so far.
  struct Counts {
    size_t feeds = 0;     // that were begun
    size_t joined = 0;    // sources that joined a feed of another one
    size_t detached = 0;  // sources that fell behind
  };
  Counts counts() const;

 private:
  struct Key;
  class Feed;
  class Reader;

  const Options options_;
  const std::shared_ptr<std::atomic<size_t>> detached_;
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<Feed>> feeds_;
  Counts counts_;
};

}  // namespace muster::train
