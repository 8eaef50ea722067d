#include "muster/ps/server_state.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace muster::ps {

ServerState::ServerState(ServerSpec spec, std::span<const Variable> variables,
                         const Placement& placement)
    : spec_(std::move(spec)),
      variables_(variables),
      placement_(placement),
      shard_(variables, placement, spec_.server),
      owners_(static_cast<size_t>(spec_.replicas)),
      incarnations_(static_cast<size_t>(spec_.replicas)) {
  Reset();
}

void ServerState::Reset() {
  const auto replicas = static_cast<size_t>(spec_.replicas);
  positions_.assign(replicas, "");
  sequences_.assign(replicas, 0);
  wishes_.assign(replicas, std::nullopt);
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

absl::Status ServerState::CheckHello(int64_t incarnation, const Hello& hello) const {
  const auto say = [](uint32_t synchronous, uint32_t aggregate, uint32_t replicas, uint32_t servers,
                      uint32_t server, std::string_view agreement) {
    return StrCat(synchronous != 0 ? "ps-sync" : "ps-async", " of ",
                  aggregate > 0 ? StrCat(aggregate, " of ") : "", replicas, " replicas and ",
                  servers, " servers at ps-", server, ", ", agreement);
  };
  const std::string theirs = say(hello.synchronous, hello.aggregate, hello.replicas, hello.servers,
                                 hello.server, hello.agreement);
  const std::string ours =
      say(static_cast<uint32_t>(spec_.synchronous), static_cast<uint32_t>(spec_.aggregate),
          static_cast<uint32_t>(spec_.replicas), static_cast<uint32_t>(spec_.servers),
          static_cast<uint32_t>(spec_.server), spec_.agreement);
  if (hello.version != kVersion) {
    return absl::FailedPreconditionError(StrCat("replica ", hello.replica, " speaks version ",
                                                hello.version, " to parameter servers, ps-",
                                                spec_.server, " version ", kVersion));
  }
  if (theirs != ours || hello.replica >= owners_.size()) {
    return absl::FailedPreconditionError(
        StrCat("replica ", hello.replica, " has [", theirs, "], ps-", spec_.server, " has [", ours,
               "]: all tasks of a job must be started with the same flags and data"));
  }
  if (incarnation < incarnations_[hello.replica]) {
    return absl::FailedPreconditionError(
        StrCat("incarnation ", incarnation, " of replica ", hello.replica, " was replaced by ",
               incarnations_[hello.replica], ": it is fenced and must end"));
  }
  return absl::OkStatus();
}

absl::StatusOr<State> ServerState::OnHello(Connection from, int64_t incarnation,
                                           const Hello& hello) {
  MUSTER_RETURN_IF_ERROR(CheckHello(incarnation, hello));
  const size_t replica = hello.replica;
  incarnations_[replica] = incarnation;
  in_flight_.erase(owners_[replica]);
  EndHold(owners_[replica]);
  // Whoever greets gives the batch that does not count yet again, to all servers. Those that do not
  // lead keep what they have: it may count.
  if (lead() && spec_.has_backups() && !unsettled_) staged_[replica].reset();
  owners_[replica] = from;
  connections_[from] = {.replica = replica};
  heard_[replica] = now_;
  if (hello.generation != generation_) HearOfWork(hello.work);
  return StateFor(replica);
}

State ServerState::StateFor(size_t replica) const {
  return {.generation = generation_,
          .phase = phase_,
          .unfinished = static_cast<uint32_t>(owners_.size() - finished_.size()),
          .step = step_,
          .sequence = sequences_[replica],
          .position = positions_[replica],
          .counts = CountsNow()};
}

Counts ServerState::CountsNow() const {
  Counts counts = counts_;
  counts.left_at_end = std::accumulate(left_at_end_.begin(), left_at_end_.end(), int64_t{0});
  return counts;
}

// Of a state before this one: what is not in the weights any more is trained again. Whoever was at
// it may come at any time, and each knows of some of its last batches.
void ServerState::HearOfWork(int64_t work) {
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

absl::StatusOr<ServerState::Peer*> ServerState::Known(Connection from) {
  const auto found = connections_.find(from);
  if (found == connections_.end()) {
    return absl::InvalidArgumentError("a request before Hello");
  }
  if (owners_[found->second.replica] != from) {
    return absl::AbortedError(
        StrCat("replica ", found->second.replica, " has connected anew to ps-", spec_.server));
  }
  return &found->second;
}

absl::StatusOr<ServerState::Peer*> ServerState::Current(Connection from, int64_t generation) {
  MUSTER_ASSIGN_OR_RETURN(Peer* const peer, Known(from));
  if (over()) return absl::CancelledError("training is over");
  if (phase_ != Phase::kReady) return absl::AbortedError(broken_);
  if (generation == generation_) return peer;
  return absl::AbortedError(StrCat("ps-", spec_.server, " has the state of generation ",
                                   generation_, ", asked for was ", generation));
}

absl::Status ServerState::Chief(Connection from) {
  MUSTER_ASSIGN_OR_RETURN(const Peer* const peer, Known(from));
  if (peer->replica == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("replica ", peer->replica, " is not the chief"));
}

absl::Status ServerState::OnBegin(Connection from, const Begin& begin) {
  MUSTER_RETURN_IF_ERROR(Chief(from));
  if (over()) return absl::CancelledError("training is over");
  if (begin.generation <= generation_) {
    return absl::AbortedError(StrCat("generation ", begin.generation, " is not after ", generation_,
                                     " of ps-", spec_.server));
  }
  Reset();
  shard_.ClearKeys();
  generation_ = begin.generation;
  phase_ = Phase::kLoading;
  broken_ = StrCat("ps-", spec_.server, " is being given a checkpoint's state");
  return absl::OkStatus();
}

absl::Status ServerState::Loading(Connection from, int64_t generation) {
  MUSTER_RETURN_IF_ERROR(Chief(from));
  if (phase_ == Phase::kLoading && generation == generation_) return absl::OkStatus();
  return absl::AbortedError(StrCat("ps-", spec_.server, " is not loading generation ", generation));
}

absl::Status ServerState::OnLoad(Connection from, const Slice& slice) {
  MUSTER_RETURN_IF_ERROR(Loading(from, slice.generation));
  return shard_.Load(slice);
}

absl::Status ServerState::OnLoadKeys(Connection from, const KeySlice& slice) {
  MUSTER_RETURN_IF_ERROR(Loading(from, slice.generation));
  return shard_.LoadKeys(slice);
}

absl::Status ServerState::OnReady(Connection from, const Ready& ready) {
  MUSTER_RETURN_IF_ERROR(Loading(from, ready.generation));
  if (!ready.positions.empty() && ready.positions.size() != positions_.size()) {
    return absl::InvalidArgumentError(
        StrCat(ready.positions.size(), " positions of ", positions_.size(), " replicas"));
  }
  if (!ready.positions.empty()) positions_ = ready.positions;
  step_ = ready.step;
  counts_ = ready.counts;
  counts_.left_at_end = 0;
  loaded_trained_ = counts_.trained;
  heard_.assign(heard_.size(), now_);
  phase_ = Phase::kReady;
  HearOfWork(0);
  return absl::OkStatus();
}

absl::StatusOr<bool> ServerState::AnswerWait(Connection from, const Wait& wait, State* answer) {
  MUSTER_ASSIGN_OR_RETURN(const Peer* const peer, Known(from));
  *answer = StateFor(peer->replica);
  const bool there = phase_ == Phase::kReady && generation_ > wait.generation;
  const bool broken = generation_ != wait.generation || phase_ != Phase::kReady;
  const bool done = wait.for_all != 0 ? broken || answer->unfinished == 0 || stop_ != 0 : there;
  return over() || done;
}

absl::Status ServerState::Behind(int64_t sequence) const {
  return absl::AbortedError(
      StrCat("batch ", sequence, " is not the one that ps-", spec_.server, " waits for"));
}

absl::Status ServerState::OnPull(Connection from, const Pull& pull) {
  MUSTER_ASSIGN_OR_RETURN(Peer* const peer, Current(from, pull.generation));
  heard_[peer->replica] = now_;
  MUSTER_RETURN_IF_ERROR(shard_.CheckRows(pull.tables));
  if (spec_.has_backups()) {
    if (!lead()) return CommitCounted(pull.step, pull.word);
    stop_ = std::max(stop_, pull.stop);
  } else if (spec_.synchronous) {
    MUSTER_RETURN_IF_ERROR(Commit(pull.sequence, pull.step, pull.word));
  } else {
    for (size_t i = 0; i < pull.sequences.size() && i < sequences_.size(); ++i) {
      CommitOwn(i, pull.sequences[i]);
    }
    CommitOwn(peer->replica, pull.sequence);
  }
  if (pull.sequence != sequences_[peer->replica]) return Behind(pull.sequence);
  // What was decided stays: others act on it already.
  if (spec_.has_backups() || !spec_.synchronous || !lead() || decided_) return absl::OkStatus();
  wishes_[peer->replica] = {.rows = pull.rows, .stop = pull.stop};
  left_at_end_[peer->replica] = pull.left_at_end;
  Wish all;
  for (const auto& wish : wishes_) {
    if (!wish) return absl::OkStatus();
    all.rows += wish->rows;
    all.stop = std::max(all.stop, wish->stop);
  }
  decided_ = all;
  return absl::OkStatus();
}

absl::StatusOr<bool> ServerState::AnswerPull(Connection from, const Pull& pull,
                                             std::vector<float>* dense, std::vector<float>* rows,
                                             Pulled* answer) {
  MUSTER_RETURN_IF_ERROR(Current(from, pull.generation).status());
  if (unsettled_) {
    answer->step = step_;
    answer->word = word_;
    answer->settle = 1;
    return true;
  }
  if (spec_.has_backups()) {
    answer->stop = stop_;
  } else if (spec_.synchronous && lead()) {
    if (!decided_) return false;
    answer->rows = decided_->rows;
    answer->stop = decided_->stop;
  }
  if (!spec_.synchronous && lead()) {
    if (held_by_ != 0 || !MayBegin(connections_[from].replica)) return false;
    if (spec_.staleness >= 0) answer->sequences = sequences_;
    in_flight_.insert(from);
  }
  answer->step = step_;
  answer->counts = CountsNow();
  answer->word = word_;
  dense->clear();
  rows->clear();
  shard_.Read(pull.tables, dense, rows);
  answer->dense = *dense;
  answer->tables = *rows;
  return true;
}

absl::Status ServerState::OnPush(Connection from, Bytes bytes) {
  MUSTER_ASSIGN_OR_RETURN(Push push, Parse<Push>(bytes));
  MUSTER_ASSIGN_OR_RETURN(Peer* const peer, Current(from, push.generation));
  MUSTER_RETURN_IF_ERROR(shard_.Check({push.given, push.dense, push.tables}));
  peer->pushed = push.sequence;
  heard_[peer->replica] = now_;
  if (!spec_.synchronous) {
    return PushNow(*peer, {.bytes = std::move(bytes), .push = std::move(push)});
  }
  if (spec_.has_backups()) {
    return PushForStep(peer->replica, {.bytes = std::move(bytes), .push = std::move(push)});
  }
  if (unsettled_ || push.sequence != sequences_[peer->replica]) return Behind(push.sequence);
  // What `push` points to moves with the bytes, it does not change its place.
  staged_[peer->replica] = Staged{.bytes = std::move(bytes), .push = std::move(push)};
  EndRound();
  return absl::OkStatus();
}

absl::StatusOr<bool> ServerState::AnswerPush(Connection from, Pushed* answer) {
  MUSTER_ASSIGN_OR_RETURN(const Peer* const peer, Current(from, generation_));
  *answer = {.step = step_, .counts = CountsNow()};
  if (!spec_.synchronous || !lead()) return true;
  if (spec_.has_backups()) return AnswerPushForStep(*peer, answer);
  if (!peer->pushed || *peer->pushed >= sequences_[peer->replica]) return false;
  *answer = last_;
  answer->step = step_;
  answer->counts = CountsNow();
  return true;
}

absl::Status ServerState::OnHold(Connection from, const Hold& hold) {
  MUSTER_RETURN_IF_ERROR(Current(from, hold.generation).status());
  MUSTER_RETURN_IF_ERROR(Chief(from));
  if (spec_.has_backups()) {
    if (!lead()) return CommitCounted(hold.step, hold.word);
  } else if (spec_.synchronous && hold.step != step_) {
    return Commit(sequences_.front() + 1, hold.step, hold.word);
  }
  if (spec_.synchronous && !lead()) return absl::OkStatus();
  if (!lead()) return CommitAll(hold.sequences);
  held_by_ = from;
  return absl::OkStatus();
}

absl::StatusOr<bool> ServerState::AnswerHold(Connection from, const Hold& hold, Held* answer) {
  MUSTER_RETURN_IF_ERROR(Current(from, hold.generation).status());
  if (!in_flight_.empty()) return false;
  *answer = {.step = step_,
             .positions = positions_,
             .sequences = sequences_,
             .counts = CountsNow(),
             .word = word_,
             .settle = static_cast<uint32_t>(unsettled_)};
  return true;
}

absl::Status ServerState::OnRelease(Connection from, const Begin& release) {
  MUSTER_RETURN_IF_ERROR(Current(from, release.generation).status());
  EndHold(from);
  return absl::OkStatus();
}

void ServerState::EndHold(Connection by) {
  if (by == 0 || held_by_ != by) return;
  held_by_ = 0;
  EndRound();
}

absl::StatusOr<std::span<const float>> ServerState::OnFetch(Connection from, const Slice& slice) {
  MUSTER_RETURN_IF_ERROR(Current(from, slice.generation).status());
  return shard_.Fetch(slice);
}

absl::StatusOr<GrownEntries> ServerState::OnFetchKeys(Connection from, const KeySlice& slice) {
  MUSTER_RETURN_IF_ERROR(Current(from, slice.generation).status());
  return shard_.FetchKeys(slice);
}

absl::Status ServerState::OnFinish(Connection from, const Finish& finish) {
  MUSTER_ASSIGN_OR_RETURN(const Peer* const peer, Current(from, finish.generation));
  finished_.insert(peer->replica);
  left_at_end_[peer->replica] = finish.left_at_end;
  EndRound();  // fewer may be enough now
  return absl::OkStatus();
}

absl::Status ServerState::OnBreak(Connection from, const Break& broken) {
  MUSTER_RETURN_IF_ERROR(Known(from).status());
  if (phase_ == Phase::kReady && broken.generation == generation_) {
    phase_ = Phase::kEmpty;
    broken_ = broken.why;
  }
  return absl::OkStatus();
}

absl::Status ServerState::OnBeat(int64_t incarnation, const Beat& beat) {
  if (beat.replica >= heard_.size()) {
    return absl::InvalidArgumentError(StrCat("there is no replica ", beat.replica));
  }
  if (incarnation >= incarnations_[beat.replica]) heard_[beat.replica] = now_;
  return absl::OkStatus();
}

absl::Status ServerState::OnEnd(Connection from) {
  MUSTER_RETURN_IF_ERROR(Chief(from));
  phase_ = Phase::kOver;
  return absl::OkStatus();
}

}  // namespace muster::ps
