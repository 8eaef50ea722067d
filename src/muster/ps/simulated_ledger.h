// The computation of a simulated training: a batch adds one to its own rows of a table (the
// ledger), one row on each server, to its own keys of a table that grows, in the same way, and to a
// dense variable. The weights therefore show which batches are in them, and how often. With backup
// replicas a batch adds its share of a step; clipped gradients are scaled. Some batches have a loss
// that is not finite. For tests of this layer only.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/optim/optimizer.h"
#include "muster/ps/client/replica.h"
#include "muster/ps/simulated_network.h"

namespace muster::ps {

class SimulatedLedger : protected SimulatedNetwork {
 protected:
  static constexpr uint64_t kBatches = 6;  // the most batches of a replica

  SimulatedLedger(uint64_t seed, const Tamper& tamper) : SimulatedNetwork(seed, tamper) {
    spec_.training.replicas = static_cast<int>(1 + time_.Below(3));
    spec_.servers = static_cast<int>(1 + time_.Below(3));
    spec_.training.synchronous = time_.Below(2) == 0;
    if (spec_.training.synchronous && time_.Below(2) == 0) {
      spec_.training.aggregate = static_cast<int>(1 + time_.Below(replicas()));
      if (time_.Below(3) == 0) {
        spec_.clip = {.kind = optim::ClipSpec::Kind::kGlobalNorm, .limit = 0.5};
      }
    } else if (time_.Below(2) == 0 && !spec_.training.synchronous) {
      spec_.training.staleness = static_cast<int64_t>(time_.Below(3));
    }
    MakeVariables(/*squares=*/seed % 2 == 0);
  }
  size_t replicas() const { return static_cast<size_t>(spec_.training.replicas); }
  size_t servers() const { return static_cast<size_t>(spec_.servers); }

