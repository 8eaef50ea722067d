// What each side of bench/run collectives measures, a rank a process: sizes, checks, times. Knows
// neither Muster nor a peer.
#pragma once

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace bench {

struct Collective {
  std::function<void(float* values, size_t count)> all_reduce;  // the sum, in place
  std::function<void()> barrier;
};

inline void Die(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::_Exit(1);
}

inline void BindToCore(int rank) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(rank % cores), &set);
  sched_setaffinity(0, sizeof set, &set);
}

// Whole numbers, whose sums are exact in any order.
inline void CheckSum(int rank, int ranks, size_t count, const Collective& collective) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(rank + 1) + float(i % 1000);
  collective.all_reduce(values.data(), count);
  for (size_t i = 0; i < count; ++i) {
    const float sum = static_cast<float>(ranks * (ranks + 1) / 2) + float(ranks) * float(i % 1000);
    if (values[i] != sum) Die("value " + std::to_string(i) + " of the sum is wrong");
  }
}

// Microseconds of one all-reduce: the fastest of several batches, each from barrier to barrier.
inline double Micros(int ranks, size_t count, const Collective& collective) {
  constexpr int kBatches = 10;
  const size_t bytes = count * sizeof(float);
  // Ranks that share a core wait for each other's turns: milliseconds a call.
  const size_t most = ranks > static_cast<int>(std::thread::hardware_concurrency()) ? 40 : 400;
  const int times = static_cast<int>(std::clamp<size_t>((size_t{8} << 20) / bytes, 1, most));
  std::vector<float> values(count, 0.0F);
  std::vector<double> batches;
  for (int batch = -1; batch < kBatches; ++batch) {  // the first one warms up
    collective.barrier();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) collective.all_reduce(values.data(), count);
    collective.barrier();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    if (batch >= 0) batches.push_back(took.count() / times);
  }
  return *std::min_element(batches.begin(), batches.end());
}

// Rank 0 prints {"BYTES": MICROSECONDS, ...}.
inline void MeasureSizes(int rank, int ranks, const Collective& collective) {
  std::string line;
  for (const size_t bytes : {size_t{64}, size_t{1} << 10, size_t{16} << 10, size_t{256} << 10,
                             size_t{1} << 20, size_t{16} << 20, size_t{64} << 20}) {
    CheckSum(rank, ranks, bytes / sizeof(float), collective);
    char text[64];
    std::snprintf(text, sizeof text, "%s\"%zu\": %.4f", line.empty() ? "{" : ", ", bytes,
                  Micros(ranks, bytes / sizeof(float), collective));
    line += text;
  }
  if (rank == 0) std::printf("%s}\n", line.c_str());
}

// Each rank in a process of its own, `bound` to a core where there are enough; exits with the first
// that failed.
inline int RunRanks(int ranks, bool bound, const std::function<void(int rank)>& run) {
  std::fflush(stdout);
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() != 0) continue;
    if (bound) BindToCore(rank);
    run(rank);
    std::fflush(stdout);
    std::_Exit(0);
  }
  int failed = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    wait(&status);
    if (status != 0) failed = 1;
  }
  return failed;
}

}  // namespace bench
