// Checks that steps after the first take no memory from the heap.
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "gtest/gtest.h"
#include "muster/engine/native/graph.h"
#include "muster/engine/native/test_support.h"

namespace {

std::atomic<int64_t> allocations{0};

}  // namespace

// Not inlined, since g++ then warns that malloc and free do not match.
__attribute__((noinline)) void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace muster::engine::native {
namespace {

class IgnoringSink final : public GradientSink {
  void Dense(int, std::span<const float>) override {}
  void Rows(int, std::span<const int32_t>, std::span<const float>) override {}
  void Statistic(int, std::span<const float>) override {}
};

TEST(AllocationTest, StepsReuseTheirMemory) {
  for (const int threads : {1, 3}) {
    GraphBuilder graph;
    Node x = graph.Concat(
        {graph.DenseInput(0, 2), graph.EmbeddingBag({.name = "e0", .rows = 50, .dimension = 8}),
         graph.EmbeddingBag({.name = "e1", .id_list = 1, .rows = 50, .dimension = 3})});
    x = graph.Dense(x, {.name = "h", .units = 20, .activation = Activation::kRelu, .l2 = 0.1});
    x = graph.Dropout(graph.BatchNorm(x, {.name = "n"}), 0.2);
    const Node deep = graph.Dense(x, {.name = "logits", .units = 1});
    const Node wide = graph.Linear(
        {.tables = {{"t0", 0, 50}, {"t1", 1, 50}}, .dense = {{"d", 0, 2}}, .bias_name = "bias"});
    const auto engine = std::move(graph)
                            .Finish(graph.Add(deep, wide), NewBinaryHead(), {.threads = threads})
                            .value();
    TestWeights weights(*engine);
    std::vector<features::FeatureBatch> batches;
    for (const int rows : {60, 60, 17, 60}) {
      batches.push_back(RandomBatch(
          {.rows = rows, .dense_widths = {2}, .one_per_row_lists = 2, .table_rows = 50}));
    }
    IgnoringSink sink;
    ASSERT_TRUE(engine->Step(weights.views(), batches[0], {}, sink).ok());
    const int64_t before = allocations.load();
    for (const auto& batch : batches) {
      ASSERT_TRUE(engine->Step(weights.views(), batch, {.step = 1}, sink).ok());
    }
    EXPECT_EQ(allocations.load(), before) << threads << " threads";
  }
}

}  // namespace
}  // namespace muster::engine::native
