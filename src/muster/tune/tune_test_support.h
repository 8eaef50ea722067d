// What the tests of this layer share.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/formats/yaml_reader.h"
#include "muster/tune/study.h"

namespace muster::tune {

// The space of a YAML map; a test fails if it is wrong.
inline Space TestSpace(const std::string& yaml) {
  const auto reader = formats::YamlReader::Parse(yaml, "search.yaml");
  EXPECT_TRUE(reader.ok()) << reader.status();
  Space space = ParseSpace(*reader);
  EXPECT_TRUE(reader->ok()) << reader->status();
  return space;
}

inline StudySpec TestStudySpec() {
  return {.space = TestSpace("x: {uniform: [-5, 5]}\n"
                             "y: {loguniform: [0.001, 1]}\n"
                             "kind: {choice: [a, b]}\n"
                             "depth: {int: [1, 4], when: {kind: b}}\n"),
          .goal = {.metric = "loss"},
          .sampler = {.kind = SamplerSpec::Kind::kRandom},
          .budget = {.trials = 20},
          .seed = 7};
}

// A trial's value after some epochs: it falls from epoch to epoch.
inline double TestValue(const Point& point, int64_t epoch) {
  const double x = point[0], y = std::log10(point[1]) + 2;
  return x * x + y * y + (point[2] == 0 ? 1 : 0) + 1.0 / static_cast<double>(epoch);
}

}  // namespace muster::tune
