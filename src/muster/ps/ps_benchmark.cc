// Measures one worker that pulls and pushes rows of one server, each a thread, over a unix socket:
// wall time, and the CPU time of both together. The table is larger than the caches, and the
// batches go through all of it. The server applies Adagrad. Also a chief that saves and loads the
// state of one server, or of two.
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "muster/base/random.h"
#include "muster/base/strings.h"
#include "muster/net/transport/acceptor.h"
#include "muster/ps/client/client.h"
#include "muster/ps/server/server.h"

namespace muster::ps {
namespace {

using net::transport::Acceptor;
using net::transport::AcceptorOptions;
using net::transport::Address;
using net::transport::Peer;
using net::transport::Stream;

constexpr int32_t kRows = 4'000'000;  // 1 GB with Adagrad's slot
constexpr int64_t kCols = 32;

class World {
 public:
  explicit World(int servers) : optimizer_(optim::NewOptimizer({}).value()) {
    variables_ = {{.name = "table",
                   .kind = Variable::Kind::kTable,
                   .rows = kRows,
                   .cols = kCols,
                   .optimizer = optimizer_.get()}};
    placement_ = std::make_unique<Placement>(variables_, servers);
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
    std::vector<Address> addresses;
    for (int i = 0; i < servers; ++i) {
      servers_.push_back(
          Server::Create({.server = i, .servers = servers}, variables_, *placement_).value());
      addresses.push_back({.kind = Address::Kind::kUnix, .path = StrCat(folder_, "/ps-", i)});
      AcceptorOptions options = {.key = key_};
      options.self = [this] { return self_; };
      options.on_peer = [server = servers_.back().get()](const Peer& peer,
                                                         std::unique_ptr<Stream> stream) {
        server->Serve(peer, std::move(stream));
      };
      acceptors_.push_back(
          Acceptor::Start(net::transport::Listener::Listen(addresses.back()).value(),
                          std::move(options))
              .value());
    }
    client_ = Client::Create({.self = self_, .servers = addresses}, key_, variables_).value();
    const std::vector<float> ones(static_cast<size_t>(kRows) * kCols, 1.0f);
    if (!client_->Connect().ok() || !Load(ones).ok()) std::abort();
  }
  ~World() {
    client_.reset();
    acceptors_.clear();
    rmdir(folder_.c_str());
  }

  Client& client() { return *client_; }
  // The same values for the weights and their slot.
  absl::Status Load(const std::vector<float>& values) {
    sequence = 0;
    return client_->LoadAll({.generation = ++generation},
                            [&](int, int) { return const_cast<float*>(values.data()); });
  }
  int64_t generation = 0;
  int64_t sequence = 0;  // of the next push

