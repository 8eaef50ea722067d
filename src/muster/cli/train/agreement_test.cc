#include "muster/cli/train/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "CLI/CLI.hpp"
#include "muster/base/agreement.h"
#include "muster/cli/common/help.h"
#include "muster/cli/train/verbs.h"
#include "muster/io/memory_file_system.h"

namespace muster::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::set<std::string> MakeFlags(const CLI::App& verb) {
  std::set<std::string> flags;
  for (const CLI::Option* const option : verb.get_options()) {
    const bool has_dashes = !option->get_lnames().empty();
    flags.insert(has_dashes ? StrCat("--", option->get_lnames().front()) : option->get_name());
  }
  return flags;
}

// A new flag makes this test fail until a line in agreement.cc says whether all tasks must have the
// same value.
TEST(AgreementTableTest, ClassifiesEveryFlag) {
  CLI::App app;
  SetHelp(app);
  AddTrain(app, {});
  AddWorker(app);
  std::set<std::string> flags = MakeFlags(*app.get_subcommand("train"));
  flags.merge(MakeFlags(*app.get_subcommand("worker")));
  std::set<std::string> classified;
  for (const FlagUse& use : FlagUses()) {
    EXPECT_TRUE(classified.insert(std::string(use.flag)).second) << use.flag << " occurs twice";
    EXPECT_EQ(use.term.empty(), use.value == nullptr) << use.flag;
    EXPECT_NE(use.term.empty(), use.why_not.empty()) << use.flag;
  }
  std::vector<std::string> missing, stale;
  std::set_difference(flags.begin(), flags.end(), classified.begin(), classified.end(),
                      std::back_inserter(missing));
  std::set_difference(classified.begin(), classified.end(), flags.begin(), flags.end(),
                      std::back_inserter(stale));
  EXPECT_THAT(missing, IsEmpty()) << "flags without a line in cli/train/agreement.cc";
  EXPECT_THAT(stale, IsEmpty()) << "lines of cli/train/agreement.cc without a flag";
}

class AgreementOfTest : public testing::Test {
 protected:
  AgreementOfTest() : files_(io::NewMemoryFileSystem()) {
    EXPECT_TRUE(files_->MakeFolders("a").ok() && files_->MakeFolders("b").ok());
    Write("model.yaml", "model");
    for (const char* const name :
         {"a/part-0.csv", "a/part-1.csv", "b/part-0.csv", "b/part-1.csv"}) {
      Write(name, "x,y\n1,0\n");
    }
    flags_.spec = "model.yaml";
    flags_.data.patterns = {"a/part-*"};
    flags_.run.task_type = "chief";
    flags_.run.num_worker_replicas = 2;
  }
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(io::WriteFileAtomically(*files_, path, text).ok());
  }
  std::string Of(const TrainFlags& flags) {
    train::TrainSpec spec;
    spec.input.source.patterns = flags.data.patterns;
    spec.input.reader.epochs = flags.epochs;
    const auto agreement = MakeAgreement(flags, model_, spec, *files_);
    EXPECT_TRUE(agreement.ok()) << agreement.status();
    return agreement.ok() ? *agreement : "";
  }
  std::string Difference(const TrainFlags& other) {
    return DescribeDifference({"worker-0", Of(other)}, {"chief-0", Of(flags_)});
  }

  std::unique_ptr<io::FileSystem> files_;
  model::ModelSpec model_;
  TrainFlags flags_;
};

TEST_F(AgreementOfTest, DifferencesInClusterDataOrFlagsAreReported) {
  TrainFlags other = flags_;
  EXPECT_EQ(Difference(other), "");
  other.run.num_worker_replicas = 3;
  EXPECT_EQ(Difference(other), "worker-0 has [replicas 3], chief-0 has [replicas 2]");
  other = flags_;
  other.epochs = 5;
  EXPECT_EQ(Difference(other), "worker-0 has [epochs 5], chief-0 has [epochs unlimited]");
  other = flags_;
  other.data.patterns = {"a/part-0*"};
  EXPECT_THAT(Difference(other), HasSubstr("worker-0 has [data 1 file of 8 bytes"));
}

TEST_F(AgreementOfTest, MountsThreadsAndUnknownTermsMayDiffer) {
  TrainFlags other = flags_;
  other.data.patterns = {"b/part-*"};
  other.run.threads = 8;
  other.run.model_dir = "elsewhere";
  EXPECT_EQ(Difference(other), "");
  for (const char* const type : {"ps", "evaluator"}) {
    other.run.task_type = type;
    other.data.patterns = {"not/here*"};
    EXPECT_EQ(Difference(other), "");
  }
}

TEST_F(AgreementOfTest, EachTaskHasItsOwnStream) {
  flags_.data.patterns = {"-"};
  TrainFlags other = flags_;
  other.data.patterns = {"own.batches"};
  EXPECT_EQ(Difference(other), "");
}

}  // namespace
}  // namespace muster::cli