  // The row of the ledger that a batch has on a server.
  size_t GetRow(size_t replica, uint64_t batch, size_t server) const {
    return (replica * kBatches + batch) * servers() + server;
  }
  // How often a batch must be in a state: 0 times if its loss is not finite or, in a synchronous
  // training, if any loss of its round is not finite.
  float Wanted(size_t replica, uint64_t batch) const {
    if (!spec_.training.synchronous) return not_finite_.contains({replica, batch}) ? 0.0f : 1.0f;
    for (size_t r = 0; r < replicas(); ++r) {
      if (batch < batches_[r] && not_finite_.contains({r, batch})) return 0;
    }
    return Scale(batch);
  }
  // The factor by which clipping scales the round of all replicas' batches of this number: each
  // batch adds one to a row and a key on each server and to both floats of the dense variable.
  float Scale(uint64_t batch) const {
    if (!spec_.clips_by_norm()) return 1;
    double n = 0;
    for (const uint64_t batches : batches_) n += batch < batches ? 1 : 0;
    const double norm = std::sqrt(2 * n * static_cast<double>(servers()) + 2 * n * n);
    return static_cast<float>(spec_.clip.limit / norm);
  }
  // With backup replicas: whether all servers have the same batches of a replica, all of them
  // finite and before `next`.
  bool HasSame(const std::vector<float>& ledger, size_t replica, uint64_t next) const {
    for (uint64_t batch = 0; batch < kBatches; ++batch) {
      const float share = ledger[GetRow(replica, batch, 0)];
      if (share != 0 && (batch >= next || not_finite_.contains({replica, batch}))) return false;
      for (size_t k = 1; k < servers(); ++k) {
        if (ledger[GetRow(replica, batch, k)] != share) return false;
      }
    }
    return true;
  }
  // Whether the ledger has each batch of a replica before `next` once, and no other batch.
  bool HasExactly(const std::vector<float>& ledger, size_t replica, uint64_t next) const {
    if (spec_.training.has_backups()) return HasSame(ledger, replica, next);
    for (uint64_t batch = 0; batch < kBatches; ++batch) {
      const bool in = batch < next && batch < batches_[replica];
      for (size_t k = 0; k < servers(); ++k) {
        if (ledger[GetRow(replica, batch, k)] != (in ? Wanted(replica, batch) : 0.0f)) return false;
      }
    }
    return true;
  }
  // The image in the form of the ledger of rows; a key that is not in the image counts 0.
  std::vector<float> MakeLedger(const tables::DynamicTableImage& image) const {
    std::vector<float> ledger;
    for (const int64_t key : all_keys_) {
      const auto found = std::ranges::find(image.keys, key);
      const bool there = found != image.keys.end();
      ledger.push_back(there ? image.weights[static_cast<size_t>(found - image.keys.begin())] : 0);
    }
    return ledger;
  }
  static uint64_t GetBatch(const std::string& position) {
    uint64_t batch = 0;
    std::from_chars(position.data(), position.data() + position.size(), batch);
    return batch;
  }
  // Kills the server in one of several ways, or lets it sleep.
  void HarmServer(size_t k) {
    if (!servers_[k].alive || servers_[k].state->over()) return;
    switch (time_.Below(5)) {
      case 0:
        servers_[k].asleep_until = time_.now() + time_.Uniform(0.1, 20);
        break;
      case 1:
        TerminateServer(k);
        break;
      default:
        KillServer(k, /*silently=*/time_.Below(3) == 0);
    }
  }
  // Checks a state that is saved for `place`.
  void CheckState(const std::vector<float>& ledger, const std::vector<float>& dense,
                  const Place& place) {
    for (size_t r = 0; r < replicas(); ++r) {
      const uint64_t next = place.positions.empty() ? 0 : GetBatch(place.positions[r]);
      if (!HasExactly(ledger, r, next)) {
        Violated(StrCat("together: the saved state does not have exactly the batches of replica ",
                        r, " before ", next));
      }
    }
    const auto on_server = static_cast<size_t>(placement_->part(1, 0).elements() > 0 ? 0 : 1);
    float sum = 0, batches = 0;
    for (size_t row = on_server; row < ledger.size(); row += servers()) {
      sum += ledger[row];
      batches += ledger[row] != 0 ? 1.0f : 0.0f;
    }
    // Scaled values are rounded at each step.
    const float off = std::abs(dense[0] - sum);
    if (off > (spec_.clips_by_norm() ? 1e-4f : 0))
      Violated("together: a dense variable is of another moment");
    // The shares of each step sum to one.
    if (spec_.training.has_backups() && !spec_.clips_by_norm() &&
        sum != static_cast<float>(place.step)) {
      Violated(StrCat("together: the shares of ", place.step, " steps are ", sum));
    }
    CheckCounts(batches, place);
  }
  // Checks the counts: each batch has one record, and one record is left out before it.
  void CheckCounts(float trained, const Place& place) {
    int64_t read = 0;
    for (const std::string& position : place.positions) {
      read += 2 * static_cast<int64_t>(GetBatch(position));
    }
    const Counts& counts = place.counts;
    if (static_cast<float>(counts.trained) == trained && counts.trained + counts.dropped == read) {
      return;
    }
    Violated(StrCat("counts: ", counts.trained, " trained and ", counts.dropped, " dropped of ",
                    read, " records, in the weights are ", trained));
  }

