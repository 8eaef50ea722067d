// A client and servers, connected by unix sockets.
#include "muster/ps/client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <numeric>
#include <thread>

#include "muster/net/transport/acceptor.h"
#include "muster/process/deadline.h"
#include "muster/ps/client/replica.h"
#include "muster/ps/server/server.h"
#include "muster/ps/wire/server_address.h"

namespace muster::ps {
namespace {

using net::transport::Acceptor;
using net::transport::AcceptorOptions;
using net::transport::Address;
using net::transport::Peer;
using net::transport::Stream;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kServers = 3;

class ClientTest : public testing::Test {
 protected:
  ClientTest() : optimizer_(optim::NewOptimizer({}).value()) {
    std::string path = testing::TempDir() + "/muster_ps_XXXXXX";
    folder_ = mkdtemp(path.data());
    variables_ = {
        {.name = "small", .rows = 1, .cols = 3, .optimizer = optimizer_.get()},
        {.name = "table",
         .kind = Variable::Kind::kTable,
         .rows = 10,
         .cols = 2,
         .optimizer = optimizer_.get()},
        {.name = "large", .rows = 1, .cols = 5 * kSplitFloats + 7, .optimizer = optimizer_.get()},
        {.name = "state", .kind = Variable::Kind::kState, .rows = 1, .cols = 4}};
    placement_ = std::make_unique<Placement>(variables_, kServers);
    servers_.resize(kServers);
    acceptors_.resize(kServers);
    for (int server = 0; server < kServers; ++server) Start(server);
    // Weights and one slot of each variable; all values differ.
    float next = 1;
    for (const Variable& variable : variables_) {
      for (size_t slot = 0; slot <= variable.slots(); ++slot) {
        auto& values = memory_.emplace_back(static_cast<size_t>(variable.elements()));
        std::iota(values.begin(), values.end(), next);
        next += static_cast<float>(values.size());
      }
    }
  }
  ~ClientTest() override {
    acceptors_.clear();
    servers_.clear();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  Address GetAddress(int server) const {
    return {.kind = Address::Kind::kUnix, .path = StrCat(folder_, "/", server)};
  }
  void Start(int server, bool in_shared_memory = false, const PsOptions& training = {}) {
    const auto i = static_cast<size_t>(server);
    acceptors_[i].reset();
    servers_[i] = Server::Create({.server = server, .servers = kServers, .training = training},
                                 variables_, *placement_)
                      .value();
    AcceptorOptions options = {.key = key_};
    options.self = [] { return net::transport::Identity{.job = "test", .role = "ps"}; };
    options.on_peer = [running = servers_[i].get()](const Peer& peer,
                                                    std::unique_ptr<Stream> stream) {
      running->Serve(peer, std::move(stream));
    };
    const Address address =
        in_shared_memory ? LocalServerAddress(key_, GetAddress(server)) : GetAddress(server);
    acceptors_[i] = Acceptor::StartAt(address, std::move(options)).value();
  }
  std::unique_ptr<Client> New(const net::Token& key) const {
    ClientSpec spec = {.self = {.job = "test", .role = "chief"}};
    for (int server = 0; server < kServers; ++server) spec.servers.push_back(GetAddress(server));
    return Client::Create(std::move(spec), key, variables_).value();
  }
  static Memory In(std::vector<std::vector<float>>& memory, const Variables& variables) {
    return [&](int variable, int slot) {
      size_t at = 0;
      for (int i = 0; i < variable; ++i) at += 1 + variables[static_cast<size_t>(i)].slots();
      return memory[at + static_cast<size_t>(slot + 1)].data();
    };
  }
  std::unique_ptr<Client> Loaded() {
    auto client = New(key_);
    EXPECT_TRUE(client->Connect().ok());
    EXPECT_TRUE(
        client
            ->LoadAll({.generation = 1, .step = 5, .positions = {"here"}}, In(memory_, variables_))
            .ok());
    return client;
  }

  std::string folder_;
  const net::Token key_ = net::Token::Make().value();
  std::unique_ptr<optim::Optimizer> optimizer_;
  Variables variables_;
  std::unique_ptr<Placement> placement_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;  // they call the servers: must end before them
  std::vector<std::vector<float>> memory_;
};

TEST_F(ClientTest, ALoadedStateIsSavedUnchanged) {
  const auto client = Loaded();
  std::vector<std::vector<float>> saved;
  for (const auto& values : memory_) saved.emplace_back(values.size());
  const auto held = client->SaveAll(1, 0, 5, In(saved, variables_));
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(held->step, 5);
  EXPECT_THAT(held->positions, ElementsAre("here"));
  EXPECT_TRUE(saved == memory_);
}

// A connection to a server that ends before it answers a release.
class LeavingServerConnection : public ServerConnection {
 public:
  explicit LeavingServerConnection(std::unique_ptr<ServerConnection> connection)
      : connection_(std::move(connection)) {}
  absl::Status Send(uint16_t type, ConstBytes message) override {
    gone_ = gone_ || type == kRelease;
    return connection_->Send(type, message);
  }
  absl::StatusOr<net::transport::Message> Receive() override {
    if (gone_) return absl::UnavailableError("closed the connection");
    return connection_->Receive();
  }

