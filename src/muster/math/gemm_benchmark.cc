// Measures products of the layers of 845-1024-512-256 (forward, input gradient, weight gradient),
// in float and bfloat16: FLOP per second of one thread's CPU time.
#include <vector>

#include "benchmark/benchmark.h"
#include "muster/math/gemm.h"

namespace muster::math {
namespace {

enum Product { kForward, kInputGradient, kWeightGradient };

void LayerProduct(benchmark::State& state, Product product, bool bf16) {
  if (bf16 && !SupportsBf16()) {
    state.SkipWithError("this processor has no AMX with bfloat16");
    return;
  }
  const auto rows = static_cast<int>(state.range(0));
  const auto in = static_cast<int>(state.range(1)), out = static_cast<int>(state.range(2));
  const int64_t ld = (in + 15) / 16 * 16;
  const auto sized = [](int64_t n) { return std::vector<float>(static_cast<size_t>(n), 0.5f); };
  auto x = sized(rows * ld), y = sized(int64_t{rows} * out), w = sized(int64_t{in} * out);
  AlignedBuffer workspace;
  for ([[maybe_unused]] const auto iteration : state) {
    switch (product) {
      case kForward:
        Gemm({.m = rows,
              .n = out,
              .k = in,
              .a = x.data(),
              .a_row = ld,
              .b = w.data(),
              .ldb = out,
              .c = y.data(),
              .ldc = out,
              .bias = w.data(),
              .relu = true,
              .bf16 = bf16},
             workspace);
        break;
      case kInputGradient:
        Gemm({.m = rows,
              .n = in,
              .k = out,
              .a = y.data(),
              .a_row = out,
              .b = w.data(),
              .ldb = out,
              .b_transposed = true,
              .c = x.data(),
              .ldc = ld,
              .bf16 = bf16},
             workspace);
        break;
      case kWeightGradient:
        Gemm({.m = in,
              .n = out,
              .k = rows,
              .a = x.data(),
              .a_row = 1,
              .a_col = ld,
              .b = y.data(),
              .ldb = out,
              .c = w.data(),
              .ldc = out,
              .bf16 = bf16},
             workspace);
        break;
    }
    benchmark::DoNotOptimize(y.data());
  }
  state.counters["flop"] = benchmark::Counter(
      2.0 * rows * in * out * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void Shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"rows", "in", "out"});
  for (const int rows : {40, 512, 4096}) {
    benchmark->Args({rows, 845, 1024})->Args({rows, 1024, 512})->Args({rows, 512, 256});
  }
}

BENCHMARK_CAPTURE(LayerProduct, forward, kForward, false)->Apply(Shapes);
BENCHMARK_CAPTURE(LayerProduct, input_gradient, kInputGradient, false)->Apply(Shapes);
BENCHMARK_CAPTURE(LayerProduct, weight_gradient, kWeightGradient, false)->Apply(Shapes);
BENCHMARK_CAPTURE(LayerProduct, forward_bf16, kForward, true)->Apply(Shapes);
BENCHMARK_CAPTURE(LayerProduct, input_gradient_bf16, kInputGradient, true)->Apply(Shapes);
BENCHMARK_CAPTURE(LayerProduct, weight_gradient_bf16, kWeightGradient, true)->Apply(Shapes);

}  // namespace
}  // namespace muster::math
