#include <algorithm>
#include <cstring>
#include <utility>

#include "muster/ps/client_ask.h"

namespace muster::ps {
absl::StatusOr<std::unique_ptr<Client>> Client::Create(ClientSpec spec, const net::Token& key,
                                                       std::span<const Variable> variables) {
  if (spec.servers.empty()) return absl::InvalidArgumentError("there are no parameter servers");
  const auto servers = static_cast<int>(spec.servers.size());
  const SocketLineSpec lines = {.self = spec.self,
                                .key = key,
                                .servers = spec.servers,
                                .protection = spec.protection,
                                .rendezvous_seconds = spec.rendezvous_seconds,
                                .stop = spec.stop};
  std::unique_ptr<Beater> beater;
  if (spec.staleness >= 0) {
    MUSTER_ASSIGN_OR_RETURN(beater, Beater::Start(lines, spec.replica));
  }
  MUSTER_ASSIGN_OR_RETURN(DialLine dial, SocketLines(lines));
  auto client = std::make_unique<Client>(std::move(spec), servers, std::move(dial), variables);
  client->beater_ = std::move(beater);
  return client;
}

absl::StatusOr<State> Client::Greet(size_t server, int64_t generation, int64_t work) {
  MUSTER_ASSIGN_OR_RETURN(lines_[server], dial_(server));
  return Ask<State>(server, kHello,
                    Hello{.replica = static_cast<uint32_t>(spec_.replica),
                          .replicas = static_cast<uint32_t>(spec_.replicas),
                          .server = static_cast<uint32_t>(server),
                          .servers = static_cast<uint32_t>(lines_.size()),
                          .synchronous = static_cast<uint32_t>(spec_.synchronous),
                          .aggregate = static_cast<uint32_t>(spec_.aggregate),
                          .agreement = spec_.agreement,
                          .generation = generation,
                          .work = work});
}

absl::StatusOr<std::vector<State>> Client::Connect(int64_t generation, int64_t work) {
  for (auto& line : lines_) line.reset();
  std::vector<State> states;
  for (size_t server = 0; server < lines_.size(); ++server) {
    MUSTER_ASSIGN_OR_RETURN(states.emplace_back(), Greet(server, generation, work));
  }
  return states;
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
      if (stopped()) return absl::CancelledError("stopped while waiting for the others");
      continue;
    }
    MUSTER_RETURN_IF_ERROR(state.status());
    if (state->phase == Phase::kReady && state->generation == generation) return state;
    return absl::AbortedError("the parameter servers have lost their state");
  }
}

// The rows of each table by server. One server has all, in the order of the block.
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
      Wire& wire = wires_[static_cast<size_t>(placement_.ServerOf(row))];
      wire.rows[table].push_back(placement_.LocalRow(row));
      wire.places[table].push_back(place++);
    }
    for (const int64_t key : tables[table].keys) {
      Wire& wire = wires_[static_cast<size_t>(placement_.ServerOfKey(key))];
      wire.keys[table].push_back(key);
      wire.places[table].push_back(place++);
    }
  }
}

std::vector<TableRows> Client::TablesOf(const Wire& wire, std::span<const Block> tables) const {
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
  Split(into.tables);
  Pulled leads;
  // The others are asked when the lead has answered where they need its word: they must give no
  // older weights than those of a bound on staleness, or learn what counts, and scaled by how much.
  const bool lead_first = spec_.staleness >= 0 || spec_.has_backups() || spec_.clips_by_norm;
  if (lead_first) {
    MUSTER_ASSIGN_OR_RETURN(leads, PullFromLead(request, into));
  }
  const size_t first = lead_first ? 1 : 0;
  for (size_t server = first; server < lines_.size(); ++server) {
    MUSTER_RETURN_IF_ERROR(AskPull(server, request, into));
  }
  for (size_t server = first; server < lines_.size(); ++server) {
    MUSTER_ASSIGN_OR_RETURN(const Pulled pulled, Receive<Pulled>(server));
    MUSTER_RETURN_IF_ERROR(TakePulled(server, pulled, into));
    if (server == 0) leads = pulled;
  }
  leads.dense = leads.tables = {};
  return leads;
}

absl::Status Client::AskPull(size_t server, Pull& request, const PullInto& into) {
  request.tables = TablesOf(wires_[server], into.tables);
  return Send(server, kPull, request);
}

// `request` then says to the others what the lead has said.
absl::StatusOr<Pulled> Client::PullFromLead(Pull& request, const PullInto& into) {
  while (true) {
    MUSTER_RETURN_IF_ERROR(AskPull(0, request, into));
    MUSTER_ASSIGN_OR_RETURN(Pulled leads, Receive<Pulled>(0));
    if (leads.settle == 0) {
      MUSTER_RETURN_IF_ERROR(TakePulled(0, leads, into));
      request.sequences = leads.sequences;
      request.word = leads.word;
      if (spec_.has_backups()) request.step = leads.step;
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
  for (size_t server = 1; server < lines_.size(); ++server) {
    MUSTER_ASSIGN_OR_RETURN(const Measured part, Ask<Measured>(server, kMeasure, measure));
    // Another was faster.
    if (part.squares.empty()) return absl::OkStatus();
    if (part.squares.size() != squares.size()) {
      return Lost(server, absl::DataLossError("sent squares of another model"));
    }
    for (size_t i = 0; i < squares.size(); ++i) squares[i] += part.squares[i];
  }
  return Ask<Empty>(0, kSettle,
                    Settle{.generation = measure.generation,
                           .step = measure.step,
                           .squares = std::move(squares)})
      .status();
}

absl::Status Client::TakePulled(size_t server, const Pulled& pulled, const PullInto& into) {
  const Wire& wire = wires_[server];
  size_t floats = 0;
  for (size_t table = 0; table < into.tables.size(); ++table) {
    const auto variable = static_cast<size_t>(into.tables[table].variable);
    floats +=
        RowsOn(server, table, into.tables[table]) * static_cast<size_t>(variables_[variable].cols);
  }
  const auto dense = static_cast<size_t>(placement_.dense_floats(static_cast<int>(server)));
  if (pulled.dense.size() != dense || pulled.tables.size() != floats) {
    return Lost(server, absl::DataLossError(StrCat("sent ", pulled.dense.size(), " and ",
                                                   pulled.tables.size(), " floats instead of ",
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
    push.tables = TablesOf(wire, gradients.tables);
    for (size_t table = 0; table < push.tables.size(); ++table) {
      push.tables[table].values =
          has_one_server() ? gradients.values[table] : std::span<const float>(wire.values[table]);
    }
  }
  return Send(server, kPush, push);
}

absl::StatusOr<Pushed> Client::PushBatch(const Push& request, const Gradients& gradients) {
  Split(gradients.tables);
  // The lead's is the one that counts, and comes when all others are there.
  for (size_t server = 1; server < lines_.size(); ++server) {
    MUSTER_RETURN_IF_ERROR(SendPush(server, request, gradients));
  }
  for (size_t server = 1; server < lines_.size(); ++server) {
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

absl::Status Client::End() {
  absl::Status first;
  // The lead last: who hears it goes.
  for (size_t server = lines_.size(); server-- > 0;) {
    first.Update(Ask<Empty>(server, kEnd, Begin()).status());
  }
  return first;
}

}  // namespace muster::ps
