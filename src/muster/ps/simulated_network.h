// A network in virtual time: connections to parameter servers, which are the production Request and
// ServerState. A connection carries messages in order and may be cut, with or without loss of the
// messages in transit; each end learns of the cut at a different time. For tests of this layer
// only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/simulation.h"
#include "muster/base/strings.h"
#include "muster/ps/server/request.h"
#include "muster/ps/wire/tamper.h"

namespace muster::ps {

// A connection of a replica to a server.
struct SimulatedLink {
  uint64_t id = 0;
  size_t server = 0;
  int64_t life = 0;  // which start of the server the connection belongs to
  size_t replica = 0;
  int64_t incarnation = 0;
  bool open_here = true, open_there = true;  // at the replica, at the server
  std::deque<net::transport::Message> inbox = {};
  std::function<void()> wake = {};  // wakes the process that waits for the inbox
};
using LinkPtr = std::shared_ptr<SimulatedLink>;

class SimulatedNetwork : protected SimulatedHistory {
 public:
  SimulatedNetwork(uint64_t seed, const Tamper& tamper) : SimulatedHistory(seed), tamper_(tamper) {}

 protected:
  static constexpr double kLeaseSeconds = 10, kRendezvousSeconds = 100;

  struct Conversation {
    LinkPtr link;
    Request request;
    std::deque<net::transport::Message> unread = {};
    net::transport::Message message = {};  // of the present request
    bool busy = false;
    double until = 0;
  };
  struct Server {
    int64_t life = 0;
    bool alive = false;
    double asleep_until = 0;
    std::unique_ptr<ServerState> state = {};
    std::map<uint64_t, Conversation> conversations = {};
    std::vector<int64_t> newest = {};  // by replica: the newest incarnation that has sent Hello
    std::vector<int64_t> pushes = {};  // by replica: pushes taken in this generation
    int64_t generation = 0;            // of the last state that was made ready
    std::vector<double> beats = {};    // by replica: the time of the last heartbeat
    std::set<size_t> finished = {};    // replicas that have finished in this generation
  };

  void StartServer(size_t k) {
    Server& server = servers_[k];
    server.newest.assign(static_cast<size_t>(spec_.training.replicas), 0);
    server.pushes.assign(static_cast<size_t>(spec_.training.replicas), 0);
    server.generation = 0;
    server.beats.assign(static_cast<size_t>(spec_.training.replicas), -kLeaseSeconds);
    server.finished.clear();
    server.alive = true;
    ++server.life;
    ServerSpec spec = spec_;
    spec.server = static_cast<int>(k);
    spec.lease_seconds = kLeaseSeconds;
    spec.rendezvous_seconds = tamper_.gives_up_soon ? 5 : kRendezvousSeconds;
    if (tamper_.allows_one_more && spec.training.staleness >= 0) ++spec.training.staleness;
    server.state = std::make_unique<ServerState>(spec, variables_, *placement_);
    Tick(k, server.life);
  }
  // Ticks are needed because some requests wait for time to pass.
  void Tick(size_t k, int64_t life) {
    AtServer(time_.now() + 1, k, life, [this, k, life] {
      Work(k);
      servers_[k].state->SetTime(time_.now());
      if (!tamper_.never_gives_up) failed_.Update(servers_[k].state->OnTick());
      Tick(k, life);
    });
  }
  void SendHeartbeat(size_t replica, int64_t incarnation) {
    AtServer(time_.now() + time_.Delay(), 0, servers_[0].life, [this, replica, incarnation] {
      ServerState& lead = *servers_[0].state;
      lead.SetTime(time_.now());
      if (incarnation >= servers_[0].newest[replica]) servers_[0].beats[replica] = time_.now();
      (void)lead.OnBeat(incarnation, {.replica = static_cast<uint32_t>(replica)});
    });
  }
  // `silently`: the server's machine vanishes too, so that replicas notice only that keep-alives
  // stop, perhaps after the server's replacement has started.
  void KillServer(size_t k, bool silently = false) {
    Server& server = servers_[k];
    server.alive = false;
    for (auto& [id, conversation] : server.conversations) {
      time_.After(silently ? time_.Uniform(1, 30) : 0,
                  [this, link = conversation.link] { CloseHere(link); });
    }
    server.conversations.clear();
    server.state.reset();
    time_.After(time_.Uniform(0.1, 8), [this, k] { StartServer(k); });
  }
  // SIGTERM, as train/parameter_server/ps_cluster.cc handles it: the server waits a limited
  // time for the chief's save.
  void TerminateServer(size_t k) {
    AtServer(time_.now(), k, servers_[k].life, [this, k, life = servers_[k].life] {
      servers_[k].state->OnTerminate();
      Work(k);
      EndSoon(k, life, time_.now());
    });
  }
  void EndSoon(size_t k, int64_t life, double since) {
    const ServerState& state = *servers_[k].state;
    const double stayed = time_.now() - since;
    if (state.over()) return;
    if (state.may_go() || stayed >= (state.is_saved() ? 20 : 8)) return KillServer(k);
    AtServer(time_.now() + 0.1, k, life, [this, k, life, since] { EndSoon(k, life, since); });
  }
  // Runs when the server is awake, if it is still in that life.
  void AtServer(double at, size_t k, int64_t life, std::function<void()> run) {
    time_.At(at, [this, k, life, run = std::move(run)]() mutable {
      const Server& server = servers_[k];
      if (!server.alive || server.life != life) return;
      if (time_.now() < server.asleep_until) {
        return AtServer(server.asleep_until, k, life, std::move(run));
      }
      run();
    });
  }

