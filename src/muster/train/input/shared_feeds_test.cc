#include "muster/train/input/shared_feeds.h"

#include <thread>

#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

using std::chrono::milliseconds;

constexpr int kRows = 3000;

class SharedFeedsTest : public TrainingTest {
 protected:
  SharedFeedsTest() {
    EXPECT_TRUE(io::WriteFileAtomically(*files_, "many.csv", Csv(kRows)).ok());
    auto spec = model::ParseModelSpec(*files_, kTestSpec, "spec.yaml");
    EXPECT_TRUE(spec.ok()) << spec.status();
    auto model = model::BuildModel(*spec);
    EXPECT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    spec_ = Training("many.csv").input;
    spec_.reader.batch_size = 512;
  }

  std::unique_ptr<BatchSource> Open(SharedFeeds& feeds) {
    auto source = feeds.Open(*files_, model_, spec_);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }
  std::unique_ptr<BatchSource> OpenAlone() {
    auto source = Input::Open(*files_, model_, spec_);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }

  // The next batch as text: its rows and its position; "end" after the last one.
  static std::string Describe(BatchSource& source) {
    const auto batch = source.Next();
    if (!batch.ok()) return std::string(ToStd(batch.status().message()));
    if (*batch == nullptr) return StrCat("end, ", source.bad_records(), " bad");
    std::string text = StrCat((*batch)->epoch, ": ");
    for (const features::DenseColumn& column : (*batch)->features.dense) {
      for (const float value : column.values) text += StrCat(value, " ");
    }
    for (const float label : (*batch)->features.labels) text += StrCat(label, " ");
    return text + data::SerializePosition((*batch)->position);
  }
  static std::vector<std::string> DescribeAll(BatchSource& source) {
    std::vector<std::string> all;
    do {
      all.push_back(Describe(source));
    } while (!all.back().starts_with("end") && !all.back().starts_with("many.csv"));
    return all;
  }

  model::Model model_;
  InputSpec spec_;
};

TEST_F(SharedFeedsTest, EachReaderGetsWhatItWouldGetAlone) {
  const std::vector<std::string> alone = DescribeAll(*OpenAlone());
  EXPECT_EQ(alone.size(), 1 + 3 * ((kRows + 511) / 512));
  SharedFeeds feeds({.readers = 4, .window = 2});
  std::vector<std::unique_ptr<BatchSource>> sources;
  for (int i = 0; i < 4; ++i) sources.push_back(Open(feeds));
  EXPECT_EQ(sources[3]->steps(), OpenAlone()->steps());
  std::vector<std::vector<std::string>> got(sources.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < sources.size(); ++i) {
      threads.emplace_back([&, i] { got[i] = DescribeAll(*sources[i]); });
    }
  }
  for (const auto& each : got) EXPECT_EQ(each, alone);
  EXPECT_EQ(feeds.counts().feeds, 1);
  EXPECT_EQ(feeds.counts().joined, 3);
  EXPECT_EQ(feeds.counts().detached, 0);
}

TEST_F(SharedFeedsTest, OneThatFallsBehindReadsAlone) {
  const std::vector<std::string> alone = DescribeAll(*OpenAlone());
  SharedFeeds feeds({.readers = 2, .window = 1, .patience = milliseconds(1)});
  const auto fast = Open(feeds), slow = Open(feeds);
  std::vector<std::string> begin = {Describe(*slow)};
  EXPECT_EQ(DescribeAll(*fast), alone);
  EXPECT_EQ(feeds.counts().detached, 1);
  std::vector<std::string> rest = DescribeAll(*slow);
  begin.insert(begin.end(), rest.begin(), rest.end());
  EXPECT_EQ(begin, alone);
}

TEST_F(SharedFeedsTest, OneThatBeginsLaterHasAFeedOfItsOwn) {
  const std::vector<std::string> alone = DescribeAll(*OpenAlone());
  SharedFeeds feeds({.readers = 2, .window = 1, .begin_patience = milliseconds(1)});
  const auto first = Open(feeds);
  EXPECT_EQ(DescribeAll(*first), alone) << "it waits for the other one for a moment only";
  const auto second = Open(feeds);
  EXPECT_EQ(DescribeAll(*second), alone);
  EXPECT_EQ(feeds.counts().feeds, 2);
}

TEST_F(SharedFeedsTest, OneThatLeavesIsNotWaitedFor) {
  const std::vector<std::string> alone = DescribeAll(*OpenAlone());
  SharedFeeds feeds({.readers = 2, .window = 1, .patience = std::chrono::hours(1)});
  auto leaves = Open(feeds);
  const auto stays = Open(feeds);
  Describe(*leaves);
  leaves.reset();
  EXPECT_EQ(DescribeAll(*stays), alone);
}

TEST_F(SharedFeedsTest, OtherOrdersAreOtherFeeds) {
  SharedFeeds feeds({.readers = 3});
  const auto first = Open(feeds);
  spec_.reader.batch_size = 100;
  const auto other_batches = Open(feeds);
  spec_.reader.batch_size = 512;
  spec_.reader.seed = 6;
  const auto other_order = Open(feeds);
  spec_.reader.seed = 5;
  model_.spec.features.columns.front().shape = 7;
  const auto other_columns = feeds.Open(*files_, model_, spec_);
  EXPECT_EQ(feeds.counts().joined, 0);
}

TEST_F(SharedFeedsTest, AnErrorReachesEachReaderAtItsPlace) {
  const std::string csv = Csv(kRows);
  ASSERT_TRUE(io::WriteFileAtomically(*files_, "many.csv", csv + "1,nothing,red,1\n").ok());
  spec_.reader.shuffle = false;
  const std::vector<std::string> alone = DescribeAll(*OpenAlone());
  EXPECT_THAT(alone.back(), testing::HasSubstr("many.csv:3002"));
  SharedFeeds feeds({.readers = 2});
  const auto first = Open(feeds), second = Open(feeds);
  EXPECT_EQ(DescribeAll(*first), alone);
  EXPECT_EQ(DescribeAll(*second), alone);
}

}  // namespace
}  // namespace muster::train
