#include "muster/optim/schedule.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "muster/optim/spec_words.h"

namespace muster::optim {
namespace {

using ScheduleKind = ScheduleSpec::Kind;

// Compares rates with those of tf.keras.optimizers.schedules, computed by make_test_vectors.py.
TEST(ScheduleTest, AgreesWithTensorFlow) {
  std::ifstream file(MUSTER_TESTDATA "/schedules.txt");
  std::string line, name;
  OptimizerSpec spec;
  int rates = 0;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first == "spec") {
      words >> name;
      spec = ParseSpecWords(words);
      EXPECT_TRUE(CheckSchedule(spec.schedule).ok()) << name;
      continue;
    }
    double rate = 0;
    words >> rate;
    // Near the end of a cosine, the rounding of pi is a visible part of the rate.
    EXPECT_NEAR(RateAt(spec, std::stoll(first)), rate, 1e-6 * rate + 1e-8) << name << " " << first;
    ++rates;
  }
  EXPECT_EQ(rates, 13 * 19);
}

TEST(ScheduleTest, WarmsUpBeforeAnySchedule) {
  ScheduleSpec spec;
  spec.warm_up_steps = 4;
  spec.warm_up_from = 0.1;
  EXPECT_FLOAT_EQ(LearningRateAt(0.5, spec, 0), 0.1f);
  EXPECT_FLOAT_EQ(LearningRateAt(0.5, spec, 1), 0.2f);
  EXPECT_FLOAT_EQ(LearningRateAt(0.5, spec, 4), 0.5f);
  EXPECT_FLOAT_EQ(LearningRateAt(0.5, spec, 1000), 0.5f);
  spec.kind = ScheduleKind::kExponential;
  spec.decay_steps = 10;
  spec.decay_rate = 0.5;
  EXPECT_FLOAT_EQ(LearningRateAt(0.5, spec, 2), 0.3f);
  EXPECT_FLOAT_EQ(LearningRateAt(0.5, spec, 14), 0.25f);
}

// Each period begins exactly at its step, with the full rate.
TEST(ScheduleTest, RestartsAtTheStepWhereAPeriodEnds) {
  ScheduleSpec spec;
  spec.kind = ScheduleKind::kCosineRestarts;
  for (const double t_mul : {1.0, 2.0, 3.0}) {
    spec.t_mul = t_mul;
    spec.decay_steps = 50;
    double end = 50, period = 50;
    for (int i = 0; i < 12; ++i) {
      EXPECT_FLOAT_EQ(LearningRateAt(0.1, spec, static_cast<int64_t>(end)), 0.1f) << end;
      EXPECT_LT(LearningRateAt(0.1, spec, static_cast<int64_t>(end) - 1), 0.001f) << end;
      period *= t_mul;
      end += period;
    }
  }
}

TEST(ScheduleTest, ChecksEveryRange) {
  struct Wrong {
    ScheduleKind kind;
    double ScheduleSpec::*field;
    double value;
    const char* name;
  };
  const Wrong wrongs[] = {
      {ScheduleKind::kConstant, &ScheduleSpec::warm_up_from, -1, "warm_up_from"},
      {ScheduleKind::kExponential, &ScheduleSpec::decay_steps, 0, "decay_steps"},
      {ScheduleKind::kExponential, &ScheduleSpec::decay_rate, 0, "decay_rate"},
      {ScheduleKind::kInverseTime, &ScheduleSpec::decay_rate, -0.5, "decay_rate"},
      {ScheduleKind::kPolynomial, &ScheduleSpec::end, std::numeric_limits<double>::quiet_NaN(),
       "end"},
      {ScheduleKind::kPolynomial, &ScheduleSpec::power, -1, "power"},
      {ScheduleKind::kCosine, &ScheduleSpec::alpha, 1.5, "alpha"},
      {ScheduleKind::kCosineRestarts, &ScheduleSpec::t_mul, 0.5, "t_mul"},
      {ScheduleKind::kCosineRestarts, &ScheduleSpec::m_mul, -1, "m_mul"},
  };
  for (const Wrong& wrong : wrongs) {
    ScheduleSpec spec;
    spec.kind = wrong.kind;
    spec.decay_steps = 10;
    spec.decay_rate = 0.5;
    EXPECT_TRUE(CheckSchedule(spec).ok()) << wrong.name;
    spec.*wrong.field = wrong.value;
    const absl::Status status = CheckSchedule(spec);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << wrong.name;
    EXPECT_NE(ToStd(status.message()).find(StrCat(wrong.name, " is ")), std::string::npos)
        << status;
  }
  ScheduleSpec piecewise;
  piecewise.kind = ScheduleKind::kPiecewise;
  piecewise.boundaries = {10, 20};
  piecewise.values = {1, 2};
  EXPECT_FALSE(CheckSchedule(piecewise).ok());
  piecewise.values = {1, 2, 3};
  EXPECT_TRUE(CheckSchedule(piecewise).ok());
  piecewise.boundaries = {10, 10};
  EXPECT_FALSE(CheckSchedule(piecewise).ok());
}

}  // namespace
}  // namespace muster::optim
