// Input: files to feature batches, read ahead on a thread of its own: source -> shuffle -> decode
// -> feature columns. Every batch carries the position behind it. A stream of batches
// (data/batch_stream_reader.h) takes the place of files: then batch size, order and the end are its
// writer's, and each Open reads it from its start.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/data/prefetch.h"
#include "muster/data/reader.h"
#include "muster/data/source.h"
#include "muster/features/transform.h"
#include "muster/model/model.h"
#include "muster/train/batch_source.h"

namespace muster::train {

struct InputSpec {
  data::SourceSpec source;
  data::ReaderSpec reader;
  bool with_labels = true;
  bool with_keys = false;  // the spec's key field, as text, a row
};

// A part of the data, and where reading it begins.
struct InputPart {
  int index = 0;
  data::Shard shard = {};
  std::optional<data::Position> start = {};
};

// One owner thread, which is not the one it reads on.
class Input : public BatchSource {
 public:
  // `model` must outlive it. `start`: go on from there (see data::BatchReader::Create).
  static absl::StatusOr<std::unique_ptr<Input>> Open(io::FileSystem& files,
                                                     const model::Model& model,
                                                     const InputSpec& spec,
                                                     const data::Position* start = nullptr);
  // Reads several parts, a batch of the one that is furthest behind after the other: which comes
  // next depends on their positions alone. spec.source.shard is not read.
  static absl::StatusOr<std::unique_ptr<Input>> OpenParts(io::FileSystem& files,
                                                          const model::Model& model,
                                                          const InputSpec& spec,
                                                          std::span<const InputPart> parts);
  ~Input() override;

  // The next batch, valid until the next call; nullptr at the end. Errors name file, place, column
  // and value; up to max_bad_records rows that do not fit are left out instead.
  absl::StatusOr<const InputBatch*> Next() override;

  int64_t steps() const override;
  int64_t epochs() const override { return sources_.empty() ? 0 : reader_spec_.epochs; }
  int64_t first_step() const override { return first_step_; }
  int dropped_at_end() const override { return dropped_at_end_; }
  // A stream is read from its start each time.
  bool has_positions() const override { return !sources_.empty(); }
  // Of one epoch; 0 for a stream, where nobody knows.
  uint64_t records() const;

 private:
  class Producer;
  // Several small batches travel together: a hand-over between threads costs microseconds.
  struct Group {
    std::vector<InputBatch> batches;
    size_t count = 0;
    int dropped_at_end = 0;
  };

  explicit Input(const data::ReaderSpec& reader_spec);
  void Start(std::unique_ptr<Producer> producer);
  int64_t BatchesOf(uint64_t records) const;  // of one epoch

  const data::ReaderSpec reader_spec_;
  std::vector<std::shared_ptr<const data::RecordSource>> sources_;  // none for a stream
  int64_t first_step_ = 0;
  int dropped_at_end_ = 0;
  std::unique_ptr<Producer> producer_;
  std::unique_ptr<data::Prefetch<Group>> prefetch_;  // uses producer_: ends before it
  Group group_;
  size_t next_ = 0;
};

// `input_fn` where there is one, else Input::Open.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenInput(io::FileSystem& files,
                                                       const model::Model& model,
                                                       const InputSpec& spec,
                                                       const InputFn& input_fn,
                                                       const data::Position* start = nullptr);

}  // namespace muster::train
