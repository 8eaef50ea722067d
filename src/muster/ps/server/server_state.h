// ServerState: the state and the decisions of a parameter server, as a pure state machine: requests
// in, answers out, no threads, no sockets. Server (server.h) runs it.
//
// Each replica numbers its batches from 0. Each push carries its batch number and is applied once,
// however often it is sent. Server 0 is the lead: it knows the position of each replica in its
// data. A batch counts when the lead has its push, which is sent after those to all other servers.
//   Synchronous: a round has one batch of each replica. The lead tells all replicas how many rows
//   the batches have together; when it has all pushes, it sums them in the order of replicas and
//   applies the sum. The other servers keep their pushes until a replica begins the next round. A
//   replica that was lost in the middle of a round therefore finds all weights unchanged and
//   computes the same gradients again.
//   With backup replicas a synchronous step is done when the lead has the pushes of enough replicas
//   (PsOptions::aggregate): their mean is applied, and later pushes for the same step are dropped.
//   The lead's answer to a pull says which batches counted, and only then are the other servers
//   pulled from. A replica pushes to the lead for a step only after all servers have reached that
//   step, so that the other servers lag by at most one step.
//   If the sum is clipped by a norm, no server has all of the sum: the lead ends a round and
//   applies it later. The first replica that sends a request after the round, for the next round or
//   to save, asks the other servers for their sums of squares and sends these to the lead, which
//   tells all servers the factor by which the sum is scaled. Asynchronous: the lead applies each
//   push when it arrives. The other servers keep a replica's push until the replica, or the chief
//   when it saves, shows that it counts: the batch of a replica that was lost between its pushes to
//   two servers is in the weights of neither. The lead enforces the bound on staleness: it alone
//   knows which batches count, and every batch asks it first.
// A state has a generation: when a server is lost, the chief loads a checkpoint into all servers
// under a later number, and requests of an older generation are refused.
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
#include "muster/ps/server/key_sums.h"
#include "muster/ps/server/server_weights.h"
#include "muster/ps/wire/message.h"
#include "muster/ps/wire/ps_options.h"

namespace muster::ps {

struct ServerSpec {
  int server = 0, servers = 1;
  PsOptions training = {};
  double lease_seconds = 10;
  // Synchronous: how the sum is clipped by a norm. Clipping by value is in Variable::clip.
  optim::ClipSpec clip = {};
  // Settings that must be the same in all tasks (base/agreement.h). Those that this server does not
  // know are taken from the first replica.
  std::string agreement = {};
  std::string chief = "chief-0";  // the name of replica 0
  // Training ends if a replica that the others need is away for longer.
  double rendezvous_seconds = 300;
  // That share the rows of a large request. The weights do not depend on their number.
  int threads = 1;

  bool clips_by_norm() const { return training.synchronous && clip.by_norm(); }
};

// Errors: ABORTED, the caller must send Hello again (another generation, or another connection of
// its replica); CANCELLED, training is over; UNAVAILABLE, training has ended because a replica did
// not arrive; FAILED_PRECONDITION, the caller was replaced or is of another job; INVALID_ARGUMENT,
// an invalid message. One owner thread.
class ServerState {
 public:
  using Connection = uint64_t;

  // `variables` and `placement` must outlive the state.
  ServerState(ServerSpec spec, std::span<const Variable> variables, const Placement& placement);

  // Sets the time, in monotonic seconds, of the calls that follow.
  void SetTime(double now) { now_ = now; }
  // `incarnation` was proven by the handshake. Only the newest connection of a replica is valid.
  absl::StatusOr<State> OnHello(Connection from, int64_t incarnation, const Hello& hello);
  void OnClosed(Connection connection);

  // INVALID_ARGUMENT for another replica.
  absl::Status CheckChief(Connection from);
  absl::Status OnBegin(Connection from, const Begin& begin);
  absl::Status OnLoad(Connection from, const Slice& slice);
  absl::Status OnLoadKeys(Connection from, const KeySlice& slice);
  absl::Status OnReady(Connection from, const Ready& ready);

