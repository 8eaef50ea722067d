// collectives_gloo RANKS FOLDER: gloo's all-reduce over TCP between processes, by its own choice of
// algorithm. FOLDER is empty; there its ranks find each other. They are bound to no core: its
// transport has a thread of its own, and is slower where both share one.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "one_rank.h"

namespace {

void RunRank(int rank, int ranks, const std::string& folder) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  void (*const sum)(void*, const void*, const void*, size_t) = &gloo::sum<float>;
  bench::MeasureSizes(rank, ranks,
                      {.all_reduce =
                           [&](float* values, size_t count) {
                             gloo::AllreduceOptions options(context);
                             options.setOutput(values, count);
                             options.setReduceFunction(sum);
                             gloo::allreduce(options);
                           },
                       .barrier =
                           [&] {
                             gloo::BarrierOptions options(context);
                             gloo::barrier(options);
                           }});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) bench::Die("usage: collectives_gloo RANKS FOLDER");
  const int ranks = std::atoi(argv[1]);
  return bench::RunRanks(ranks, false, [&](int rank) { RunRank(rank, ranks, argv[2]); });
}
