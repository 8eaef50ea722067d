// The expected numbers are those that clip_component_test.py computes with Keras.
#include "muster/train/weights/clip_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "muster/base/strings.h"

namespace muster::train {
namespace {

using ClipKind = optim::ClipSpec::Kind;
using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

// Records the gradients that it gets, in order. Table 3 wants squares.
class NotingSink : public engine::GradientSink {
 public:
  struct Note {
    std::string what;
    std::vector<float> values;
  };
  void Dense(int variable, std::span<const float> gradient) override {
    notes.push_back({StrCat("dense ", variable), {gradient.begin(), gradient.end()}});
  }
  void Rows(int variable, std::span<const int32_t> rows, std::span<const float> gradient) override {
    std::string what = StrCat("rows ", variable);
    for (const int32_t row : rows) what += StrCat(" ", row);
    notes.push_back({what, {gradient.begin(), gradient.end()}});
  }
  void Statistic(int variable, std::span<const float> value) override {
    notes.push_back({StrCat("statistic ", variable), {value.begin(), value.end()}});
  }
  bool WantsSquares(int variable) const override { return variable == 3; }
  std::vector<Note> notes;
};

const std::vector<float> kDense = {3, -4, 0.5f};
const std::vector<int32_t> kRows = {2, 5};
const std::vector<float> kRowGradients = {1, -2, 2, 4};

void GiveAll(ClipSink& sink) {
  sink.Dense(0, kDense);
  sink.Statistic(2, kDense);
  sink.Rows(1, kRows, kRowGradients);
}

TEST(ClipSinkTest, ClipsByValueAndNormAtOnce) {
  const struct {
    ClipKind kind;
    double limit;
    std::vector<float> dense, rows;
  } cases[] = {
      {ClipKind::kValue, 1, {1, -1, 0.5f}, {1, -1, 1, 1}},
      {ClipKind::kNorm, 2.5, {1.49255574f, -1.9900744f, 0.2487593f}, {0.5f, -1, 1, 2}},
      {ClipKind::kNorm, 100, kDense, kRowGradients},
  };
  for (const auto& one : cases) {
    NotingSink noting;
    ClipSink sink({one.kind, one.limit}, noting);
    for (int step = 0; step < 2; ++step) {
      noting.notes.clear();
      GiveAll(sink);
      ASSERT_EQ(noting.notes.size(), 3u);
      sink.Finish();
      ASSERT_EQ(noting.notes.size(), 3u);
      EXPECT_EQ(noting.notes[0].what, "dense 0");
      EXPECT_THAT(noting.notes[0].values, Pointwise(FloatNear(1e-6f), one.dense));
      EXPECT_EQ(noting.notes[1].what, "statistic 2");
      EXPECT_EQ(noting.notes[1].values, kDense);
      EXPECT_EQ(noting.notes[2].what, "rows 1 2 5");
      EXPECT_THAT(noting.notes[2].values, Pointwise(FloatNear(1e-6f), one.rows));
    }
  }
}

TEST(ClipSinkTest, ClipsByGlobalNormWhenAllGradientsHaveArrived) {
  NotingSink noting;
  ClipSink sink({ClipKind::kGlobalNorm, 3}, noting);
  for (int step = 0; step < 2; ++step) {
    noting.notes.clear();
    GiveAll(sink);
    ASSERT_EQ(noting.notes.size(), 1u);
    EXPECT_EQ(noting.notes[0].what, "statistic 2");
    sink.Finish();
    ASSERT_EQ(noting.notes.size(), 3u);
    EXPECT_EQ(noting.notes[1].what, "dense 0");
    EXPECT_THAT(noting.notes[1].values,
                Pointwise(FloatNear(1e-6f), {1.2696217f, -1.692829f, 0.21160363f}));
    EXPECT_EQ(noting.notes[2].what, "rows 1 2 5");
    EXPECT_THAT(noting.notes[2].values,
                Pointwise(FloatNear(1e-6f), {0.42320725f, -0.8464145f, 0.8464145f, 1.692829f}));
  }
}

TEST(ClipSinkTest, LeavesSmallAndEmptyGradients) {
  NotingSink noting;
  ClipSink sink({ClipKind::kGlobalNorm, 7.1}, noting);
  GiveAll(sink);
  sink.Rows(3, {}, {});
  sink.Finish();
  ASSERT_EQ(noting.notes.size(), 4u);
  EXPECT_EQ(noting.notes[1].values, kDense);
  EXPECT_EQ(noting.notes[2].values, kRowGradients);
  EXPECT_EQ(noting.notes[3].what, "rows 3");
  EXPECT_THAT(noting.notes[3].values, ElementsAre());
}

// In a table with squares each appearance of an id counts: here 9 + 16 + 0.25, twice.
TEST(ClipSinkTest, NormsAreOverTheEntriesOfATableWithSquares) {
  const std::vector<float> rows = {1, 2, 4, 5, 3, 1, 9, 7.25};
  for (const bool all : {false, true}) {
    NotingSink noting;
    ClipSink sink({all ? ClipKind::kGlobalNorm : ClipKind::kNorm, 2.5}, noting);
    EXPECT_TRUE(sink.WantsSquares(3));
    EXPECT_FALSE(sink.WantsSquares(1));
    if (all) sink.Dense(0, kDense);
    sink.Rows(3, std::vector<int32_t>{2, 5}, rows);
    sink.Rows(3, {}, {});
    sink.Finish();
    const double scale = 2.5 / std::sqrt(25.25 + (all ? 25.25 : 0));
    std::vector<float> expected;
    for (size_t i = 0; i < rows.size(); ++i) {
      expected.push_back(static_cast<float>(rows[i] * (i % 4 < 2 ? scale : scale * scale)));
    }
    ASSERT_EQ(noting.notes.size(), all ? 3u : 2u);
    EXPECT_EQ(noting.notes[all ? 1 : 0].what, "rows 3 2 5");
    EXPECT_THAT(noting.notes[all ? 1 : 0].values, Pointwise(FloatNear(1e-6f), expected));
    EXPECT_TRUE(noting.notes.back().values.empty());
  }
}

TEST(ClipSinkTest, AlreadyClippedTablesAreUnchanged) {
  NotingSink noting;
  ClipSink sink({.kind = ClipKind::kValue, .limit = 1, .tables_are_cut = true}, noting);
  GiveAll(sink);
  EXPECT_THAT(noting.notes[0].values, ElementsAre(1, -1, 0.5f));
  EXPECT_EQ(noting.notes[2].values, kRowGradients);
}

// NaN is forwarded, so that the next step finds it.
TEST(ClipSinkTest, ForwardsNan) {
  const std::vector<float> bad = {1, std::numeric_limits<float>::quiet_NaN()};
  for (const ClipKind kind : {ClipKind::kValue, ClipKind::kNorm, ClipKind::kGlobalNorm}) {
    NotingSink noting;
    ClipSink sink({kind, 0.5}, noting);
    sink.Dense(0, bad);
    sink.Finish();
    ASSERT_EQ(noting.notes.size(), 1u);
    EXPECT_TRUE(std::isnan(noting.notes[0].values[1]));
  }
}

}  // namespace
}  // namespace muster::train
