#include "muster/train/reduce_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/collective/collectives.h"
#include "muster/collective/test_ranks.h"

namespace muster::train {
namespace {

using collective::Group;

class NoSink : public engine::GradientSink {
 public:
  void Dense(int, std::span<const float>) override { ++calls; }
  void Rows(int, std::span<const int32_t>, std::span<const float>) override { ++calls; }
  void Statistic(int, std::span<const float>) override { ++calls; }
  int calls = 0;
};

TEST(ReduceSinkTest, ARankHasNotMoreRowsThanTheTable) {
  std::vector<engine::VariableSpec> specs(1);
  specs[0].name = "table";
  specs[0].kind = engine::VariableKind::kTable;
  specs[0].shape = {10, 4};
  // A note of a MiB, a count, and of ten rows the number and four floats.
  const uint64_t most = (1 << 20) + 4 + 10 * (4 + 4 * 4);
  collective::TestRanks ranks(2);
  NoSink given;
  const auto results = ranks.Run([&](Group& group) {
    std::vector<float> losses = {1, 1};
    if (group.rank() == 1) {
      MUSTER_RETURN_IF_ERROR(collective::AllReduce(group, losses));
      const uint64_t announced = most + 1;
      std::vector<uint64_t> sizes(2);
      return collective::AllGather(group, std::as_bytes(std::span(&announced, 1)),
                                   std::as_writable_bytes(std::span(sizes)));
    }
    ReduceSink sink(specs);
    sink.Begin(group, 0.5, /*early=*/false);
    sink.Rows(0, std::vector<int32_t>{3}, std::vector<float>{1, 2, 3, 4});
    engine::StepResult result = {.loss = 1, .data_loss = 1};
    std::vector<std::string> notes;
    return sink.Reduce(&result, "note", &notes, given);
  });
  EXPECT_EQ(results[0].code(), absl::StatusCode::kDataLoss) << results[0];
  EXPECT_THAT(ToStd(results[0].message()),
              testing::HasSubstr(StrCat(most + 1, " bytes, of which it can have ", most)));
  EXPECT_EQ(given.calls, 0);
}

}  // namespace
}  // namespace muster::train