  void CheckPulled(size_t replica, const std::vector<float>& ledger, uint64_t next) {
    for (size_t r = 0; r < replicas(); ++r) {
      if (!spec_.training.synchronous && r != replica) continue;
      if (HasExactly(ledger, r, r == replica || !spec_.training.has_backups() ? next : kBatches))
        continue;
      Violated(StrCat("state: replica ", replica, " pulled for batch ", next,
                      " weights without exactly the earlier batches of replica ", r));
    }
  }
  // Checks that the weights with which a counting gradient was computed are those of one step.
  void CheckStep(const std::vector<float>& ledger, int64_t step) {
    float sum = 0;
    for (size_t row = 0; row < ledger.size(); row += servers()) sum += ledger[row];
    if (spec_.clips_by_norm() || sum == static_cast<float>(step)) return;
    Violated(StrCat("state: the weights pulled for step ", step, " are of step ", sum));
  }
  // A server other than the lead that was started again may name the chief instead, which waits at
  // the lead for the lost replica and has not seen yet that the server was lost.
  void CheckFailure() {
    const std::string_view said = ToStd(failed_.message());
    const auto names = [&](size_t replica) {
      const std::string name = replica == 0 ? "chief-0" : StrCat("worker-", replica - 1);
      return said.find(StrCat(" s for ", name, ":")) != std::string_view::npos;
    };
    const bool is_lead = said.starts_with("ps-0");
    if (lost_for_good_ && (names(*lost_for_good_) || (!is_lead && names(0)))) return;
    Violated(StrCat("named: the training failed: ", said, "; lost for good: ",
                    lost_for_good_ ? StrCat("replica ", *lost_for_good_) : "nobody"));
  }
  void CheckEnd() {
    for (size_t r = 0; r < replicas(); ++r) {
      if (spec_.training.has_backups() && GetBatch(saved_.positions[r]) != batches_[r]) {
        Violated(StrCat("once: training ended before the last batch of replica ", r));
      }
      if (!HasExactly(saved_ledger_, r, batches_[r]) ||
          !HasExactly(MakeLedger(saved_dynamic_), r, batches_[r])) {
        Violated(StrCat("once: the final state does not have every batch of replica ", r, " once"));
      }
    }
  }

  std::vector<uint64_t> batches_;                     // by replica
  std::set<std::pair<size_t, uint64_t>> not_finite_;  // batches whose loss is not finite
  std::vector<int32_t> all_rows_;                     // of the ledger
  std::vector<int64_t> all_keys_;                     // of the table that grows, in the same order
  std::optional<size_t> lost_for_good_;               // a replica
  Place saved_;                                       // the newest checkpoint
  std::vector<float> saved_ledger_, saved_dense_;
  tables::DynamicTableImage saved_dynamic_;

 private:
  // In every other history rows of gradients have squares, although the optimizer needs none.
  void MakeVariables(bool squares) {
    optim::OptimizerSpec sgd;
    sgd.kind = "sgd";
    sgd.rule = optim::OptimizerSpec::Rule::kKeras;
    sgd.squares = squares;
    sgd.learning_rate = 1;
    optimizer_ = optim::NewOptimizer(sgd).value();
    variables_ = {{.name = "ledger",
                   .kind = Variable::Kind::kTable,
                   .rows = static_cast<int64_t>(replicas() * kBatches * servers()),
                   .cols = 1,
                   .optimizer = optimizer_.get()},
                  {.name = "dense", .rows = 1, .cols = 2, .optimizer = optimizer_.get()},
                  {.name = "grown",
                   .kind = Variable::Kind::kTable,
                   .cols = 1,
                   .optimizer = optimizer_.get(),
                   .growth = tables::Growth()}};
    placement_ = std::make_unique<Placement>(variables_, spec_.servers);
    servers_.resize(servers());
    for (size_t r = 0; r < replicas(); ++r) {
      batches_.push_back(time_.Below(kBatches + 1));
      for (uint64_t b = 0; b < kBatches; ++b) {
        if (time_.Below(12) == 0) not_finite_.insert({r, b});
      }
    }
    for (int32_t row = 0; std::cmp_less(row, variables_[0].rows); ++row) all_rows_.push_back(row);
    int64_t key = 0;
    for (const int32_t row : all_rows_) {
      while (placement_->GetServerOfKey(++key) != placement_->Locate(row).server) continue;
      all_keys_.push_back(key);
    }
  }

  std::unique_ptr<optim::Optimizer> optimizer_;
};

}  // namespace muster::ps