  // Connects to server k; null if it is not alive.
  LinkPtr Connect(size_t k, size_t replica, int64_t incarnation, std::function<void()> wake) {
    Server& server = servers_[k];
    if (!server.alive) return nullptr;
    auto link = std::make_shared<SimulatedLink>(SimulatedLink{.id = ++last_link_,
                                                              .server = k,
                                                              .life = server.life,
                                                              .replica = replica,
                                                              .incarnation = incarnation,
                                                              .wake = std::move(wake)});
    const int64_t proven = tamper_.ignores_incarnations ? 1 : incarnation;
    server.conversations.emplace(link->id,
                                 Conversation{.link = link, .request = Request(link->id, proven)});
    return link;
  }
  // The server's end of the link closes at some later time; messages in transit arrive before that
  // or never.
  void CloseThere(const LinkPtr& link) {
    const bool half_open = time_.Below(4) == 0;
    const double at = half_open ? time_.now() + time_.Uniform(2, 30) : ArrivalThere(*link);
    AtServer(at, link->server, link->life, [this, link] {
      Server& server = servers_[link->server];
      if (server.conversations.erase(link->id) == 0) return;
      link->open_there = false;
      server.state->OnClosed(link->id);
      Work(link->server);
    });
  }
  void CloseHere(const LinkPtr& link) {
    const double at = time_.Below(2) == 0 ? time_.now() + time_.Delay() : ArrivalHere(*link);
    time_.At(at, [link] {
      if (!std::exchange(link->open_here, false)) return;
      link->wake();
    });
  }
  void Cut(const LinkPtr& link) {
    if (time_.Below(2) == 0) link->open_there = false;  // messages in transit are lost
    CloseThere(link);
    CloseHere(link);
  }

  // Puts a keep-alive into the inbox: a waiting process then checks whether it must end.
  static void SayAlive(const LinkPtr& link) { link->inbox.push_back(GetMessage(kAlive, {})); }
  void SendThere(const LinkPtr& link, uint16_t type, ConstBytes bytes) {
    auto message = std::make_shared<net::transport::Message>(GetMessage(type, bytes));
    AtServer(ArrivalThere(*link), link->server, link->life, [this, link, message] {
      Server& server = servers_[link->server];
      const auto found = server.conversations.find(link->id);
      if (!link->open_there || found == server.conversations.end()) return;
      found->second.unread.push_back(std::move(*message));
      Work(link->server);
    });
  }
  static net::transport::Message GetMessage(uint16_t type, ConstBytes bytes) {
    net::transport::Message message = {
        .type = type, .size = bytes.size(), .data = std::make_unique<std::byte[]>(bytes.size())};
    if (!bytes.empty()) std::memcpy(message.data.get(), bytes.data(), bytes.size());
    return message;
  }