 private:
  std::string folder_ = "/tmp/muster_benchmark_XXXXXX";
  const net::Token key_ = net::Token::Make().value();
  const net::transport::Identity self_ = {.job = "benchmark", .role = "chief"};
  std::unique_ptr<optim::Optimizer> optimizer_;
  Variables variables_;
  std::unique_ptr<Placement> placement_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::unique_ptr<Client> client_;
};

// The rows of a batch: distinct, and spread over the table.
std::vector<int32_t> GetRows(int64_t batch, int64_t count) {
  std::vector<int32_t> rows(static_cast<size_t>(count));
  RandomStream random(1, RandomPurpose::kSampleData, static_cast<uint64_t>(batch));
  const int64_t width = kRows / count;
  for (int64_t i = 0; i < count; ++i) {
    rows[static_cast<size_t>(i)] = static_cast<int32_t>(
        i * width + static_cast<int64_t>(random.Below(static_cast<uint64_t>(width))));
  }
  return rows;
}

// One World for all benchmarks: a table of this size takes seconds to load.
World& OneWorld() {
  static World world(1);
  return world;
}

void Run(benchmark::State& state, bool pulls, bool pushes) {
  World& world = OneWorld();
  const int64_t count = state.range(0), all = kRows / count;
  std::vector<std::vector<int32_t>> batches;
  for (int64_t i = 0; i < all; ++i) batches.push_back(GetRows(i, count));
  std::vector<float> block(static_cast<size_t>(count * kCols));
  const std::vector<float> gradient(block.size(), 0.01f);
  const std::vector<std::span<const float>> dense(1), values = {gradient};
  const std::vector<float*> no_dense(1), blocks = {block.data()};
  int64_t batch = 0;
  for (auto _ : state) {
    const Block table = {.variable = 0, .rows = batches[static_cast<size_t>(batch++ % all)]};
    absl::Status status;
    if (pulls) {
      status =
          world.client()
              .PullBatch({.generation = world.generation, .sequence = world.sequence, .rows = 1},
                         {.tables = {&table, 1}, .dense = no_dense, .blocks = blocks})
              .status();
    }
    if (pushes) {
      status.Update(
          world.client()
              .PushBatch({.generation = world.generation, .sequence = world.sequence++, .rows = 1},
                         {.dense = dense, .tables = {&table, 1}, .values = values})
              .status());
    }
    if (!status.ok()) state.SkipWithError(std::string(status.message()).c_str());
  }
  state.SetItemsProcessed(state.iterations() * count);
}

void Pull(benchmark::State& state) { Run(state, true, false); }
void PushAdagrad(benchmark::State& state) { Run(state, false, true); }
void PullAndPush(benchmark::State& state) { Run(state, true, true); }

void Batches(benchmark::internal::Benchmark* one) {
  one->Arg(512)->Arg(4096)->Arg(32768)->MeasureProcessCPUTime()->UseRealTime();
}

// The weights of a server alone, without the socket and the worker: as many threads as the second
// argument says.
void Weights(benchmark::State& state, bool pushes) {
  const auto optimizer = optim::NewOptimizer({}).value();
  const Variables variables = {{.name = "table",
                                .kind = Variable::Kind::kTable,
                                .rows = kRows,
                                .cols = kCols,
                                .optimizer = optimizer.get()}};
  const Placement placement(variables, 1);
  ServerWeights weights(variables, placement, 0, static_cast<int>(state.range(1)));
  const int64_t count = state.range(0), all = kRows / count;
  std::vector<std::vector<int32_t>> batches;
  for (int64_t i = 0; i < all; ++i) batches.push_back(GetRows(i, count));
  const std::vector<float> values(static_cast<size_t>(count * kCols), 0.01f);
  std::vector<float> dense, rows;
  int64_t batch = 0;
  for (auto _ : state) {
    const TableRows table = {
        .variable = 0, .rows = batches[static_cast<size_t>(batch++ % all)], .values = values};
    if (pushes) {
      weights.Apply({.tables = {table}}, batch);
    } else {
      weights.Read({&table, 1}, &dense, &rows);
    }
  }
  state.SetItemsProcessed(state.iterations() * count);
}

void ReadRows(benchmark::State& state) { Weights(state, false); }
void ApplyAdagrad(benchmark::State& state) { Weights(state, true); }

void BatchesAndThreads(benchmark::internal::Benchmark* one) {
  one->ArgsProduct({{4096, 32768}, {1, 2}})->MeasureProcessCPUTime()->UseRealTime();
}

// 1 GB. Argument: the number of servers.
void SaveState(benchmark::State& state) {
  World world(static_cast<int>(state.range(0)));
  std::vector<float> weights(static_cast<size_t>(kRows) * kCols), slot(weights.size());
  for (auto _ : state) {
    const auto held = world.client().SaveAll(world.generation, 0, 0, [&](int, int which) {
      return which < 0 ? weights.data() : slot.data();
    });
    if (!held.ok()) state.SkipWithError(std::string(held.status().message()).c_str());
  }
  if (weights.back() != 1.0f || slot.back() != 1.0f) state.SkipWithError("other values");
}

void LoadState(benchmark::State& state) {
  World world(static_cast<int>(state.range(0)));
  const std::vector<float> values(static_cast<size_t>(kRows) * kCols, 2.0f);
  for (auto _ : state) {
    const absl::Status loaded = world.Load(values);
    if (!loaded.ok()) state.SkipWithError(std::string(loaded.message()).c_str());
  }
}

void Servers(benchmark::internal::Benchmark* one) {
  one->Arg(1)->Arg(2)->MeasureProcessCPUTime()->UseRealTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK(SaveState)->Apply(Servers);
BENCHMARK(LoadState)->Apply(Servers);
BENCHMARK(ReadRows)->Apply(BatchesAndThreads);
BENCHMARK(ApplyAdagrad)->Apply(BatchesAndThreads);
BENCHMARK(Pull)->Apply(Batches);
BENCHMARK(PushAdagrad)->Apply(Batches);
BENCHMARK(PullAndPush)->Apply(Batches);

}  // namespace
}  // namespace muster::ps
