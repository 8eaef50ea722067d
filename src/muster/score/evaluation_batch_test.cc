#include "muster/score/evaluation_batch.h"

#include "gtest/gtest.h"
#include "muster/checkpoint/tensor_names.h"
#include "muster/formats/bundle.h"
#include "muster/io/memory_file_system.h"

namespace muster::score {
namespace {

class EvaluationBatchTest : public testing::Test {
 protected:
  EvaluationBatchTest() {
    spec_.train.batch_size = 32;
    Set(/*by_batch=*/true);
  }
  void Set(bool by_batch) {
    engine::tensorflow::KerasExport exported;
    exported.evaluates_by_batch = by_batch;
    spec_.exported = std::make_shared<const engine::tensorflow::KerasExport>(exported);
  }
  void Save(const std::string& prefix, const std::string& rows) {
    ASSERT_TRUE(files_->MakeFolders("m").ok());
    auto writer = formats::BundleWriter::Create(*files_, prefix);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE((*writer)->AddStrings(checkpoint::kBatchSizeName, {}, {&rows, 1}).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
  }
  int Rows(const std::string& checkpoint = "") {
    return EvaluationBatchSize(*files_, spec_, "m", checkpoint);
  }

  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
  model::ModelSpec spec_;
};

TEST_F(EvaluationBatchTest, IsTheBatchSizeOfTheTraining) {
  Save("m/model.ckpt-1", "40");
  Save("m/model.ckpt-2", "64");
  EXPECT_EQ(Rows(), 64) << "batch size of the newest checkpoint";
  EXPECT_EQ(Rows("m/model.ckpt-1"), 40);
}

TEST_F(EvaluationBatchTest, IsTheModelsDefaultWithoutACheckpointThatHasIt) {
  EXPECT_EQ(Rows(), 32) << "no checkpoint";
  Save("m/model.ckpt-1", "many");
  EXPECT_EQ(Rows(), 32);
}

TEST_F(EvaluationBatchTest, IsZeroWhereNoValueDependsOnIt) {
  Save("m/model.ckpt-1", "40");
  Set(/*by_batch=*/false);
  EXPECT_EQ(Rows(), 0);
  spec_.exported.reset();
  EXPECT_EQ(Rows(), 0);
}

}  // namespace
}  // namespace muster::score
