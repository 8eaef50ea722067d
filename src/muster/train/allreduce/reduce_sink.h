// ReduceSink: sums the gradients of one step over all replicas and keeps the sums until all are
// complete. Sums of dense gradients may begin during the backward pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/collective/group.h"
#include "muster/collective/reduce_rows.h"
#include "muster/collective/stream_sum.h"
#include "muster/collective/sum_rows.h"
#include "muster/engine/engine.h"

namespace muster::train {

// Replicas run the same model, so that their engines give the same variables in the same order:
// messages need no variable names. One owner thread.
class ReduceSink : public engine::GradientSink {
 public:
  // The engine's variables and Engine::metric_sizes; both must outlive the sink.
  explicit ReduceSink(std::span<const engine::VariableSpec> specs,
                      std::span<const size_t> metric_sizes = {});

  // Call before each Engine::Step. `next` gets the sums; from here on it must answer WantsSquares.
  // `share`: this replica's part of all replicas' rows, by which its moving statistics are
  // weighted. `early`: sums may begin during the step, in which the engine must then not use the
  // group; each replica may choose, the resulting bytes are the same.
  void Begin(collective::Group& group, engine::GradientSink& next, double share, bool early);
  void Dense(int variable, std::span<const float> gradient) override;
  void Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) override;
  bool WantsSquares(int variable) const override { return next_->WantsSquares(variable); }
  bool WantsEntries(int variable) const override { return next_->WantsEntries(variable); }
  void Statistic(int variable, std::span<const float> value) override;

  // Call after each Engine::Step. Sums gradients, statistics and *result over the group (entries
  // are concatenated by rank instead). Also exchanges notes: *notes gets the `note` of each
  // replica, by rank.
  absl::Status Reduce(engine::StepResult* result, std::string_view note,
                      std::vector<std::string>* notes);
  // Call after Reduce, unless the sums are not used: gives them to `next` in the order in which the
  // engine's gradients arrived. If the sum of the losses is not finite, `next` gets nothing.
  void Give();
  // Call instead of Reduce after a step that failed. Afterwards the group may be used again, to
  // report the failure to the other replicas.
  void Abandon() { sum_.Abandon(); }

 private:
  enum class Kind { kDense, kRows, kStatistic };
  struct Entry {
    Kind kind = Kind::kDense;
    int variable = 0;
    size_t begin = 0, size = 0;  // in values_
  };

  // Floats in one row of the table's gradient.
  int64_t GradientCols(int variable) const;
  // The most rows of the table's gradient that one rank can have.
  uint64_t MaxRows(int variable) const;
  collective::RowList JoinedEntries(const std::vector<collective::RowList>& lists);
  void Add(Kind kind, int variable, size_t size);
  uint64_t MaxBytes() const;
  // Sends this rank's message to all, and receives theirs.
  absl::Status Gather(std::string_view note, std::vector<std::string>* notes);
  absl::Status KeepOwnedRows();
  absl::Status SplitNote(int rank, std::string* note);
  void SumValues();
  absl::Status ParseLists(int rank);
  void WriteMetrics(const engine::StepResult& result, float* to) const;
  void ReadMetrics(const float* from, engine::StepResult* result) const;

  const std::span<const engine::VariableSpec> specs_;
  const std::span<const size_t> metric_sizes_;
  collective::Group* group_ = nullptr;
  engine::GradientSink* next_ = nullptr;
  double share_ = 1;
  std::vector<Entry> entries_;
  // Room for all dense gradients and statistics, then the losses, then the states of the metrics.
  std::vector<float> values_;
  size_t size_ = 0;  // gradients and statistics that this step has filled
  collective::StreamSum sum_;
  const bool has_tables_;
  bool together_ = false;  // values_ travel in the message with the rows
  // This rank's message: values_ if they travel in it, the rows of each table, the note, and the
  // note's size.
  std::vector<std::byte> mine_;
  std::vector<std::vector<std::byte>> all_;          // the message of each rank
  std::vector<std::span<const std::byte>> rows_of_;  // the rows in each of them
  collective::ReduceRows reduce_rows_;
  std::vector<std::byte> owned_;  // as mine_, with the sums of owned rows
  collective::SumRows rows_;      // used for one table after the other
  math::RowNumbers numbers_;
  std::vector<int32_t> entry_rows_;
  std::vector<float> entry_values_;
  std::vector<std::vector<collective::RowList>> lists_;  // by entry (kRows), then by rank
};

}  // namespace muster::train
