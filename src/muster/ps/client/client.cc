#include <algorithm>
#include <cstring>
#include <utility>

#include "muster/ps/client/client_ask.h"

namespace muster::ps {
absl::StatusOr<std::unique_ptr<Client>> Client::Create(ClientSpec spec, const net::Token& key,
                                                       std::span<const Variable> variables) {
  if (spec.servers.empty()) return absl::InvalidArgumentError("there are no parameter servers");
  const auto servers = static_cast<int>(spec.servers.size());
  const ServerConnectionSpec connections = {.self = spec.self,
                                            .key = key,
                                            .servers = spec.servers,
                                            .protection = spec.protection,
                                            .rendezvous_seconds = spec.rendezvous_seconds,
                                            .stall_seconds = spec.stall_seconds,
                                            .stop = spec.stop,
                                            .note = spec.note,
                                            .has_ended = spec.has_ended};
  std::unique_ptr<HeartbeatSender> heartbeat;
  if (spec.training.staleness >= 0) {
    MUSTER_ASSIGN_OR_RETURN(heartbeat, HeartbeatSender::Start(connections, spec.replica));
  }
  MUSTER_ASSIGN_OR_RETURN(ServerDialer dial, MakeServerDialer(connections));
  auto client = std::make_unique<Client>(std::move(spec), servers, std::move(dial), variables);
  client->heartbeat_ = std::move(heartbeat);
  return client;
}

// Returns the answer. Keep-alives that precede it name the replicas that it waits for.
absl::StatusOr<net::transport::Message> Client::ReceiveAnswer(size_t server) {
  while (true) {
    auto message = connections_[server]->Receive();
    if (!message.ok()) return Lost(server, message.status());
    if (message->type != kAlive) {
      if (message->type != kRefused) noted_waiting_.clear();
      return message;
    }
    if (in_batch_ && leaving()) return absl::CancelledError("this task was told to end");
    auto alive = Parse<Refused>(message->bytes());
    if (!alive.ok()) return Lost(server, alive.status());
    if (alive->text == noted_waiting_) continue;
    noted_waiting_ = std::move(alive->text);
    if (!noted_waiting_.empty() && spec_.note) spec_.note(StrCat("waiting for ", noted_waiting_));
  }
}

absl::StatusOr<State> Client::Greet(size_t server, int64_t generation, int64_t work) {
  MUSTER_ASSIGN_OR_RETURN(connections_[server], dial_(server));
  return Ask<State>(server, kHello,
                    Hello{.replica = static_cast<uint32_t>(spec_.replica),
                          .replicas = static_cast<uint32_t>(spec_.training.replicas),
                          .server = static_cast<uint32_t>(server),
                          .servers = static_cast<uint32_t>(connections_.size()),
                          .synchronous = static_cast<uint32_t>(spec_.training.synchronous),
                          .aggregate = static_cast<uint32_t>(spec_.training.aggregate),
                          .agreement = spec_.agreement,
                          .generation = generation,
                          .work = work});
}

absl::StatusOr<std::vector<State>> Client::Connect(int64_t generation, int64_t work) {
  for (auto& connection : connections_) connection.reset();
  closed_ = absl::OkStatus();
  std::vector<State> states;
  for (size_t server = 0; server < connections_.size(); ++server) {
    MUSTER_ASSIGN_OR_RETURN(states.emplace_back(), Greet(server, generation, work));
  }
  return states;
}

bool Client::connected() const {
  return std::all_of(connections_.begin(), connections_.end(),
                     [](const auto& connection) { return connection != nullptr; });
}

template <class T>
absl::StatusOr<T> Client::EndBatch(absl::StatusOr<T> result) {
  in_batch_ = false;
  if (absl::IsCancelled(result.status())) {
    for (auto& connection : connections_) connection.reset();
  }
  return result;
}

absl::StatusOr<State> Client::WaitForState(int64_t generation) {
  while (true) {
    auto state = Ask<State>(0, kWait, Wait{.generation = generation});
    if (!absl::IsDeadlineExceeded(state.status())) return state;
    if (stopped()) return absl::CancelledError("stopped while waiting for the chief");
  }
}

absl::StatusOr<State> Client::WaitForAll(int64_t generation) {
  while (true) {
    auto state = Ask<State>(0, kWait, Wait{.generation = generation, .for_all = 1});
    if (absl::IsDeadlineExceeded(state.status())) {
      if (stopped()) return absl::CancelledError("stopped while waiting for the other replicas");
      // A server other than the lead may ask for a save.
      for (size_t server = 1; server < connections_.size(); ++server) {
        MUSTER_ASSIGN_OR_RETURN(State other,
                                Ask<State>(server, kWait, Wait{.generation = generation - 1}));
        if (other.save != 0 && other.generation == generation) return other;
      }
      continue;
    }
    MUSTER_RETURN_IF_ERROR(state.status());
    if (state->phase == Phase::kReady && state->generation == generation) return state;
    return absl::AbortedError("the parameter servers have lost their state");
  }
}

// Splits the rows of each table by server. Does nothing if there is only one server, which has all
// rows, in the order of the block.
void Client::Split(std::span<const Block> tables) {
  if (has_one_server()) return;
  for (Wire& wire : wires_) {
    wire.rows.resize(tables.size());
    wire.keys.resize(tables.size());
    wire.places.resize(tables.size());
    wire.values.resize(tables.size());
    for (auto& rows : wire.rows) rows.clear();
    for (auto& keys : wire.keys) keys.clear();
    for (auto& places : wire.places) places.clear();
  }
  for (size_t table = 0; table < tables.size(); ++table) {
    uint32_t place = 0;
    for (const int32_t row : tables[table].rows) {
      const RowPlace at = placement_.Locate(row);
      Wire& wire = wires_[static_cast<size_t>(at.server)];
      wire.rows[table].push_back(at.row);
      wire.places[table].push_back(place++);
    }
    for (const int64_t key : tables[table].keys) {
      Wire& wire = wires_[static_cast<size_t>(placement_.GetServerOfKey(key))];
      wire.keys[table].push_back(key);
      wire.places[table].push_back(place++);
    }
  }
}

std::vector<TableRows> Client::GetTables(const Wire& wire, std::span<const Block> tables) const {
  std::vector<TableRows> rows;
  for (size_t table = 0; table < tables.size(); ++table) {
    const Block& block = tables[table];
    TableRows& to = rows.emplace_back();
    to.variable = static_cast<uint32_t>(block.variable);
    if (has_one_server()) {
      to.rows = block.rows;
      to.keys.assign(block.keys.begin(), block.keys.end());
    } else {
      to.rows = wire.rows[table];
      to.keys = wire.keys[table];
    }
  }
  return rows;
}

size_t Client::RowsOn(size_t server, size_t table, const Block& block) const {
  return has_one_server() ? block.rows.size() + block.keys.size()
                          : wires_[server].places[table].size();
}

absl::StatusOr<Pulled> Client::PullBatch(Pull request, const PullInto& into) {
  in_batch_ = true;
  return EndBatch(TryPull(std::move(request), into));
}

absl::StatusOr<Pulled> Client::TryPull(Pull request, const PullInto& into) {
  Split(into.tables);
  Pulled leads;
  // If the other servers need the lead's answer, they are asked after the lead: with a bound on
  // staleness they must not give older weights than the lead; with backup replicas or clipping by
  // norm they must learn which batches count, and by how much the sum is scaled.
  const bool lead_first =
      spec_.training.staleness >= 0 || spec_.training.has_backups() || spec_.clips_by_norm;
  if (lead_first) {
    MUSTER_ASSIGN_OR_RETURN(leads, PullFromLead(request, into));
  }
  const size_t first = lead_first ? 1 : 0;
  uint32_t save = 0;
  for (size_t server = first; server < connections_.size(); ++server) {
    MUSTER_RETURN_IF_ERROR(AskPull(server, request, into));
  }
  for (size_t server = first; server < connections_.size(); ++server) {
    MUSTER_ASSIGN_OR_RETURN(const Pulled pulled, Receive<Pulled>(server));
    MUSTER_RETURN_IF_ERROR(CopyPulled(server, pulled, into));
    save |= pulled.save;
    if (server == 0) leads = pulled;
  }
  leads.save |= save;
  leads.dense = leads.tables = {};
  return leads;
}

absl::Status Client::AskPull(size_t server, Pull& request, const PullInto& into) {
  request.tables = GetTables(wires_[server], into.tables);
  return Send(server, kPull, request);
}

// Stores in `request` the parts of the lead's answer that the other servers need.
absl::StatusOr<Pulled> Client::PullFromLead(Pull& request, const PullInto& into) {
  while (true) {
    MUSTER_RETURN_IF_ERROR(AskPull(0, request, into));
    MUSTER_ASSIGN_OR_RETURN(Pulled leads, Receive<Pulled>(0));
    if (leads.settle == 0) {
      MUSTER_RETURN_IF_ERROR(CopyPulled(0, leads, into));
      request.sequences = leads.sequences;
      request.word = leads.word;
      if (spec_.training.has_backups()) request.step = leads.step;
      return leads;
    }
    MUSTER_RETURN_IF_ERROR(MeasureAndSettle({.generation = request.generation,
                                             .sequence = request.sequence,
                                             .step = leads.step,
                                             .word = leads.word}));
  }
}

absl::Status Client::MeasureAndSettle(const Measure& measure) {
  std::vector<double> squares(variables_.size());
  for (size_t server = 1; server < connections_.size(); ++server) {
    MUSTER_ASSIGN_OR_RETURN(const Measured part, Ask<Measured>(server, kMeasure, measure));
    // Another replica has already settled this round.
    if (part.squares.empty()) return absl::OkStatus();
    if (part.squares.size() != squares.size()) {
      return Lost(server, absl::DataLossError("sent squares for another number of variables"));
    }
    for (size_t i = 0; i < squares.size(); ++i) squares[i] += part.squares[i];
  }
  return Ask<Empty>(0, kSettle,
                    Settle{.generation = measure.generation,
                           .step = measure.step,
                           .squares = std::move(squares)})
      .status();
}

absl::Status Client::CopyPulled(size_t server, const Pulled& pulled, const PullInto& into) {
  const Wire& wire = wires_[server];
  size_t floats = 0;
  for (size_t table = 0; table < into.tables.size(); ++table) {
    const auto variable = static_cast<size_t>(into.tables[table].variable);
    floats +=
        RowsOn(server, table, into.tables[table]) * static_cast<size_t>(variables_[variable].cols);
  }
  const auto dense = static_cast<size_t>(placement_.dense_floats(static_cast<int>(server)));
  if (pulled.dense.size() != dense || pulled.tables.size() != floats) {
    return Lost(server,
                absl::DataLossError(StrCat("sent ", pulled.dense.size(), " dense floats and ",
                                           pulled.tables.size(), " floats of tables instead of ",
                                           dense, " and ", floats)));
  }
  const float* from = pulled.dense.data();
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i].is_table()) continue;
    const int variable = static_cast<int>(i);
    const auto n =
        static_cast<size_t>(placement_.part(variable, static_cast<int>(server)).elements());
    if (n > 0) placement_.Paste(variable, static_cast<int>(server), {from, n}, 0, into.dense[i]);
    from += n;
  }
  from = pulled.tables.data();
  for (size_t table = 0; table < into.tables.size(); ++table) {
    const auto cols =
        static_cast<size_t>(variables_[static_cast<size_t>(into.tables[table].variable)].cols);
    if (has_one_server()) {
      const size_t n = RowsOn(server, table, into.tables[table]) * cols;
      std::copy_n(from, n, into.blocks[table]);
      from += n;
      continue;
    }
    for (const uint32_t place : wire.places[table]) {
      std::memcpy(into.blocks[table] + place * cols, from, cols * sizeof(float));
      from += cols;
    }
  }
  return absl::OkStatus();
}

