// ServerState: what a parameter server knows and decides, as a pure state machine: requests in,
// answers out, no threads, no sockets. Server (server.h) puts it at work.
//
// Replicas train in batches that each counts for itself from 0: a push says which batch it is of
// and is applied once, whoever sends it how often. Server 0 leads: it knows where each replica
// stands in its data, and a batch counts when it has its push, which comes after those to all other
// servers.
//   Synchronous: a round has one batch of each replica. The lead tells all how many rows they have
//   together, and when it has all pushes sums them in the order of replicas, and applies the sum.
//   The other servers keep theirs until somebody comes with the next round: a replica that was lost
//   in the midst of a round finds all weights as they were and gives the same gradients again.
//   With backup replicas a synchronous step is done when the lead has the pushes of so many: their
//   mean is applied, and those that come later for the same step are dropped. The lead's answer to
//   a pull says which counted, and the other servers are pulled from behind it: nobody gives the
//   lead a push for a step before all servers have come to it, so that they are one step behind at
//   most.
//   Where a sum is clipped by a norm, no server has all of it: the lead ends a round and applies it
//   later. Whoever comes first behind it, for the next round or to save, asks the others for their
//   sums of squares and tells them to the lead, which says to all what the sum is scaled by.
//   Asynchronous: the lead applies each push when it comes. The other servers keep a replica's push
//   until it shows, or the chief that saves, that it counts: who was lost between its pushes to two
//   servers is in the weights of neither. A bound on staleness is the lead's to keep: it alone
//   knows which batches count, and every batch asks it first.
// A state has a generation: when a server is lost the chief loads a checkpoint into all of them
// under the next number, and whatever is of an older one is refused.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/collective/sum_rows.h"
#include "muster/optim/clip.h"
#include "muster/ps/message.h"
#include "muster/ps/shard.h"

namespace muster::ps {

struct ServerSpec {
  int server = 0, servers = 1;
  int replicas = 1;
  bool synchronous = false;
  // Synchronous: how many replicas' gradients make a step; those beyond are backups. 0: all.
  int aggregate = 0;
  // Asynchronous: nobody begins a batch that is more than so many ahead of the slowest replica
  // whose data has not ended, as long as that one was heard within the lease; < 0: no bound.
  int64_t staleness = -1;
  double lease_seconds = 10;
  optim::ClipSpec clip = {};   // synchronous: of the sum, by a norm; values are each Variable's
  std::string agreement = {};  // what all tasks must have the same, in words

  bool clips_by_norm() const { return synchronous && clip.by_norm(); }
  bool has_backups() const { return HasBackups(synchronous, aggregate, replicas); }
};

// Errors: ABORTED, the caller must say Hello again (another generation, or another connection of
// its replica); CANCELLED, training is over; FAILED_PRECONDITION, it was replaced or is of another
// job; INVALID_ARGUMENT, a message that makes no sense. One owner thread.
class ServerState {
 public:
  using Connection = uint64_t;

  // `variables` and `placement` must outlive it.
  ServerState(ServerSpec spec, std::span<const Variable> variables, const Placement& placement);

  // The time, in monotonic seconds, of the calls that follow.
  void SetTime(double now) { now_ = now; }
  // `incarnation` is proven by the handshake. The newest connection of a replica is the one.
  absl::StatusOr<State> OnHello(Connection from, int64_t incarnation, const Hello& hello);
  void OnClosed(Connection connection);

  absl::Status OnBegin(Connection from, const Begin& begin);
  absl::Status OnLoad(Connection from, const Slice& slice);
  absl::Status OnLoadKeys(Connection from, const KeySlice& slice);
  absl::Status OnReady(Connection from, const Ready& ready);

  // A request that may have to wait has two parts: what it changes, and its answer; false: other
  // requests must come before there is one.
  absl::StatusOr<bool> AnswerWait(Connection from, const Wait& wait, State* answer);
  absl::Status OnPull(Connection from, const Pull& pull);
  // `dense` and `rows` take what the answer points to.
  absl::StatusOr<bool> AnswerPull(Connection from, const Pull& pull, std::vector<float>* dense,
                                  std::vector<float>* rows, Pulled* answer);
  // `bytes` is the message, kept for as long as its push counts for nothing yet.
  absl::Status OnPush(Connection from, Bytes bytes);
  absl::StatusOr<bool> AnswerPush(Connection from, Pushed* answer);
  absl::Status OnHold(Connection from, const Hold& hold);
  absl::StatusOr<bool> AnswerHold(Connection from, const Hold& hold, Held* answer);
  absl::Status OnRelease(Connection from, const Begin& release);
  // Valid until the next call.
  absl::StatusOr<std::span<const float>> OnFetch(Connection from, const Slice& slice);

