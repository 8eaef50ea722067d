#include "muster/formats/summary.h"

#include <fstream>
#include <functional>
#include <map>

#include "absl/strings/escaping.h"

#include "gtest/gtest.h"
#include "muster/formats/hparams.h"

namespace muster::formats {
namespace {

// Reads testdata/summaries.txt, which make_test_summaries.py wrote.
std::map<std::string, std::string> TensorBoardsSummaries() {
  std::ifstream file(MUSTER_TESTDATA "/summaries.txt");
  std::map<std::string, std::string> summaries;
  for (std::string name, hex; file >> name >> hex;) summaries[name] = hex;
  return summaries;
}

TEST(SummaryTest, EncodesAsTensorBoardDoes) {
  const auto start = [](const char* name, HparamValue value) {
    return [name, value](Summary* s) { AddHparamSessionStart({{name, value}}, 2.5, s); };
  };
  const std::map<std::string, std::function<void(Summary*)>> ours = {
      {"scalar", [](Summary* s) { s->AddScalar("loss", 0.5f); }},
      {"histogram",
       [](Summary* s) {
         s->AddHistogram("dnn/kernel", {.min = -1,
                                        .max = 2,
                                        .count = 4,
                                        .sum = 2.5,
                                        .sum_of_squares = 6.25,
                                        .limits = {0.5, 2},
                                        .buckets = {1, 3}});
       }},
      {"text", [](Summary* s) { s->AddText("spec", CodeBlock("a: 1")); }},
      {"experiment",
       [](Summary* s) {
         AddHparamExperiment({.created_seconds = 1.5,
                              .settings = {{"activation", HparamInfo::Type::kString},
                                           {"batch_norm", HparamInfo::Type::kBool},
                                           {"rate", HparamInfo::Type::kNumber, true}},
                              .metrics = {{"eval", "auc", "AUC"}}},
                             s);
       }},
      {"activation", start("activation", "relu")},
      {"batch_norm", start("batch_norm", true)},
      {"rate", start("rate", 0.25)},
      {"end", [](Summary* s) { AddHparamSessionEnd(HparamStatus::kSuccess, 3.5, s); }},
  };
  const auto theirs = TensorBoardsSummaries();
  ASSERT_EQ(theirs.size(), ours.size());
  for (const auto& [name, add] : ours) {
    Summary summary;
    EXPECT_TRUE(summary.empty());
    add(&summary);
    ASSERT_TRUE(theirs.contains(name)) << name;
    EXPECT_EQ(absl::BytesToHexString(summary.bytes()), theirs.at(name)) << name;
  }
}

TEST(SummaryTest, HoldsManyValues) {
  Summary one, other, both;
  one.AddScalar("a", 1);
  other.AddText("b", "text");
  both.AddScalar("a", 1);
  both.AddText("b", "text");
  EXPECT_EQ(both.bytes(), one.bytes() + other.bytes());
}

TEST(SummaryTest, CodeBlocksShowAnyText) {
  EXPECT_EQ(CodeBlock(""), "");
  EXPECT_EQ(CodeBlock("a"), "    a\n");
  EXPECT_EQ(CodeBlock("a:\n  b\n\n```\n"), "    a:\n      b\n    \n    ```\n");
}

}  // namespace
}  // namespace muster::formats