void Client::CutGradients(size_t server, const Gradients& gradients) {
  Wire& wire = wires_[server];
  wire.dense.resize(static_cast<size_t>(placement_.dense_floats(static_cast<int>(server))));
  given_.assign(variables_.size(), 0);
  size_t at = 0;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i].is_table()) continue;
    const auto n = static_cast<size_t>(
        placement_.part(static_cast<int>(i), static_cast<int>(server)).elements());
    const std::span<float> part = std::span(wire.dense).subspan(at, n);
    at += n;
    given_[i] = static_cast<uint32_t>(!gradients.dense[i].empty());
    if (given_[i] == 0) {
      std::fill(part.begin(), part.end(), 0.0f);
    } else if (n > 0) {
      placement_.Cut(static_cast<int>(i), static_cast<int>(server), gradients.dense[i].data(), 0,
                     part);
    }
  }
  for (size_t table = 0; table < gradients.tables.size() && !has_one_server(); ++table) {
    const auto variable = static_cast<size_t>(gradients.tables[table].variable);
    const auto cols = static_cast<size_t>(variables_[variable].gradient_cols());
    std::vector<float>& values = wire.values[table];
    values.resize(wire.places[table].size() * cols);
    float* to = values.data();
    for (const uint32_t place : wire.places[table]) {
      std::memcpy(to, gradients.values[table].data() + place * cols, cols * sizeof(float));
      to += cols;
    }
  }
}