  const Tamper tamper_;
  ServerSpec spec_;  // of every server, except its number
  Variables variables_;
  std::unique_ptr<Placement> placement_;
  std::vector<Server> servers_;
  absl::Status failed_;  // how training has failed, as a server tells its tasks

 private:
  double ArrivalThere(const SimulatedLink& link) { return time_.Arrival(2 * link.id); }
  double ArrivalHere(const SimulatedLink& link) { return time_.Arrival(2 * link.id + 1); }

  // Answers all requests that can be answered, in random order.
  void Work(size_t k) {
    Server& server = servers_[k];
    for (bool again = true; std::exchange(again, false);) {
      std::vector<uint64_t> order;
      for (const auto& [id, conversation] : server.conversations) order.push_back(id);
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[time_.Below(i)]);
      for (const uint64_t id : order) {
        Conversation& conversation = server.conversations.at(id);
        if (!conversation.busy) again = Begin(k, conversation) || again;
        if (conversation.busy) again = Answer(k, conversation) || again;
      }
    }
  }
  bool Begin(size_t k, Conversation& conversation) {
    if (conversation.unread.empty()) return false;
    conversation.message = std::move(conversation.unread.front());
    conversation.unread.pop_front();
    servers_[k].state->SetTime(time_.now());
    const bool dropped = TamperWith(k, conversation);
    absl::Status status = conversation.request.Read(conversation.message);
    if (status.ok() && !dropped) status = conversation.request.Apply(*servers_[k].state);
    if (status.ok()) OnApplied(k, conversation);
    if (!status.ok() || dropped) {
      Reply(conversation, status);
      return true;
    }
    conversation.busy = true;
    conversation.until = time_.now() + 1;
    return true;
  }
  bool Answer(size_t k, Conversation& conversation) {
    servers_[k].state->SetTime(time_.now());
    const absl::StatusOr<bool> answered = conversation.request.Answer(*servers_[k].state);
    const bool late = conversation.request.is_wait() && time_.now() >= conversation.until;
    if (answered.ok() && !*answered && !late) return false;
    conversation.busy = false;
    const bool nothing = answered.ok() && !*answered;
    Reply(conversation,
          nothing ? absl::DeadlineExceededError("nothing changed") : answered.status());
    if (answered.ok() && !nothing && conversation.message.type == kPull && k == 0) {
      CheckBound(conversation);
    }
    if (tamper_.saves_without_waiting && conversation.message.type == kHold) {
      (void)servers_[k].state->OnRelease(conversation.link->id,
                                         {.generation = servers_[k].generation});
    }
    return true;
  }
  void Reply(Conversation& conversation, const absl::Status& status) {
    const uint16_t type = conversation.request.Print(status);
    const LinkPtr link = conversation.link;
    auto message =
        std::make_shared<net::transport::Message>(GetMessage(type, conversation.request.answer()));
    time_.At(ArrivalHere(*link), [link, message] {
      if (!link->open_here) return;
      link->inbox.push_back(std::move(*message));
      link->wake();
    });
  }

