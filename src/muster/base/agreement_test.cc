#include "muster/base/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using testing::ElementsAre;

TEST(AgreementTest, TermsComeBackAsTheyWerePrinted) {
  const std::vector<Term> terms = {{"epochs", "5"}, {"data", "4 files (a=b)"}, {"seed", "?"}};
  EXPECT_EQ(PrintAgreement(terms), "epochs=5; data=4 files (a=b); seed=?");
  EXPECT_EQ(ParseAgreement(PrintAgreement(terms)), terms);
  EXPECT_EQ(PrintAgreement({{"rule", "a; b"}}), "rule=a, b");
  EXPECT_THAT(ParseAgreement(""), ElementsAre());
  EXPECT_THAT(ParseAgreement("model 1"), ElementsAre(Term{"model 1", ""}));
}

TEST(AgreementTest, ADifferenceNamesBothTasksAndTheTermAlone) {
  const Agreed worker = {"worker-0", "epochs=1; seed=5; shuffle=no"};
  const Agreed chief = {"chief-0", "epochs=5; seed=5; shuffle=yes"};
  EXPECT_EQ(DescribeDifference(worker, chief),
            "worker-0 has [epochs 1, shuffle no], chief-0 has [epochs 5, shuffle yes]");
  EXPECT_EQ(DescribeDifference(worker, worker), "");
  EXPECT_EQ(DescribeDifference({"a", "model 1"}, {"b", "model 2"}),
            "a has [model 1], b has [model 2]");
  EXPECT_EQ(DescribeDifference({"a", "seed=1; seed=1"}, {"b", "seed=2; seed=2"}),
            "a has [seed 1], b has [seed 2]");
  EXPECT_EQ(DescribeDifference({"a", "seed=1"}, {"b", "seed=1; epochs=2"}),
            "a has [], b has [epochs 2]");
}

TEST(AgreementTest, WhoDoesNotKnowATermAgreesAndLearnsIt) {
  const std::string server = "data=?; seed=1", worker = "data=4 files; seed=1";
  EXPECT_EQ(DescribeDifference({"ps-0", server}, {"worker-0", worker}), "");
  EXPECT_EQ(CompleteAgreement(server, worker), worker);
  EXPECT_EQ(CompleteAgreement(worker, server), worker);
  EXPECT_EQ(CompleteAgreement("model 1", worker), "model 1");
}

}  // namespace
}  // namespace muster