  // A request that may have to wait has two calls: On... makes its changes; Answer... gives the
  // answer, or returns false if other requests must arrive first.
  absl::StatusOr<bool> AnswerWait(Connection from, const Wait& wait, State* answer);
  absl::Status OnPull(Connection from, const Pull& pull);
  // `answer` points into `dense` and `rows`.
  absl::StatusOr<bool> AnswerPull(Connection from, const Pull& pull, std::vector<float>* dense,
                                  std::vector<float>* rows, Pulled* answer);
  // `bytes` is the message, which is kept until its push counts.
  absl::Status OnPush(Connection from, Bytes bytes);
  absl::StatusOr<bool> AnswerPush(Connection from, Pushed* answer);
  absl::Status OnHold(Connection from, const Hold& hold);
  absl::StatusOr<bool> AnswerHold(Connection from, const Hold& hold, Held* answer);
  absl::Status OnRelease(Connection from, const Begin& release);
  // The slice's values; valid until the next call.
  absl::StatusOr<std::span<const float>> OnFetch(Connection from, const Slice& slice);
  absl::StatusOr<tables::DynamicTableEntries> OnFetchKeys(Connection from, const KeySlice& slice);
  // A table that grows; valid until the next call.
  absl::StatusOr<const tables::DynamicTable*> OnReadKeys(Connection from, int64_t generation,
                                                         uint32_t variable);
  // For servers other than the lead. Returns the squares of a round that the lead has ended; empty
  // if the round is already applied here.
  absl::StatusOr<std::vector<double>> OnMeasure(Connection from, const Measure& measure);
  absl::Status OnSettle(Connection from, const Settle& settle);

  absl::Status OnFinish(Connection from, const Finish& finish);
  absl::Status OnBreak(Connection from, const Break& broken);
  absl::Status OnEnd(Connection from);
  // Training was stopped before its end: stopped() is an error from now on.
  absl::Status OnStopAll(Connection from);
  // A heartbeat may arrive on any connection of the replica's incarnation.
  absl::Status OnBeat(int64_t incarnation, const Beat& beat);

  // Checks which replicas are away, and for how long; must be called about every second. Returns
  // UNAVAILABLE, and so do all calls from then on, if a replica that the others need did not arrive
  // in time.
  absl::Status OnTick();
  // The replicas that the others need and that were away at the last OnTick and still are:
  // "chief-0, worker-1"; "": none.
  std::string Awaited() const;

  // This server was told to end. The chief learns this from its next pull or wait and saves the
  // state; after the chief's release this server has no state any more.
  void OnTerminate() { leaving_ = true; }
  // After OnTerminate. may_go(): whether there is no state here that must be saved. is_saved():
  // whether the chief is saving it.
  bool may_go() const { return leaving_ && phase_ != Phase::kReady; }
  bool is_saved() const { return leaving_ && held_; }

  bool over() const { return phase_ == Phase::kOver; }
  const absl::Status& stopped() const { return stopped_; }
  bool has_connections() const { return !connections_.empty(); }

 private:
  struct Peer {
    size_t replica = 0;
    std::optional<int64_t> pushed = {};  // the sequence of its last push
    double waits_for_all = -1;           // since when it waits for all others; < 0: it does not
  };
  struct Proposal {
    uint32_t rows = 0, stop = 0;
  };
  struct Staged {
    Bytes bytes;  // `push` points into it
    Push push;
  };

