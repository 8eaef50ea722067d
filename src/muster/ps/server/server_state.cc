#include "muster/ps/server/server_state.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "muster/base/agreement.h"

namespace muster::ps {

ServerState::ServerState(ServerSpec spec, std::span<const Variable> variables,
                         const Placement& placement)
    : spec_(std::move(spec)),
      variables_(variables),
      placement_(placement),
      weights_(variables, placement, spec_.server, spec_.threads),
      owners_(static_cast<size_t>(spec_.training.replicas)),
      incarnations_(static_cast<size_t>(spec_.training.replicas)),
      agreement_(MakeAgreement({.replicas = static_cast<uint32_t>(spec_.training.replicas),
                                .server = static_cast<uint32_t>(spec_.server),
                                .servers = static_cast<uint32_t>(spec_.servers),
                                .synchronous = static_cast<uint32_t>(spec_.training.synchronous),
                                .aggregate = static_cast<uint32_t>(spec_.training.aggregate),
                                .agreement = spec_.agreement})),
      agreed_by_(StrCat("ps-", spec_.server)),
      bad_records_(static_cast<size_t>(spec_.training.replicas)),
      away_since_(static_cast<size_t>(spec_.training.replicas)) {
  Reset();
}

void ServerState::Reset() {
  const auto replicas = static_cast<size_t>(spec_.training.replicas);
  positions_.assign(replicas, "");
  sequences_.assign(replicas, 0);
  proposals_.assign(replicas, std::nullopt);
  decided_.reset();
  staged_.clear();
  staged_.resize(replicas);
  finished_.clear();
  work_before_ = std::max(work_before_, counts_.work());
  counts_ = {};
  left_at_end_.assign(replicas, 0);
  heard_.assign(replicas, now_);
  in_flight_.clear();
  held_by_ = 0;
  word_ = {};
  unsettled_ = false;
  answers_.assign(replicas, {});
  stop_ = 0;
}

std::string ServerState::GetName(size_t replica) const {
  return replica == 0 ? spec_.chief : StrCat("worker-", replica - 1);
}

std::string ServerState::MakeAgreement(const Hello& hello) {
  const std::string aggregated = hello.aggregate > 0 ? StrCat(hello.aggregate) : "all";
  return StrCat(PrintAgreement({{"strategy", hello.synchronous != 0 ? "ps-sync" : "ps-async"},
                                {"replicas", StrCat(hello.replicas)},
                                {"replicas to aggregate", aggregated},
                                {"parameter servers", StrCat(hello.servers)},
                                {"place among them", StrCat(hello.server)}}),
                "; ", hello.agreement);
}

absl::Status ServerState::CheckHello(int64_t incarnation, const Hello& hello) const {
  MUSTER_RETURN_IF_ERROR(failed_);
  const std::string name = GetName(hello.replica);
  if (hello.version != kVersion) {
    return absl::FailedPreconditionError(StrCat(name, " uses version ", hello.version,
                                                " of the parameter servers' protocol, ps-",
                                                spec_.server, " version ", kVersion));
  }
  const std::string difference =
      DescribeDifference({name, MakeAgreement(hello)}, {agreed_by_, agreement_});
  if (!difference.empty() || hello.replica >= owners_.size()) {
    return absl::FailedPreconditionError(StrCat(
        difference.empty() ? StrCat(name, " is not one of the ", owners_.size(), " replicas")
                           : difference,
        ": all tasks of a job must be started with the same cluster, model file, data, flags and "
        "version"));
  }
  if (incarnation < incarnations_[hello.replica]) {
    return absl::FailedPreconditionError(StrCat("incarnation ", incarnation, " of ", name,
                                                " was replaced by ", incarnations_[hello.replica],
                                                ": it is fenced and must end"));
  }
  return absl::OkStatus();
}

absl::StatusOr<State> ServerState::OnHello(Connection from, int64_t incarnation,
                                           const Hello& hello) {
  if (absl::Status refused = CheckHello(incarnation, hello); !refused.ok()) {
    const bool is_last =
        hello.replica < owners_.size() && incarnation >= incarnations_[hello.replica];
    if (is_last) refused_[hello.replica] = ToStd(refused.message());
    return refused;
  }
  refused_.erase(hello.replica);
  if (may_go() && !over()) return absl::AbortedError(DescribeLeaving());
  const size_t replica = hello.replica;
  // Settings that the server does not know itself, such as the data, come from the first replica.
  std::string known = CompleteAgreement(agreement_, MakeAgreement(hello));
  if (known != agreement_) agreed_by_ = GetName(replica);
  agreement_ = std::move(known);
  incarnations_[replica] = incarnation;
  in_flight_.erase(owners_[replica]);
  EndHold(owners_[replica]);
  // After its Hello a replica pushes its batch again, to all servers, if the batch does not count
  // yet. Servers other than the lead keep the staged batch, since it may count.
  if (lead() && spec_.training.has_backups() && !unsettled_) staged_[replica].reset();
  owners_[replica] = from;
  connections_[from] = {.replica = replica};
  heard_[replica] = now_;
  if (hello.generation != generation_) UpdateWork(hello.work);
  return MakeState(replica);
}

std::string ServerState::DescribeLeaving() const {
  return StrCat("ps-", spec_.server, " was told to end (by a signal)");
}

State ServerState::MakeState(size_t replica) const {
  return {.generation = generation_,
          .phase = phase_,
          .unfinished = static_cast<uint32_t>(owners_.size() - finished_.size()),
          .step = step_,
          .sequence = sequences_[replica],
          .position = positions_[replica],
          .counts = GetCounts(),
          .save = static_cast<uint32_t>(leaving_ && phase_ == Phase::kReady)};
}

Counts ServerState::GetCounts() const {
  Counts counts = counts_;
  counts.left_at_end = std::accumulate(left_at_end_.begin(), left_at_end_.end(), int64_t{0});
  counts.bad_records = std::accumulate(bad_records_.begin(), bad_records_.end(), int64_t{0});
  return counts;
}

// Called when a replica reports the work of an earlier state. Work that is not in the weights any
// more is done again and counts as repeated. Such replicas may connect at any time, and each knows
// only some of the last batches of that state.
void ServerState::UpdateWork(int64_t work) {
  work_before_ = std::max(work_before_, work);
  if (phase_ != Phase::kReady) return;
  counts_.repeated = std::max(counts_.repeated, work_before_ - loaded_trained_);
}

void ServerState::OnClosed(Connection connection) {
  connections_.erase(connection);
  in_flight_.erase(connection);
  EndHold(connection);
  for (Connection& owner : owners_) {
    if (owner == connection) owner = 0;
  }
}

absl::StatusOr<ServerState::Peer*> ServerState::FindPeer(Connection from) {
  MUSTER_RETURN_IF_ERROR(failed_);
  const auto found = connections_.find(from);
  if (found == connections_.end()) {
    return absl::InvalidArgumentError("a request came before Hello");
  }
  if (owners_[found->second.replica] != from) {
    return absl::AbortedError(
        StrCat("replica ", found->second.replica, " has a newer connection to ps-", spec_.server));
  }
  return &found->second;
}

absl::StatusOr<ServerState::Peer*> ServerState::FindCurrentPeer(Connection from,
                                                                int64_t generation) {
  MUSTER_ASSIGN_OR_RETURN(Peer* const peer, FindPeer(from));
  if (over()) return absl::CancelledError("training is over");
  if (phase_ != Phase::kReady) return absl::AbortedError(broken_);
  if (generation == generation_) return peer;
  return absl::AbortedError(StrCat("ps-", spec_.server, " has the state of generation ",
                                   generation_, ", not of generation ", generation));
}

absl::Status ServerState::CheckChief(Connection from) {
  MUSTER_ASSIGN_OR_RETURN(const Peer* const peer, FindPeer(from));
  if (peer->replica == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("replica ", peer->replica, " is not the chief"));
}

absl::StatusOr<bool> ServerState::AnswerWait(Connection from, const Wait& wait, State* answer) {
  MUSTER_ASSIGN_OR_RETURN(Peer* const peer, FindPeer(from));
  if (wait.for_all != 0 && peer->waits_for_all < 0) peer->waits_for_all = now_;
  *answer = MakeState(peer->replica);
  const bool there = phase_ == Phase::kReady && generation_ > wait.generation;
  const bool broken = generation_ != wait.generation || phase_ != Phase::kReady;
  const bool done = wait.for_all != 0 ? broken || answer->unfinished == 0 || stop_ != 0 ||
                                            (leaving_ && peer->replica == 0)
                                      : there;
  return over() || done;
}

absl::Status ServerState::UnexpectedBatch(int64_t sequence) const {
  return absl::AbortedError(
      StrCat("ps-", spec_.server, " does not expect batch ", sequence, " now"));
}

absl::Status ServerState::OnPull(Connection from, const Pull& pull) {
  MUSTER_ASSIGN_OR_RETURN(Peer* const peer, FindCurrentPeer(from, pull.generation));
  heard_[peer->replica] = now_;
  bad_records_[peer->replica] = pull.bad_records;
  peer->waits_for_all = -1;
  MUSTER_RETURN_IF_ERROR(weights_.CheckRows(pull.tables));
  if (spec_.training.has_backups()) {
    if (!lead()) return CommitCounted(pull.step, pull.word);
    stop_ = std::max(stop_, pull.stop);
  } else if (spec_.training.synchronous) {
    MUSTER_RETURN_IF_ERROR(Commit(pull.sequence, pull.step, pull.word));
  } else {
    for (size_t i = 0; i < pull.sequences.size() && i < sequences_.size(); ++i) {
      CommitOwn(i, pull.sequences[i]);
    }
    CommitOwn(peer->replica, pull.sequence);
  }
  if (pull.sequence != sequences_[peer->replica]) return UnexpectedBatch(pull.sequence);
  // A decision is final: other replicas may already have acted on it.
  if (spec_.training.has_backups() || !spec_.training.synchronous || !lead() || decided_)
    return absl::OkStatus();
  proposals_[peer->replica] = {.rows = pull.rows, .stop = pull.stop};
  left_at_end_[peer->replica] = pull.left_at_end;
  Proposal all;
  for (const auto& proposal : proposals_) {
    if (!proposal) return absl::OkStatus();
    all.rows += proposal->rows;
    all.stop = std::max(all.stop, proposal->stop);
  }
  decided_ = all;
  return absl::OkStatus();
}

absl::StatusOr<bool> ServerState::AnswerPull(Connection from, const Pull& pull,
                                             std::vector<float>* dense, std::vector<float>* rows,
                                             Pulled* answer) {
  MUSTER_RETURN_IF_ERROR(FindCurrentPeer(from, pull.generation).status());
  if (unsettled_) {
    answer->step = step_;
    answer->word = word_;
    answer->settle = 1;
    return true;
  }
  if (spec_.training.has_backups()) {
    answer->stop = stop_;
  } else if (spec_.training.synchronous && lead()) {
    if (!decided_) return false;
    answer->rows = decided_->rows;
    answer->stop = decided_->stop;
  }
  if (!spec_.training.synchronous && lead()) {
    if (held_by_ != 0 || !MayBegin(connections_[from].replica)) return false;
    if (spec_.training.staleness >= 0) answer->sequences = sequences_;
    in_flight_.insert(from);
  }
  answer->step = step_;
  answer->counts = GetCounts();
  answer->word = word_;
  answer->save = static_cast<uint32_t>(leaving_);
  weights_.Read(pull.tables, dense, rows);
  answer->dense = *dense;
  answer->tables = *rows;
  return true;
}

absl::Status ServerState::OnPush(Connection from, Bytes bytes) {
  MUSTER_ASSIGN_OR_RETURN(Push push, Parse<Push>(bytes));
  MUSTER_ASSIGN_OR_RETURN(Peer* const peer, FindCurrentPeer(from, push.generation));
  MUSTER_RETURN_IF_ERROR(weights_.Check({push.given, push.dense, push.tables}));
  peer->pushed = push.sequence;
  heard_[peer->replica] = now_;
  if (!spec_.training.synchronous) {
    return PushAsynchronous(*peer, {.bytes = std::move(bytes), .push = std::move(push)});
  }
  if (spec_.training.has_backups()) {
    return PushForStep(peer->replica, {.bytes = std::move(bytes), .push = std::move(push)});
  }
  if (unsettled_ || push.sequence != sequences_[peer->replica])
    return UnexpectedBatch(push.sequence);
  // `push` points into the heap memory of `bytes`, which stays in place when `bytes` is moved.
  staged_[peer->replica] = Staged{.bytes = std::move(bytes), .push = std::move(push)};
  EndRound();
  return absl::OkStatus();
}

absl::StatusOr<bool> ServerState::AnswerPush(Connection from, Pushed* answer) {
  MUSTER_ASSIGN_OR_RETURN(const Peer* const peer, FindCurrentPeer(from, generation_));
  *answer = {.step = step_, .counts = GetCounts()};
  if (!spec_.training.synchronous || !lead()) return true;
  if (spec_.training.has_backups()) return AnswerPushForStep(*peer, answer);
  if (!peer->pushed || *peer->pushed >= sequences_[peer->replica]) return false;
  *answer = last_;
  answer->step = step_;
  answer->counts = GetCounts();
  return true;
}

absl::Status ServerState::OnFinish(Connection from, const Finish& finish) {
  MUSTER_ASSIGN_OR_RETURN(const Peer* const peer, FindCurrentPeer(from, finish.generation));
  finished_.insert(peer->replica);
  left_at_end_[peer->replica] = finish.left_at_end;
  bad_records_[peer->replica] = finish.bad_records;
  EndRound();  // a step may now need fewer pushes
  return absl::OkStatus();
}

absl::Status ServerState::OnBreak(Connection from, const Break& broken) {
  MUSTER_RETURN_IF_ERROR(FindPeer(from).status());
  if (phase_ == Phase::kReady && broken.generation == generation_) {
    phase_ = Phase::kEmpty;
    broken_ = broken.why;
  }
  return absl::OkStatus();
}

absl::Status ServerState::OnBeat(int64_t incarnation, const Beat& beat) {
  if (beat.replica >= heard_.size()) {
    return absl::InvalidArgumentError(
        StrCat("a heartbeat of replica ", beat.replica, ", which does not exist"));
  }
  if (incarnation >= incarnations_[beat.replica]) heard_[beat.replica] = now_;
  return absl::OkStatus();
}

absl::Status ServerState::OnEnd(Connection from) {
  MUSTER_RETURN_IF_ERROR(CheckChief(from));
  phase_ = Phase::kOver;
  return absl::OkStatus();
}

absl::Status ServerState::OnStopAll(Connection from) {
  MUSTER_RETURN_IF_ERROR(CheckChief(from));
  stopped_ = absl::FailedPreconditionError(
      "the chief has stopped training before its end; the same command continues it");
  return absl::OkStatus();
}

}  // namespace muster::ps
