#include "muster/ps/client.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster::ps {
namespace {

constexpr int64_t kSliceFloats = int64_t{256} << 10;

// Of a server that cannot be reached, or does not speak as it should.
absl::Status Lost(size_t server, const absl::Status& why) {
  return absl::AbortedError(StrCat("ps-", server, ": ", ToStd(why.message())));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Create(ClientSpec spec, const net::Token& key,
                                                       std::span<const Variable> variables) {
  if (spec.servers.empty()) return absl::InvalidArgumentError("there are no parameter servers");
  const auto servers = static_cast<int>(spec.servers.size());
  const SocketLineSpec lines = {.self = spec.self,
                                .key = key,
                                .servers = spec.servers,
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

absl::StatusOr<State> Client::Greet(size_t server) {
  MUSTER_ASSIGN_OR_RETURN(lines_[server], dial_(server));
  return Ask<State>(server, kHello,
                    Hello{.replica = static_cast<uint32_t>(spec_.replica),
                          .replicas = static_cast<uint32_t>(spec_.replicas),
                          .server = static_cast<uint32_t>(server),
                          .servers = static_cast<uint32_t>(lines_.size()),
                          .synchronous = static_cast<uint32_t>(spec_.synchronous),
                          .agreement = spec_.agreement});
}

absl::StatusOr<std::vector<State>> Client::Connect() {
  for (auto& line : lines_) line.reset();
  std::vector<State> states;
  for (size_t server = 0; server < lines_.size(); ++server) {
    MUSTER_ASSIGN_OR_RETURN(states.emplace_back(), Greet(server));
  }
  return states;
}

template <class M>
absl::Status Client::Send(size_t server, uint16_t type, const M& message) {
  if (lines_[server] == nullptr) return Lost(server, absl::AbortedError("not connected"));
  Print(message, &wires_[server].bytes);
  const absl::Status sent = lines_[server]->Send(type, wires_[server].bytes);
  return sent.ok() ? sent : Lost(server, sent);
}

// What is returned may point into the wire's answer, until the next call for that server.
template <class M>
absl::StatusOr<M> Client::Receive(size_t server) {
  auto got = lines_[server]->Receive();
  if (!got.ok()) return Lost(server, got.status());
  wires_[server].answer = *std::move(got);
  const ConstBytes bytes = wires_[server].answer.bytes();
  if (wires_[server].answer.type == kRefused) {
    const auto refused = Parse<Refused>(bytes);
    if (!refused.ok()) return Lost(server, refused.status());
    const absl::Status said(static_cast<absl::StatusCode>(refused->code), refused->text);
    return said.ok() ? Lost(server, absl::AbortedError("refused without a reason")) : said;
  }
  auto answer = Parse<M>(bytes);
  if (!answer.ok()) return Lost(server, answer.status());
  return answer;
}

template <class A, class M>
absl::StatusOr<A> Client::Ask(size_t server, uint16_t type, const M& message) {
  MUSTER_RETURN_IF_ERROR(Send(server, type, message));
  return Receive<A>(server);
}

absl::StatusOr<State> Client::WaitForState(int64_t generation) {
  while (true) {
    auto state = Ask<State>(0, kWait, Wait{.generation = generation});
    if (!absl::IsDeadlineExceeded(state.status())) return state;
    if (stopped()) return absl::CancelledError("stopped while waiting for the chief");
  }
}

absl::Status Client::WaitForAll(int64_t generation) {
  while (true) {
    const auto state = Ask<State>(0, kWait, Wait{.generation = generation, .for_all = 1});
    if (absl::IsDeadlineExceeded(state.status())) {
      if (stopped()) return absl::OkStatus();
      continue;
    }
    MUSTER_RETURN_IF_ERROR(state.status());
    if (state->phase == Phase::kReady && state->generation == generation) return absl::OkStatus();
    return absl::AbortedError("the parameter servers have lost their state");
  }
}

// The rows of each table by server.
void Client::Split(std::span<const Block> tables) {
  for (Wire& wire : wires_) {
    wire.rows.resize(tables.size());
    wire.places.resize(tables.size());
    wire.values.resize(tables.size());
    for (auto& rows : wire.rows) rows.clear();
    for (auto& places : wire.places) places.clear();
  }
  for (size_t table = 0; table < tables.size(); ++table) {
    uint32_t place = 0;
    for (const int32_t row : tables[table].rows) {
      Wire& wire = wires_[static_cast<size_t>(placement_.ServerOf(row))];
      wire.rows[table].push_back(placement_.LocalRow(row));
      wire.places[table].push_back(place++);
    }
  }
}

std::vector<TableRows> Client::TablesOf(const Wire& wire, std::span<const Block> tables) const {
  std::vector<TableRows> rows;
  for (size_t table = 0; table < tables.size(); ++table) {
    rows.push_back(
        {.variable = static_cast<uint32_t>(tables[table].variable), .rows = wire.rows[table]});
  }
  return rows;
}

absl::StatusOr<Pulled> Client::PullBatch(Pull request, const PullInto& into) {
  Split(into.tables);
  const auto ask = [&](size_t server) {
    request.tables = TablesOf(wires_[server], into.tables);
    return Send(server, kPull, request);
  };
  // Where the lead bounds staleness the others must give no older weights than it lets pass: they
  // are asked when it has answered.
  const bool lead_first = spec_.staleness >= 0;
  for (size_t server = 0; server < (lead_first ? 1 : lines_.size()); ++server) {
    MUSTER_RETURN_IF_ERROR(ask(server));
  }
  Pulled leads;
  for (size_t server = 0; server < lines_.size(); ++server) {
    MUSTER_ASSIGN_OR_RETURN(const Pulled pulled, Receive<Pulled>(server));
    MUSTER_RETURN_IF_ERROR(TakePulled(server, pulled, into));
    if (server > 0) continue;
    leads = {.step = pulled.step, .rows = pulled.rows, .stop = pulled.stop};
    request.sequences = pulled.sequences;
    for (size_t other = 1; lead_first && other < lines_.size(); ++other) {
      MUSTER_RETURN_IF_ERROR(ask(other));
    }
  }
  return leads;
}

absl::Status Client::TakePulled(size_t server, const Pulled& pulled, const PullInto& into) {
  const Wire& wire = wires_[server];
  size_t floats = 0;
  for (size_t table = 0; table < into.tables.size(); ++table) {
    const auto variable = static_cast<size_t>(into.tables[table].variable);
    floats += wire.rows[table].size() * static_cast<size_t>(variables_[variable].cols);
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
  for (size_t table = 0; table < gradients.tables.size(); ++table) {
    const auto cols =
        static_cast<size_t>(variables_[static_cast<size_t>(gradients.tables[table].variable)].cols);
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
      push.tables[table].values = wire.values[table];
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

absl::Status Client::Finish(int64_t generation) {
  return Ask<Empty>(0, kFinish, Begin{.generation = generation}).status();
}

absl::Status Client::TellBroken(int64_t generation, const std::string& why) {
  return Ask<Empty>(0, kBreak, Break{.generation = generation, .why = why}).status();
}

template <class Visit>
absl::Status Client::ForEachSlice(size_t server, int64_t generation, Visit visit) {
  for (size_t i = 0; i < variables_.size(); ++i) {
    const int64_t elements =
        placement_.part(static_cast<int>(i), static_cast<int>(server)).elements();
    for (int slot = -1; slot < static_cast<int>(variables_[i].slots()); ++slot) {
      for (int64_t first = 0; first < elements; first += kSliceFloats) {
        const int64_t count = std::min(kSliceFloats, elements - first);
        MUSTER_RETURN_IF_ERROR(visit(Slice{.generation = generation,
                                           .variable = static_cast<uint32_t>(i),
                                           .slot = slot,
                                           .first = first,
                                           .count = count}));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Client::LoadServer(size_t server, int64_t generation, const Memory& memory) {
  MUSTER_RETURN_IF_ERROR(Ask<Empty>(server, kBegin, Begin{.generation = generation}).status());
  return ForEachSlice(server, generation, [&](Slice slice) {
    const int variable = static_cast<int>(slice.variable);
    slice_.resize(static_cast<size_t>(slice.count));
    placement_.Cut(variable, static_cast<int>(server), memory(variable, slice.slot), slice.first,
                   slice_);
    slice.values = slice_;
    return Ask<Empty>(server, kLoad, slice).status();
  });
}

absl::Status Client::LoadAll(int64_t generation, int64_t step,
                             const std::vector<std::string>& positions, const Memory& memory) {
  for (size_t server = 0; server < lines_.size(); ++server) {
    MUSTER_RETURN_IF_ERROR(LoadServer(server, generation, memory));
  }
  for (size_t server = lines_.size(); server-- > 0;) {
    MUSTER_RETURN_IF_ERROR(
        Ask<Empty>(server, kReady,
                   Ready{.generation = generation, .step = step, .positions = positions})
            .status());
  }
  return absl::OkStatus();
}

absl::Status Client::FetchServer(size_t server, int64_t generation, const Memory& memory) {
  return ForEachSlice(server, generation, [&](const Slice& slice) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const Slice got, Ask<Slice>(server, kFetch, slice));
    if (got.values.size() != static_cast<size_t>(slice.count)) {
      return Lost(server, absl::DataLossError("sent another slice than asked for"));
    }
    const int variable = static_cast<int>(slice.variable);
    placement_.Paste(variable, static_cast<int>(server), got.values, slice.first,
                     memory(variable, slice.slot));
    return absl::OkStatus();
  });
}

absl::StatusOr<Held> Client::SaveAll(int64_t generation, int64_t step, const Memory& memory) {
  Hold hold = {.generation = generation, .step = step};
  MUSTER_ASSIGN_OR_RETURN(const Held held, Ask<Held>(0, kHold, hold));
  hold.sequences = held.sequences;
  for (size_t server = 1; server < lines_.size(); ++server) {
    MUSTER_RETURN_IF_ERROR(Ask<Held>(server, kHold, hold).status());
  }
  for (size_t server = 0; server < lines_.size(); ++server) {
    MUSTER_RETURN_IF_ERROR(FetchServer(server, generation, memory));
  }
  for (size_t server = 0; server < lines_.size(); ++server) {
    MUSTER_RETURN_IF_ERROR(Ask<Empty>(server, kRelease, Begin{.generation = generation}).status());
  }
  return held;
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