  bool lead() const { return spec_.server == 0; }
  std::string GetName(size_t replica) const;
  bool IsNeeded(size_t replica) const;
  bool LacksReplicas() const;
  double GetAllAwaitedSince() const;
  static std::string MakeAgreement(const Hello& hello);
  absl::Status CheckHello(int64_t incarnation, const Hello& hello) const;
  // The replica's name and, if it is away because it was refused, the reason.
  std::string DescribeAbsent(size_t replica) const;
  State MakeState(size_t replica) const;
  absl::StatusOr<Peer*> FindPeer(Connection from);
  absl::StatusOr<Peer*> FindCurrentPeer(Connection from, int64_t generation);
  absl::Status CheckLoading(Connection from, int64_t generation);
  Counts GetCounts() const;
  void Count(const Push& push, bool finite);
  void UpdateWork(int64_t work);
  absl::Status UnexpectedBatch(int64_t sequence) const;
  absl::Status Commit(int64_t sequence, int64_t step, const Word& word);
  bool HasRound(int64_t sequence) const;
  void FinishRound(double rows);
  void Settled(std::vector<float> scales);
  std::vector<float> GetScales(std::span<const double> squares) const;
  absl::Status CheckScales(const Word& word) const;
  bool MayBegin(size_t replica) const;
  std::string DescribeLeaving() const;
  void CommitOwn(size_t replica, int64_t sequence);
  absl::Status CommitAll(std::span<const int64_t> sequences);
  absl::Status PushAsynchronous(Peer& peer, Staged staged);
  void ApplyOwn(size_t replica, const Push& push);
  void EndRound();
  absl::Status PushForStep(size_t replica, Staged staged);
  bool AnswerPushForStep(const Peer& peer, Pushed* answer);
  void FinishBatch(size_t replica, const Push& push, bool trained);
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
  ServerWeights weights_;
  std::map<Connection, Peer> connections_;
  std::vector<Connection> owners_;     // by replica: its valid connection; 0: none
  std::vector<int64_t> incarnations_;  // by replica: the newest
  std::string agreement_, agreed_by_;
  Phase phase_ = Phase::kEmpty;
  std::string broken_ = "this parameter server has no state yet";
  int64_t generation_ = 0;
  int64_t step_ = 0;
  std::vector<std::string> positions_;  // by replica
  std::vector<int64_t> sequences_;      // by replica: how many batches count
  std::set<size_t> finished_;           // replicas whose data has ended
  // Counts of records, which the lead alone uses.
  Counts counts_;
  std::vector<int64_t> left_at_end_;  // by replica
  std::vector<int64_t> bad_records_;  // by replica, as last reported; kept when the state is lost
  int64_t loaded_trained_ = 0;        // counts_.trained when this state was loaded
  int64_t work_before_ = 0;           // the highest known Counts::work() of earlier states
  double now_ = 0;
  std::vector<double> heard_;  // by replica: when last heard from, or when this state was loaded
  std::vector<std::optional<double>> away_since_;  // by replica, as of OnTick; none: connected
  std::map<size_t, std::string> refused_;          // why replicas were refused that are still away
  std::optional<double> lacking_since_;  // with backup replicas: too few are connected for a step
  absl::Status failed_;                  // not OK: training has ended with this error
  std::set<Connection> in_flight_;       // asynchronous: have pulled, not pushed yet
  Connection held_by_ = 0;               // the chief's connection while it saves; 0: no hold
  bool leaving_ = false, held_ = false;  // told to end; the chief has begun to save since
  std::vector<std::optional<Staged>> staged_;  // by replica: the batch that does not count yet
  // Synchronous, for the present round.
  std::vector<std::optional<Proposal>> proposals_;
  std::optional<Proposal> decided_;
  Pushed last_;             // the answer to the pushes of the last round
  Word word_;               // on the lead: of step_
  bool unsettled_ = false;  // on the lead: the round that led to step_ is staged, not applied yet
  absl::Status stopped_;
  double rows_ = 0;  // Sum's argument for the last round
  // With backup replicas.
  std::vector<Pushed> answers_;  // by replica: to its last batch
  uint32_t stop_ = 0;            // the most urgent request to stop
  std::deque<std::vector<float>> weighted_;
  std::map<uint32_t, collective::SumRows> sums_;  // by variable
  math::RowNumbers numbers_;
  std::map<uint32_t, KeySums> key_sums_;
  std::vector<uint32_t> given_;
  std::vector<float> dense_sum_;
};

}  // namespace muster::ps