absl::Status Client::SendPush(size_t server, Push push, const Gradients& gradients) {
  Wire& wire = wires_[server];
  if (!gradients.dense.empty()) {
    CutGradients(server, gradients);
    push.given = given_;
    push.dense = wire.dense;
    push.tables = GetTables(wire, gradients.tables);
    for (size_t table = 0; table < push.tables.size(); ++table) {
      push.tables[table].values =
          has_one_server() ? gradients.values[table] : std::span<const float>(wire.values[table]);
    }
  }
  return Send(server, kPush, push);
}

absl::StatusOr<Pushed> Client::PushBatch(const Push& request, const Gradients& gradients) {
  in_batch_ = true;
  return EndBatch(TryPush(request, gradients));
}

absl::StatusOr<Pushed> Client::TryPush(const Push& request, const Gradients& gradients) {
  Split(gradients.tables);
  // The push to the lead makes the batch count: it is sent when the other servers have theirs.
  for (size_t server = 1; server < connections_.size(); ++server) {
    MUSTER_RETURN_IF_ERROR(SendPush(server, request, gradients));
  }
  for (size_t server = 1; server < connections_.size(); ++server) {
    MUSTER_RETURN_IF_ERROR(Receive<Pushed>(server).status());
  }
  MUSTER_RETURN_IF_ERROR(SendPush(0, request, gradients));
  return Receive<Pushed>(0);
}

absl::Status Client::Finish(const ps::Finish& finish) {
  return Ask<Empty>(0, kFinish, finish).status();
}

absl::Status Client::TellBroken(int64_t generation, const std::string& why) {
  return Ask<Empty>(0, kBreak, Break{.generation = generation, .why = why}).status();
}

absl::Status Client::End(bool stopped) {
  absl::Status first;
  // The lead is told last: a replica that learns of the end from the lead leaves.
  for (size_t server = connections_.size(); server-- > 0;) {
    first.Update(Ask<Empty>(server, stopped ? kStopAll : kEnd, Begin()).status());
  }
  return first;
}

}  // namespace muster::ps