  absl::StatusOr<GrownEntries> OnFetchKeys(Connection from, const KeySlice& slice);
  // Of servers that do not lead: the squares of a round that the lead has ended. None: it is
  // applied here.
  absl::StatusOr<std::vector<double>> OnMeasure(Connection from, const Measure& measure);
  absl::Status OnSettle(Connection from, const Settle& settle);

  absl::Status OnFinish(Connection from, const Finish& finish);
  absl::Status OnBreak(Connection from, const Break& broken);
  absl::Status OnEnd(Connection from);
  // From any connection of that incarnation.
  absl::Status OnBeat(int64_t incarnation, const Beat& beat);

  bool over() const { return phase_ == Phase::kOver; }
  bool has_connections() const { return !connections_.empty(); }

 private:
  struct Peer {
    size_t replica = 0;
    std::optional<int64_t> pushed = {};  // the batch whose answer it waits for
  };
  struct Wish {
    uint32_t rows = 0, stop = 0;
  };
  struct Staged {
    Bytes bytes;  // what the push points into
    Push push;
  };

  bool lead() const { return spec_.server == 0; }
  absl::Status CheckHello(int64_t incarnation, const Hello& hello) const;
  State StateFor(size_t replica) const;
  absl::StatusOr<Peer*> Known(Connection from);
  absl::StatusOr<Peer*> Current(Connection from, int64_t generation);
  absl::Status Chief(Connection from);
  absl::Status Loading(Connection from, int64_t generation);
  Counts CountsNow() const;
  void Count(const Push& push, bool finite);
  void HearOfWork(int64_t work);
  absl::Status Behind(int64_t sequence) const;
  absl::Status Commit(int64_t sequence, int64_t step, const Word& word);
  bool HasRound(int64_t sequence) const;
  void FinishRound(double rows);
  void Settled(std::vector<float> scales);
  std::vector<float> ScalesOf(std::span<const double> squares) const;
  absl::Status CheckScales(const Word& word) const;
  bool MayBegin(size_t replica) const;
  void CommitOwn(size_t replica, int64_t sequence);
  absl::Status CommitAll(std::span<const int64_t> sequences);
  absl::Status PushNow(Peer& peer, Staged staged);
  void ApplyOwn(size_t replica, const Push& push);
  void EndRound();
  absl::Status PushForStep(size_t replica, Staged staged);
  bool AnswerPushForStep(const Peer& peer, Pushed* answer);
  void Done(size_t replica, const Push& push, bool trained);
  bool HasEnough() const;
  void EndStep();
  absl::Status CommitCounted(int64_t step, const Word& word);
  absl::StatusOr<double> CountedRows(int64_t step, const Word& word);
  void EndHold(Connection by);
  Gradient Sum(double rows);
  std::span<const float> Weighted(std::span<const float> values, optim::RowLayout layout,
                                  float weight);
  void Reset();

  const ServerSpec spec_;
  const std::span<const Variable> variables_;
  const Placement& placement_;
  Shard shard_;
  std::map<Connection, Peer> connections_;
  std::vector<Connection> owners_;     // by replica; 0: nobody
  std::vector<int64_t> incarnations_;  // by replica: the newest
  Phase phase_ = Phase::kEmpty;
  std::string broken_ = "this parameter server has no state yet";
  int64_t generation_ = 0;
  int64_t step_ = 0;
  std::vector<std::string> positions_;  // by replica
  std::vector<int64_t> sequences_;      // by replica: batches that count
  std::set<size_t> finished_;
  // The lead's.
  Counts counts_;
  std::vector<int64_t> left_at_end_;  // by replica
  int64_t loaded_trained_ = 0;        // when this state was loaded
  int64_t work_before_ = 0;           // the most that is known of states before this one
  double now_ = 0;
  std::vector<double> heard_;       // by replica: when last, or when this state was loaded
  std::set<Connection> in_flight_;  // asynchronous: pulled, not pushed yet
  Connection held_by_ = 0;
  std::vector<std::optional<Staged>> staged_;  // by replica: the batch that does not count yet
  // Synchronous, of the present round.
  std::vector<std::optional<Wish>> wishes_;
  std::optional<Wish> decided_;
  Pushed last_;             // the answer to the pushes of the last round, or to the last push
  Word word_;               // the lead's, of step_
  bool unsettled_ = false;  // the lead's: staged_ has the round that led to step_, not applied
  double rows_ = 0;         // of it, as Sum takes them
  // With backup replicas.
  std::vector<Pushed> answers_;  // by replica: to its last batch
  uint32_t stop_ = 0;            // the most urgent wish
  std::deque<std::vector<float>> weighted_;
  std::map<uint32_t, collective::SumRows> sums_;  // by variable
  math::RowNumbers numbers_;
  std::map<uint32_t, KeySums> key_sums_;
  std::vector<uint32_t> given_;
  std::vector<float> dense_sum_;
};

}  // namespace muster::ps
