// The fixture that the tests of ServerState share. For tests of this layer only.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "muster/ps/server/server_state.h"

namespace muster::ps {

// The variables are a dense one of two floats on server 0, and a table of 4 x 1 with its rows on
// the servers in turn. The optimizer is plain SGD with rate 1.
class ServerStateTest : public testing::Test {
 protected:
  using Connection = ServerState::Connection;

  ServerStateTest() {
    optim::OptimizerSpec sgd;
    sgd.kind = "sgd";
    sgd.learning_rate = 1;
    optimizer_ = optim::NewOptimizer(sgd).value();
    variables_ = {{.name = "dense", .rows = 1, .cols = 2, .optimizer = optimizer_.get()},
                  {.name = "table",
                   .kind = Variable::Kind::kTable,
                   .rows = 4,
                   .cols = 1,
                   .optimizer = optimizer_.get()}};
  }

  // A server with a state of zeros of generation 1; replica r is connection r + 1.
  std::unique_ptr<ServerState> New(bool synchronous, int server = 0, int servers = 1,
                                   int replicas = 2) {
    placements_.push_back(std::make_unique<Placement>(variables_, servers));
    synchronous_ = synchronous;
    servers_ = servers;
    replicas_ = replicas;
    auto state = std::make_unique<ServerState>(ServerSpec{.server = server,
                                                          .servers = servers,
                                                          .training = {.replicas = replicas,
                                                                       .synchronous = synchronous,
                                                                       .aggregate = aggregate_,
                                                                       .staleness = staleness_},
                                                          .clip = clip_,
                                                          .agreement = "model 1"},
                                               variables_, *placements_.back());
    for (int replica = 0; replica < replicas; ++replica) {
      EXPECT_TRUE(Greet(*state, static_cast<Connection>(replica) + 1, replica, 1, server).ok());
    }
    EXPECT_TRUE(state->OnBegin(1, {.generation = 1}).ok());
    EXPECT_TRUE(state->OnReady(1, {.generation = 1}).ok());
    return state;
  }
  absl::StatusOr<State> Greet(ServerState& state, Connection from, int replica, int64_t incarnation,
                              int server = 0) {
    Hello hello = {.replica = static_cast<uint32_t>(replica),
                   .replicas = static_cast<uint32_t>(replicas_),
                   .server = static_cast<uint32_t>(server),
                   .servers = static_cast<uint32_t>(servers_),
                   .synchronous = static_cast<uint32_t>(synchronous_),
                   .aggregate = static_cast<uint32_t>(aggregate_),
                   .agreement = "model 1"};
    return state.OnHello(from, incarnation, hello);
  }

  // A push of the dense variable alone.
  static Bytes DensePush(int64_t sequence, std::vector<float> dense,
                         const std::string& position = "") {
    const std::vector<uint32_t> given = {1, 0};
    Bytes bytes;
    Print(Push{.generation = 1,
               .sequence = sequence,
               .rows = 1,
               .position = position,
               .given = given,
               .dense = dense},
          &bytes);
    return bytes;
  }
  static Bytes TablePush(int64_t sequence, std::vector<int32_t> rows, std::vector<float> values) {
    Bytes bytes;
    Print(Push{.generation = 1,
               .sequence = sequence,
               .rows = 1,
               .tables = {{.variable = 1, .rows = rows, .values = values}}},
          &bytes);
    return bytes;
  }
  static std::vector<float> Weights(ServerState& state, uint32_t variable, int64_t count) {
    const auto values =
        state.OnFetch(1, {.generation = 1, .variable = variable, .first = 0, .count = count});
    EXPECT_TRUE(values.ok()) << values.status();
    return {values->begin(), values->end()};
  }
  // Returns whether there is an answer, and stores it in pulled_.
  bool Pulls(ServerState& state, Connection from, Pull pull) {
    pull.generation = 1;
    const auto answered = state.AnswerPull(from, pull, &dense_, &rows_, &pulled_);
    EXPECT_TRUE(answered.ok()) << answered.status();
    return answered.ok() && *answered;
  }
  bool Pushes(ServerState& state, Connection from) {
    const auto answered = state.AnswerPush(from, &pushed_);
    EXPECT_TRUE(answered.ok()) << answered.status();
    return answered.ok() && *answered;
  }

  std::unique_ptr<optim::Optimizer> optimizer_;
  Variables variables_;
  std::vector<std::unique_ptr<Placement>> placements_;
  bool synchronous_ = false;
  int servers_ = 1, replicas_ = 2;
  int aggregate_ = 0;
  optim::ClipSpec clip_;
  int64_t staleness_ = -1;
  std::vector<float> dense_, rows_;
  Pulled pulled_;
  Pushed pushed_;
};

}  // namespace muster::ps
