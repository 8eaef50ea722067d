// Tests what a step refuses before any gradient is given.
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/engine/native/graph.h"
#include "muster/engine/native/test_support.h"

namespace muster::engine::native {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(NativeEngineErrorsTest, AnInfiniteLossGivesNoGradient) {
  class InfiniteHead final : public Head {
    int logits_dimension() const override { return 1; }
    absl::Status CheckLabels(std::span<const float>) const override { return absl::OkStatus(); }
    void Loss(std::span<const float>, std::span<const float>, std::span<const float>, float,
              double* loss_sum, std::span<float>) const override {
      *loss_sum = std::numeric_limits<double>::infinity();
    }
  };
  GraphBuilder graph;
  const Node logits = graph.Linear({.tables = {{"t", 0, 9}}});
  const auto engine = std::move(graph).Finish(logits, std::make_unique<InfiniteHead>()).value();
  TestWeights weights(*engine);
  RecordingSink sink(*engine);
  const auto result = engine->Step(weights.views(), IdBatch({1}), {.step = 6}, sink);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(std::isinf(result->loss));
  EXPECT_THAT(sink.order, IsEmpty());
}

TEST(NativeEngineErrorsTest, BadBatchesAreRefused) {
  const auto engine = NewWideAndDeep(2);
  TestWeights weights(*engine);
  const auto good = RandomBatch(WideAndDeepShape());
  const auto expect_error = [&](features::FeatureBatch batch, const std::string& message) {
    RecordingSink sink(*engine);
    const auto result = engine->Step(weights.views(), batch, {}, sink);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(message));
    EXPECT_THAT(sink.order, IsEmpty());
  };
  auto batch = good;
  batch.id_lists[0].ids[4] = 9;
  expect_error(batch, "id list 0, entry 4: id 9 is outside table e0 of 9 rows");
  batch.id_lists[0].ids[4] = -2;
  expect_error(batch, "id list 0, entry 4: id -2 is outside");
  batch.id_lists[0].ids[4] = std::numeric_limits<int32_t>::min();
  expect_error(batch, "is outside");
  batch = good;
  batch.id_lists[2].ids.back() = 100;
  expect_error(batch, "id 100 is outside table e2");
  batch = good;
  batch.id_lists[1].ids.pop_back();
  expect_error(batch, "id list 1 of table e1");
  batch = good;
  batch.id_lists[2].offsets.back() += 1;
  expect_error(batch, "id list 2 of table e2");
  batch = good;
  std::swap(batch.id_lists[2].offsets[3], batch.id_lists[2].offsets[12]);
  expect_error(batch, "id list 2 of table e2");
  batch = good;
  batch.id_lists.pop_back();
  expect_error(batch, "the batch has 2 id lists");
  batch = good;
  batch.dense[0].values.pop_back();
  expect_error(batch, "dense column 0 of the batch is not 23 x 2");
  batch = good;
  batch.dense.pop_back();
  expect_error(batch, "dense column 1");
  batch = good;
  batch.labels[22] = 3;
  expect_error(batch, "row 22: label 3");
  batch = good;
  batch.labels.clear();
  expect_error(batch, "0 labels");
  batch = good;
  batch.weights.pop_back();
  expect_error(batch, "22 weights");
  expect_error({}, "the batch has no rows");

  RecordingSink sink(*engine);
  EXPECT_EQ(engine->Step(weights.views().subspan(1), good, {}, sink).status().code(),
            absl::StatusCode::kInvalidArgument);
  weights.mutable_views()[weights.GetIndex("h0/kernel")].rows -= 1;
  EXPECT_THAT(std::string(engine->Step(weights.views(), good, {}, sink).status().message()),
              HasSubstr("the memory of variable h0/kernel"));
}

}  // namespace
}  // namespace muster::engine::native
