// ReduceSink: the gradients of one step, summed over all replicas, the dense ones from the backward
// pass on, and kept until all are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/collective/group.h"
#include "muster/collective/stream_sum.h"
#include "muster/collective/sum_rows.h"
#include "muster/engine/engine.h"

namespace muster::train {

// Replicas run the same model, so that their engines give the same variables in the same order:
// what is summed needs no names. One owner thread.
class ReduceSink : public engine::GradientSink {
 public:
  // `specs`: of the engine; must outlive this.
  explicit ReduceSink(std::span<const engine::VariableSpec> specs);

  // Before each Engine::Step. `next` gets the sums; it says now whether it wants squares. `share`:
  // this replica's part of the whole batch's rows, by which its moving statistics count. `early`:
  // sums may begin during the step, whose engine must not use the group then; each replica may
  // choose, the bytes are the same.
  void Begin(collective::Group& group, engine::GradientSink& next, double share, bool early);
  void Dense(int variable, std::span<const float> gradient) override;
  void Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) override;
  bool WantsSquares(int variable) const override { return next_->WantsSquares(variable); }
  bool WantsEntries(int variable) const override { return next_->WantsEntries(variable); }
  void Statistic(int variable, std::span<const float> value) override;

  // After each Engine::Step. Sums gradients, statistics and *result over the group (entries it puts
  // one behind the other, by rank), gives them to `next` in the order in which they came, and to
  // every replica what each one noted (*notes, by rank). When the sum of the losses is not finite,
  // nothing is given, on any replica. After an error nothing was given.
  absl::Status Reduce(engine::StepResult* result, std::string_view note,
                      std::vector<std::string>* notes);
  // Instead, after a step that failed: the group may then be told.
  void Abandon() { sum_.Abandon(); }

 private:
  enum class Kind { kDense, kRows, kStatistic };
  struct Entry {
    Kind kind = Kind::kDense;
    int variable = 0;
    size_t begin = 0, size = 0;  // of values_
  };

  // Floats of a row of its gradient.
  int64_t GradientCols(int variable) const;
  // How many rows of its gradient a rank can have.
  uint64_t MaxRows(int variable) const;
  collective::RowList JoinedEntries(const std::vector<collective::RowList>& lists);
  void Add(Kind kind, int variable, size_t size);
  uint64_t MaxBytes() const;
  absl::Status GatherRows(std::string_view note, std::vector<std::string>* notes);
  absl::Status TakeLists(int rank, std::span<const std::byte> bytes, std::string* note);
  void Give();

  const std::span<const engine::VariableSpec> specs_;
  collective::Group* group_ = nullptr;
  engine::GradientSink* next_ = nullptr;
  double share_ = 1;
  std::vector<Entry> entries_;
  std::vector<float> values_;  // all dense gradients and statistics that there can be, then losses
  size_t size_ = 0;            // of those that came
  collective::StreamSum sum_;
  std::vector<std::byte> mine_;              // rows, as they are sent
  std::vector<std::vector<std::byte>> all_;  // of each rank
  collective::SumRows rows_;                 // of one table after the other
  math::RowNumbers numbers_;
  std::vector<int32_t> entry_rows_;
  std::vector<float> entry_values_;
  std::vector<std::vector<collective::RowList>> lists_;  // of each kRows entry, by rank
};

}  // namespace muster::train