 private:
  const std::unique_ptr<ServerConnection> connection_;
  bool gone_ = false;
};

// Else the chief would fail when a server was told to end.
TEST_F(ClientTest, ASaveIsCompleteEvenIfTheServersEndBeforeTheyAnswerTheRelease) {
  ServerConnectionSpec sockets = {.self = {.job = "test", .role = "chief"}, .key = key_};
  for (int server = 0; server < kServers; ++server) sockets.servers.push_back(GetAddress(server));
  const auto dial = MakeServerDialer(std::move(sockets));
  ASSERT_TRUE(dial.ok()) << dial.status();
  Client client(
      {.self = {.job = "test", .role = "chief"}}, kServers,
      [&](size_t server) -> absl::StatusOr<std::unique_ptr<ServerConnection>> {
        MUSTER_ASSIGN_OR_RETURN(auto connection, (*dial)(server));
        return std::make_unique<LeavingServerConnection>(std::move(connection));
      },
      variables_);
  ASSERT_TRUE(client.Connect().ok());
  ASSERT_TRUE(
      client.LoadAll({.generation = 1, .step = 5, .positions = {"here"}}, In(memory_, variables_))
          .ok());
  std::vector<std::vector<float>> saved;
  for (const auto& values : memory_) saved.emplace_back(values.size());
  const auto held = client.SaveAll(1, 0, 5, In(saved, variables_));
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_TRUE(saved == memory_);
}

// Counts the messages of a connection in both directions.
class CountingServerConnection : public ServerConnection {
 public:
  CountingServerConnection(std::unique_ptr<ServerConnection> connection, int* messages)
      : connection_(std::move(connection)), messages_(*messages) {}
  absl::Status Send(uint16_t type, ConstBytes message) override {
    ++messages_;
    return connection_->Send(type, message);
  }
  absl::StatusOr<net::transport::Message> Receive() override {
    ++messages_;
    return connection_->Receive();
  }

