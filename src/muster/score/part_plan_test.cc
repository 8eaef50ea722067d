#include "muster/score/part_plan.h"

#include "muster/train/training_test_support.h"

namespace muster::score {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using train::RunConfig;
using train::TrainSpec;

// The text "id
// 1
// ", compressed.
const std::string kGzip(
    "\037\213\010\000\000\000\000\000\002\003\313\114\341\062\344\002\000\017\351\133\315\005\000"
    "\000\000",
    25);

class PartPlanTest : public train::TrainingTest {
 protected:
  PartPlanTest() {
    TrainSpec spec = Training();
    spec.max_steps = 3;
    EXPECT_TRUE(Train("model", spec).ok());
    EXPECT_TRUE(files_->MakeFolders("data").ok());
    EXPECT_TRUE(files_->MakeFolders("out").ok());
    for (const char* name : {"data/a.csv", "data/b.csv", "data/c.csv"}) Write(name, Csv(10));
  }
  absl::StatusOr<PartPlan> Make(int processes, const std::string& settings = "csv") {
    return MakePartPlan(*files_, {.patterns = {"data/*.csv"},
                                  .model_dir = "model",
                                  .settings = settings,
                                  .suffix = ".csv",
                                  .processes = processes});
  }
  // Returns the error with which OpenPartPlan refuses to continue the folder's plan.
  std::string Refused(const std::string& settings = "csv") {
    const absl::Status status = OpenPartPlan(*files_, "out", Make(2, settings).value()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    return std::string(ToStd(status.message()));
  }
};

TEST_F(PartPlanTest, PartsAreWholeFilesIfThereAreEnough) {
  const auto plan = Make(3);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->parts, 3);
  EXPECT_FALSE(plan->by_record);
  EXPECT_EQ(plan->data[1].path, "data/b.csv");
  EXPECT_EQ(plan->checkpoint, "model/model.ckpt-3");
  EXPECT_EQ(PartPath("out", *plan, 2), "out/part-00002-of-00003.csv");
}

TEST_F(PartPlanTest, AFolderWithNothingButAPlanIsRemoved) {
  const PartPlan plan = OpenPartPlan(*files_, "out", Make(2).value()).value();
  Write("out/part-00000-of-00003.csv.tmp", "x");
  EXPECT_TRUE(RemoveUnusedPlan(*files_, "out").ok());
  EXPECT_TRUE(OpenPartPlan(*files_, "out", Make(2).value()).ok());
  EXPECT_TRUE(files_->Remove("out/part-00000-of-00003.csv.tmp").ok());
  EXPECT_TRUE(RemoveUnusedPlan(*files_, "out").ok());
  EXPECT_TRUE(absl::IsNotFound(files_->Stat("out").status()));
}

TEST_F(PartPlanTest, FewerFilesAreCutByRecord) {
  const auto plan = Make(4);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->parts, 4);
  EXPECT_EQ(plan->GetShard(1).by, data::ShardBy::kRecord);
}

TEST_F(PartPlanTest, NoBatchIsCutUnlessAFileIsCompressed) {
  PartPlanOptions options = {
      .patterns = {"data/*.csv"}, .model_dir = "model", .processes = 2, .batch_size = 4};
  const auto plan = MakePartPlan(*files_, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->parts, 2);
  EXPECT_EQ(plan->GetShard(1).by, data::ShardBy::kRecord);
  EXPECT_EQ(plan->GetShard(1).multiple, 4);
  Write("data/d.csv.gz", kGzip);
  options.patterns.push_back("data/*.csv.gz");
  const auto by_file = MakePartPlan(*files_, options);
  ASSERT_TRUE(by_file.ok()) << by_file.status();
  EXPECT_EQ(by_file->parts, 4);
  EXPECT_EQ(by_file->GetShard(1).by, data::ShardBy::kFile);
}

TEST_F(PartPlanTest, IsReadAsItWasWritten) {
  PartPlan plan = Make(4).value();
  for (const int multiple : {1, 100}) {
    plan.multiple = multiple;
    const auto parsed = ParsePartPlan(Print(plan), "plan");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, plan);
  }
}