  // Records and checks a request that the server has accepted.
  void OnApplied(size_t k, const Conversation& conversation) {
    Server& server = servers_[k];
    const SimulatedLink& link = *conversation.link;
    const ConstBytes bytes = conversation.message.bytes();
    switch (conversation.message.type) {
      case kHello:
        server.newest[link.replica] = std::max(server.newest[link.replica], link.incarnation);
        return;
      case kReady:
        server.generation = Parse<Ready>(bytes)->generation;
        server.pushes.assign(server.pushes.size(), 0);
        server.finished.clear();
        return;
      case kFinish:
        server.finished.insert(link.replica);
        return;
      case kPull:
        return CheckGeneration(k);
      case kPush:
        ++server.pushes[link.replica];
        if (link.incarnation < server.newest[link.replica]) {
          Violated(StrCat("live: incarnation ", link.incarnation, " of replica ", link.replica,
                          " pushed to ps-", k, ", which knows a newer incarnation"));
        }
        CheckGeneration(k);
        if (tamper_.others_count_at_once && k > 0 && !spec_.training.synchronous) {
          const Push push = *Parse<Push>(bytes);
          (void)server.state->OnPull(
              link.id, {.generation = push.generation, .sequence = push.sequence + 1});
        }
        return;
      default:
        return;
    }
  }
  void CheckBound(const Conversation& conversation) {
    if (spec_.training.staleness < 0) return;
    const std::vector<int64_t> counted = Parse<Pulled>(conversation.request.answer())->sequences;
    const size_t replica = conversation.link->replica;
    for (size_t other = 0; other < counted.size(); ++other) {
      const bool lives = time_.now() < servers_[0].beats[other] + kLeaseSeconds;
      if (!lives || servers_[0].finished.contains(other)) continue;
      if (counted[replica] <= counted[other] + spec_.training.staleness) continue;
      Violated(StrCat("bound: replica ", replica, " begins batch ", counted[replica], ", replica ",
                      other, " lives and has ", counted[other], ", the bound is ",
                      spec_.training.staleness));
    }
  }
  void CheckGeneration(size_t k) {
    if (asked_generation_ == servers_[k].generation) return;
    Violated(StrCat("live: ps-", k, " accepted a request of generation ", asked_generation_,
                    ", but has ", servers_[k].generation));
  }
  // Plants the bugs of tamper_ in a request. Returns true if the request must not reach the server.
  bool TamperWith(size_t k, Conversation& conversation) {
    const uint16_t type = conversation.message.type;
    const Server& server = servers_[k];
    if (type == kPush) {
      Change<Push>(conversation, [&](Push& push) {
        AcceptAny(k, *conversation.link, &push);
        if (tamper_.accepts_stale) push.step = GetStep(k, *conversation.link);
        if (tamper_.numbers_pushes_itself && !spec_.training.synchronous) {
          push.sequence = server.pushes[conversation.link->replica];
        }
      });
    } else if (type == kPull) {
      Change<Pull>(conversation, [&](Pull& pull) {
        AcceptAny(k, *conversation.link, &pull);
        if (tamper_.misses_a_batch && k > 0 && !pull.word.counted.empty()) {
          *std::max_element(pull.word.counted.begin(), pull.word.counted.end()) = -1;
        }
        if (tamper_.scales_nothing && k > 0) {
          std::fill(pull.word.scales.begin(), pull.word.scales.end(), 1.0f);
        }
      });
    } else if (type == kHold && k > 0 && tamper_.others_count_at_once) {
      Change<Hold>(conversation, [&](Hold& hold) {
        Held own;
        if (server.state->AnswerHold(conversation.link->id, hold, &own).ok()) {
          hold.sequences = own.sequences;
        }
      });
    } else if (type == kReady && tamper_.drops_a_position) {
      Change<Ready>(conversation, [](Ready& ready) {
        if (!ready.positions.empty()) ready.positions.front().clear();
      });
    } else if (type == kSettle && tamper_.settles_alone) {
      Change<Settle>(conversation, [](Settle& settle) {
        std::fill(settle.squares.begin(), settle.squares.end(), 0);
      });
    } else if (type == kReady && tamper_.drops_counts) {
      Change<Ready>(conversation, [](Ready& ready) { ready.counts = {}; });
    }
    return type == kBreak && tamper_.drops_breaks;
  }
  int64_t GetStep(size_t k, const SimulatedLink& link) {
    State state;
    const bool known = servers_[k].state->AnswerWait(link.id, {}, &state).ok();
    return known ? state.step : 0;
  }
  template <class M>
  void AcceptAny(size_t k, const SimulatedLink& link, M* message) {
    asked_generation_ = message->generation;
    if (!tamper_.accepts_any_generation) return;
    message->generation = servers_[k].generation;
    if (!spec_.training.synchronous) message->sequence = servers_[k].pushes[link.replica];
  }
  template <class M, class F>
  void Change(Conversation& conversation, F change) {
    const net::transport::Message old = std::move(conversation.message);
    M message = *Parse<M>(old.bytes());
    change(message);
    Bytes bytes;
    Print(message, &bytes);
    conversation.message = GetMessage(old.type, bytes);
  }

  int64_t asked_generation_ = 0;  // of the present pull or push, as it was sent
  uint64_t last_link_ = 0;
};

}  // namespace muster::ps