 private:
  const std::unique_ptr<ServerConnection> connection_;
  int& messages_;
};

// docs/scale.md has this number.
TEST_F(ClientTest, AStepTakesFourMessagesWithEachServer) {
  ServerConnectionSpec sockets = {.self = {.job = "test", .role = "chief"}, .key = key_};
  for (int server = 0; server < kServers; ++server) sockets.servers.push_back(GetAddress(server));
  const auto dial = MakeServerDialer(std::move(sockets));
  ASSERT_TRUE(dial.ok()) << dial.status();
  std::vector<int> messages(kServers);
  Client client(
      {.self = {.job = "test", .role = "chief"}}, kServers,
      [&](size_t server) -> absl::StatusOr<std::unique_ptr<ServerConnection>> {
        MUSTER_ASSIGN_OR_RETURN(auto connection, (*dial)(server));
        return std::make_unique<CountingServerConnection>(std::move(connection), &messages[server]);
      },
      variables_);
  ASSERT_TRUE(client.Connect().ok());
  ASSERT_TRUE(client.LoadAll({.generation = 1, .step = 5}, In(memory_, variables_)).ok());
  const std::vector<int32_t> rows = {7, 0, 9, 1};
  const Block table = {.variable = 1, .rows = rows};
  std::vector<float> small(3), large(memory_[4].size()), state(4), block(8);
  const std::vector<float*> dense = {small.data(), nullptr, large.data(), state.data()};
  const std::vector<float*> blocks = {block.data()};
  const std::vector<std::span<const float>> gradients = {small, {}, large, {}}, values = {block};
  for (int64_t step = 0; step < 3; ++step) {
    messages.assign(kServers, 0);
    const auto pulled = client.PullBatch({.generation = 1, .sequence = step, .rows = 1},
                                         {.tables = {&table, 1}, .dense = dense, .blocks = blocks});
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    const auto pushed =
        client.PushBatch({.generation = 1, .sequence = step, .rows = 1},
                         {.dense = gradients, .tables = {&table, 1}, .values = values});
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    EXPECT_THAT(messages, ElementsAre(4, 4, 4));
  }
}

TEST_F(ClientTest, ThreadsOfClosedConnectionsAreJoined) {
  constexpr int kConnections = 20;
  for (int i = 0; i < kConnections; ++i) ASSERT_TRUE(New(key_)->Connect().ok());
  // Threads of connections that were just closed may not have ended yet.
  std::vector<std::unique_ptr<Client>> others;
  while (servers_[0]->threads() > others.size() + 1) {
    ASSERT_LT(others.size(), 10U * kConnections);
    others.push_back(New(key_));
    ASSERT_TRUE(others.back()->Connect().ok());
  }
}

// The servers listen only in shared memory, not on their addresses.
TEST_F(ClientTest, ServersOfTheSameMachineAreReachedThroughSharedMemory) {
  for (int server = 0; server < kServers; ++server) Start(server, /*in_shared_memory=*/true);
  const auto client = Loaded();
  std::vector<std::vector<float>> saved;
  for (const auto& values : memory_) saved.emplace_back(values.size());
  ASSERT_TRUE(client->SaveAll(1, 0, 5, In(saved, variables_)).ok());
  EXPECT_TRUE(saved == memory_);
  acceptors_[1].reset();
  servers_[1].reset();
  const auto lost = client->SaveAll(1, 0, 5, In(saved, variables_));
  EXPECT_TRUE(absl::IsAborted(lost.status())) << lost.status();
  EXPECT_THAT(lost.status().message(), HasSubstr("ps-1"));
}

// The server has nothing to send to it but that it is alive.
TEST_F(ClientTest, AWorkerThatLeavesWhileItsRequestWaitsIsNoticedInSharedMemory) {
  const PsOptions two = {.replicas = 2, .synchronous = true};
  for (int server = 0; server < kServers; ++server) {
    Start(server, /*in_shared_memory=*/true, two);
  }
  std::atomic<bool> leaves{false};
  ClientSpec spec = {.self = {.job = "test", .role = "chief"}, .training = two};
  spec.stop = spec.leaving = &leaves;
  for (int server = 0; server < kServers; ++server) spec.servers.push_back(GetAddress(server));
  const auto client = Client::Create(std::move(spec), key_, variables_).value();
  ASSERT_TRUE(client->Connect().ok());
  ASSERT_TRUE(client->LoadAll({.generation = 1, .step = 5}, In(memory_, variables_)).ok());
  // The other replica never comes.
  auto pulled = std::async(std::launch::async, [&] {
    std::vector<float> small(3), large(memory_[4].size()), state(4);
    const std::vector<float*> dense = {small.data(), nullptr, large.data(), state.data()};
    return client->PullBatch({.generation = 1, .step = 5, .rows = 1}, {.dense = dense}).status();
  });
  EXPECT_EQ(pulled.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  leaves = true;
  EXPECT_TRUE(absl::IsCancelled(pulled.get()));
  const auto deadline = process::Deadline::After(60);
  while (!servers_[0]->alone() && !deadline.expired()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(servers_[0]->alone());
}

TEST_F(ClientTest, APullReturnsDenseVariablesAndTheRequestedRowsInOrder) {
  const auto client = Loaded();
  std::vector<float> small(3), large(memory_[4].size()), state(4), block(8);
  const std::vector<int32_t> rows = {7, 0, 9, 1};
  const Block table = {.variable = 1, .rows = rows};
  const std::vector<float*> dense = {small.data(), nullptr, large.data(), state.data()};
  const std::vector<float*> blocks = {block.data()};
  const auto pulled = client->PullBatch({.generation = 1, .rows = 1},
                                        {.tables = {&table, 1}, .dense = dense, .blocks = blocks});
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(pulled->step, 5);
  EXPECT_TRUE(small == memory_[0]);
  EXPECT_TRUE(large == memory_[4]);
  EXPECT_TRUE(state == memory_[6]);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(block[i * 2 + 1], memory_[2][static_cast<size_t>(rows[i]) * 2 + 1]) << rows[i];
  }
}

TEST_F(ClientTest, ALostServerIsNamedAndComesBackWithoutAState) {
  const auto client = Loaded();
  Start(1);
  std::vector<std::vector<float>> saved = memory_;
  const absl::Status lost = client->SaveAll(1, 0, 5, In(saved, variables_)).status();
  EXPECT_EQ(lost.code(), absl::StatusCode::kAborted) << lost;
  EXPECT_THAT(ToStd(lost.message()), HasSubstr("ps-1"));
  const auto states = client->Connect();
  ASSERT_TRUE(states.ok()) << states.status();
  EXPECT_EQ((*states)[0].phase, Phase::kReady);
  EXPECT_EQ((*states)[0].position, "here");
  EXPECT_EQ((*states)[1].phase, Phase::kEmpty);
  // No replica may continue with the state of the remaining servers.
  ASSERT_TRUE(client->TellBroken(1, "ps-1 has no state").ok());
  EXPECT_EQ(client->Finish({.generation = 1}).code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(client->LoadAll({.generation = 2, .step = 3}, In(memory_, variables_)).ok());
  EXPECT_TRUE(client->Finish({.generation = 2}).ok());
}

// Neither the servers nor the chief know of the previous state.
TEST_F(ClientTest, AStateHasANewGenerationAfterAllTasksWereRestarted) {
  int64_t before = 0;
  for (const uint64_t incarnation : {1, 2}) {
    for (int server = 0; server < kServers; ++server) Start(server);
    ClientSpec spec = {.self = {.job = "test", .role = "chief", .incarnation = incarnation}};
    for (int server = 0; server < kServers; ++server) spec.servers.push_back(GetAddress(server));
    const auto client = Client::Create(std::move(spec), key_, variables_).value();
    ReplicaSpec own;
    own.memory = In(memory_, variables_);
    own.give = [](bool) { return Place{.step = 5}; };
    Replica chief(*client, std::move(own));
    ASSERT_TRUE(chief.Recover(absl::OkStatus()).ok());
    EXPECT_EQ(chief.step(), 5);
    const auto states = client->Connect();
    ASSERT_TRUE(states.ok()) << states.status();
    EXPECT_GT((*states)[0].generation, before);
    before = (*states)[0].generation;
  }
}

TEST_F(ClientTest, AClientWithAnotherKeyIsRefused) {
  const auto stranger = New(net::Token::Make().value());
  EXPECT_EQ(stranger->Connect().status().code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(ClientTest, WaitingReplicasAreToldOfTheEnd) {
  const auto client = Loaded();
  EXPECT_FALSE(servers_[0]->WaitForEnd(0));
  ASSERT_TRUE(client->End().ok());
  EXPECT_TRUE(servers_[0]->WaitForEnd(0));
  const auto state = client->WaitForState(1);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->phase, Phase::kOver);
}

}  // namespace
}  // namespace muster::ps