TEST_F(PartPlanTest, APlanOfAnOlderVersionHasNoMultiple) {
  const auto parsed = ParsePartPlan(R"({"version":1,"parts":2})", "plan");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->multiple, 1);
}

TEST_F(PartPlanTest, TextThatIsNoPlanIsRefusedWithTheReason) {
  for (const char* text :
       {"", "[]", "{}", R"({"version":2,"parts":1})", R"({"version":1,"parts":0})",
        R"({"version":1,"parts":1,"multiple":0})", R"({"version":1,"parts":1,"data":[3]})",
        R"({"version":1,"parts":1,"data":{}})"}) {
    const absl::Status status = ParsePartPlan(text, "out/_parts.json").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(ToStd(status.message()), HasSubstr("out/_parts.json"));
  }
}

TEST_F(PartPlanTest, AnotherNumberOfProcessesContinuesWithTheSameCuts) {
  const PartPlan first = OpenPartPlan(*files_, "out", Make(5).value()).value();
  EXPECT_EQ(first.parts, 5);
  const auto again = OpenPartPlan(*files_, "out", Make(2).value());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, first);
}

TEST_F(PartPlanTest, AnotherModelDataOrSettingIsRefusedByName) {
  ASSERT_TRUE(OpenPartPlan(*files_, "out", Make(2).value()).ok());
  EXPECT_THAT(Refused("jsonl"), AllOf(HasSubstr("[csv]"), HasSubstr("[jsonl]")));
  clock_.Advance(1);
  Write("data/b.csv", Csv(11));
  EXPECT_THAT(Refused(), HasSubstr("data/b.csv has changed"));
  Write("data/aa.csv", Csv(1));
  EXPECT_THAT(Refused(), AllOf(HasSubstr("data/b.csv"), HasSubstr("data/aa.csv")));
  TrainSpec more = Training();
  more.max_steps = 5;
  ASSERT_TRUE(Train("model", more).ok());
  EXPECT_THAT(Refused(),
              AllOf(HasSubstr("--checkpoint model/model.ckpt-3"), HasSubstr("model/model.ckpt-5")));
}

TEST_F(PartPlanTest, AModelTrainedAnewUnderTheSameNameIsRefused) {
  ASSERT_TRUE(OpenPartPlan(*files_, "out", Make(2).value()).ok());
  ASSERT_TRUE(files_->RemoveAll("model").ok());
  TrainSpec spec = Training();
  spec.max_steps = 3;
  RunConfig config = Config("model");
  config.seed = 77;
  ASSERT_TRUE(Train(config, spec).ok());
  EXPECT_THAT(Refused(), HasSubstr("has changed"));
}

TEST_F(PartPlanTest, AnExportedModelHasAFileOfItsOwn) {
  ASSERT_TRUE(files_->Remove("model/model.yaml").ok());
  EXPECT_THAT(ToStd(Make(2).status().message()), HasSubstr("model/model.yaml"));
  ASSERT_TRUE(files_->MakeFolders("model/exported").ok());
  Write("model/exported/model.json", "{}");
  const auto plan = Make(2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(OpenPartPlan(*files_, "out", *plan).ok());
  EXPECT_TRUE(OpenPartPlan(*files_, "out", Make(2).value()).ok());
  Write("model/exported/model.json", R"({"other": 1})");
  EXPECT_THAT(Refused(), HasSubstr("has changed"));
}

TEST_F(PartPlanTest, PartsWithoutAPlanAreRefused) {
  Write("out/part-00000-of-00002.csv", "id\n");
  EXPECT_THAT(Refused(), AllOf(HasSubstr("part-00000-of-00002.csv"), HasSubstr("_parts.json")));
}

TEST_F(PartPlanTest, APartIsDoneWhenItsFileExists) {
  const PartPlan plan = OpenPartPlan(*files_, "out", Make(2).value()).value();
  Write("out/.part-00001-of-00003.csv.tmp-7", "half");
  Write("out/part-00002-of-00003.csv", "whole");
  EXPECT_FALSE(*PartIsDone(*files_, "out", plan, 1));
  EXPECT_FALSE(files_->Stat("out/.part-00001-of-00003.csv.tmp-7").ok());
  EXPECT_TRUE(*PartIsDone(*files_, "out", plan, 2));
}

}  // namespace
}  // namespace muster::score
