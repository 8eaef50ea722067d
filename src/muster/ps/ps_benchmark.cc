// Measures one worker that pulls and pushes rows of one server, each a thread, over a unix socket:
// wall time, and the CPU time of both together. The table is larger than the caches, and the
// batches go through all of it. The server applies Adagrad.
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <numeric>

#include "benchmark/benchmark.h"
#include "muster/base/random.h"
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
  World() : optimizer_(optim::NewOptimizer({}).value()) {
    variables_ = {{.name = "table",
                   .kind = Variable::Kind::kTable,
                   .rows = kRows,
                   .cols = kCols,
                   .optimizer = optimizer_.get()}};
    placement_ = std::make_unique<Placement>(variables_, 1);
    server_ = Server::Create({}, variables_, *placement_).value();
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
    const Address address = {.kind = Address::Kind::kUnix, .path = folder_ + "/ps"};
    AcceptorOptions options = {.key = key_};
    options.self = [this] { return self_; };
    options.on_peer = [this](const Peer& peer, std::unique_ptr<Stream> stream) {
      server_->Serve(peer, std::move(stream));
    };
    acceptor_ =
        Acceptor::Start(net::transport::Listener::Listen(address).value(), std::move(options))
            .value();
    client_ = Client::Create({.self = self_, .servers = {address}}, key_, variables_).value();
    Begin();
  }
  ~World() {
    client_.reset();
    acceptor_.reset();
    rmdir(folder_.c_str());
  }

  Client& client() { return *client_; }
  int64_t sequence = 0;  // of the next push

 private:
  void Begin() {
    std::vector<float> ones(static_cast<size_t>(kRows) * kCols, 1.0f);
    const bool loaded =
        client_->Connect().ok() &&
        client_->LoadAll({.generation = 1}, [&](int, int) { return ones.data(); }).ok();
    if (!loaded) std::abort();
  }

  std::string folder_ = "/tmp/muster_benchmark_XXXXXX";
  const net::Token key_ = net::Token::Make().value();
  const net::transport::Identity self_ = {.job = "benchmark", .role = "chief"};
  std::unique_ptr<optim::Optimizer> optimizer_;
  Variables variables_;
  std::unique_ptr<Placement> placement_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Acceptor> acceptor_;
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
  static World world;
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
      status = world.client()
                   .PullBatch({.generation = 1, .sequence = world.sequence, .rows = 1},
                              {.tables = {&table, 1}, .dense = no_dense, .blocks = blocks})
                   .status();
    }
    if (pushes) {
      status.Update(world.client()
                        .PushBatch({.generation = 1, .sequence = world.sequence++, .rows = 1},
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
      rows.clear();
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

BENCHMARK(ReadRows)->Apply(BatchesAndThreads);
BENCHMARK(ApplyAdagrad)->Apply(BatchesAndThreads);
BENCHMARK(Pull)->Apply(Batches);
BENCHMARK(PushAdagrad)->Apply(Batches);
BENCHMARK(PullAndPush)->Apply(Batches);

}  // namespace
}  // namespace muster::ps
