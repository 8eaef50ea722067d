#include "muster/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/checkpoint/checkpoint_test_util.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CheckpointTest, SavesFindsAndRestores) {
  const auto files = io::NewMemoryFileSystem();
  EXPECT_TRUE(absl::IsNotFound(Latest(*files, "m").status()));
  const auto prefix = SaveStep(*files, 100, 1.5f);
  ASSERT_TRUE(prefix.ok()) << prefix.status();
  EXPECT_EQ(*prefix, "m/model.ckpt-100");
  const auto loaded = LoadLatest(*files);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->step, 100);
  EXPECT_EQ(loaded->value, 1.5f);
  EXPECT_EQ(loaded->note, "");
  EXPECT_EQ(*io::ReadFile(*files, "m/checkpoint"),
            "model_checkpoint_path: \"model.ckpt-100\"\n"
            "all_model_checkpoint_paths: \"model.ckpt-100\"\n"
            "all_model_checkpoint_timestamps: 1700000000.5\n"
            "last_preserved_timestamp: 1700000000.5\n");
}

TEST(CheckpointTest, ReadsTensorFlowsStateFile) {
  const auto files = io::NewMemoryFileSystem();
  ASSERT_TRUE(SaveStep(*files, 7, 1).ok());
  ASSERT_TRUE(io::WriteFileAtomically(*files, "m/checkpoint",
                                      "# a comment\n"
                                      "model_checkpoint_path: \"/abs/\\\"q\\\" \\303\\244\"\n"
                                      "all_model_checkpoint_paths: 'one'\n"
                                      "all_model_checkpoint_paths: \"two\"\n"
                                      "all_model_checkpoint_timestamps: 1.7e+09\n"
                                      "last_preserved_timestamp: -1700000000.5\n")
                  .ok());
  const auto state = ReadState(*files, "m");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->latest, "/abs/\"q\" \xc3\xa4");
  EXPECT_THAT(state->all, ElementsAre("one", "two"));
  EXPECT_THAT(state->timestamps, ElementsAre());  // fewer than checkpoints: not used
  EXPECT_EQ(state->last_preserved, -1700000000.5);
  // The checkpoints that it names do not exist.
  EXPECT_EQ(*Latest(*files, "m"), "m/model.ckpt-7");
}

TEST(CheckpointTest, ABrokenStateFileIsAnErrorOnlyOfReadState) {
  const auto files = io::NewMemoryFileSystem();
  ASSERT_TRUE(SaveStep(*files, 7, 1).ok());
  for (const char* text :
       {"", "model_checkpoint_path", "model_checkpoint_path: \"open", "{\"a\": 1}",
        "model_checkpoint_path: \"\\q\"", "all_model_checkpoint_paths: \"a\"",
        "model_checkpoint_path: \"model.ckpt-7\" last_preserved_timestamp: soon",
        "model_checkpoint_path: \"model.ckpt-7\" all_model_checkpoint_timestamps: inf"}) {
    ASSERT_TRUE(io::WriteFileAtomically(*files, "m/checkpoint", text).ok());
    EXPECT_TRUE(absl::IsDataLoss(ReadState(*files, "m").status())) << text;
    EXPECT_EQ(*Latest(*files, "m"), "m/model.ckpt-7") << text;
  }
  ASSERT_TRUE(SaveStep(*files, 8, 1).ok());
  EXPECT_EQ(*Latest(*files, "m"), "m/model.ckpt-8");
}

TEST(CheckpointTest, LatestFallsBackToIntactCheckpoints) {
  const auto files = io::NewMemoryFileSystem();
  for (int step : {9, 10, 11}) {
    ASSERT_TRUE(SaveStep(*files, step, static_cast<float>(step)).ok());
  }
  ASSERT_TRUE(files->Remove("m/model.ckpt-11.data-00000-of-00001").ok());
  EXPECT_EQ(*Latest(*files, "m"), "m/model.ckpt-10");
  ASSERT_TRUE(files->Remove("m/checkpoint").ok());
  EXPECT_EQ(*Latest(*files, "m"), "m/model.ckpt-10");
  const std::string index = *io::ReadFile(*files, "m/model.ckpt-10.index");
  ASSERT_TRUE(
      io::WriteFileAtomically(*files, "m/model.ckpt-10.index", index.substr(0, index.size() - 1))
          .ok());
  EXPECT_EQ(*Latest(*files, "m"), "m/model.ckpt-9");
  ASSERT_TRUE(files->Remove("m/model.ckpt-9.index").ok());
  // A training must not start over and overwrite them.
  const absl::Status none = Latest(*files, "m").status();
  EXPECT_TRUE(absl::IsDataLoss(none)) << none;
  EXPECT_THAT(none.ToString(), AllOf(HasSubstr("no intact checkpoint in m"),
                                     HasSubstr("model.ckpt-11.data-00000-of-00001"),
                                     HasSubstr("model.ckpt-10.index")));
}

TEST(CheckpointTest, ARemovedCheckpointIsNotBroken) {
  const auto files = io::NewMemoryFileSystem();
  for (int step : {1, 2}) ASSERT_TRUE(SaveStep(*files, step, 1).ok());
  ASSERT_TRUE(files->Remove("m/model.ckpt-2.index").ok());
  ASSERT_TRUE(files->Remove("m/model.ckpt-2.data-00000-of-00001").ok());
  EXPECT_EQ(LoadLatest(*files)->step, 1);
  EXPECT_EQ(LoadLatest(*files)->note, "");
  ASSERT_TRUE(files->Remove("m/model.ckpt-1.index").ok());
  EXPECT_TRUE(absl::IsNotFound(LoadLatest(*files).status()));
}

TEST(CheckpointTest, TheNewestWithoutItsIndexIsBroken) {
  const auto files = io::NewMemoryFileSystem();
  for (int step : {1, 2}) ASSERT_TRUE(SaveStep(*files, step, 1).ok());
  const std::string state = *io::ReadFile(*files, "m/checkpoint");
  ASSERT_TRUE(files->Remove("m/model.ckpt-2.index").ok());
  EXPECT_EQ(LoadLatest(*files)->step, 1);
  EXPECT_THAT(LoadLatest(*files)->note, HasSubstr("m/model.ckpt-2.index is missing"));
  EXPECT_THAT(std::string(CheckNewest(*FindLatest(*files, "m")).message()),
              HasSubstr("m/model.ckpt-2.index is missing"));
  ASSERT_TRUE(files->Remove("m/model.ckpt-1.index").ok());
  EXPECT_TRUE(absl::IsDataLoss(LoadLatest(*files).status()));
  // A save removes the index of an old checkpoint, then its data, then names the new one.
  ASSERT_TRUE(SaveStep(*files, 3, 1).ok());
  ASSERT_TRUE(io::WriteFileAtomically(*files, "m/checkpoint", state).ok());
  ASSERT_TRUE(io::WriteFileAtomically(*files, "m/model.ckpt-2.data-00000-of-00001", "x").ok());
  EXPECT_EQ(LoadLatest(*files)->step, 3);
  EXPECT_EQ(LoadLatest(*files)->note, "");
}

TEST(CheckpointTest, AReaderFindsWhatASaveWroteAfterItListedTheFolder) {
  const auto memory = io::NewMemoryFileSystem();
  ASSERT_TRUE(SaveStep(*memory, 1, 1, /*keep=*/1).ok());
  io::FaultFileSystem files(*memory);
  ASSERT_EQ(LoadLatest(files)->step, 1);
  // The reader opens the state file, then the index that it names.
  for (int step = 2; step <= 3; ++step) {
    files.StallNth(io::FileOperation::kOpen, 2 * step - 2, [&memory, step] {
      ASSERT_TRUE(SaveStep(*memory, step, static_cast<float>(step), /*keep=*/1).ok());
    });
  }
  const auto loaded = LoadLatest(files);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->step, 3);
  EXPECT_EQ(loaded->note, "");
}

TEST(CheckpointTest, FallsBackFromACheckpointWithDamagedBytes) {
  const auto files = io::NewMemoryFileSystem();
  for (int step : {9, 10, 11}) {
    ASSERT_TRUE(SaveStep(*files, step, static_cast<float>(step)).ok());
  }
  const std::string path = "m/model.ckpt-11.data-00000-of-00001";
  const std::string data = *io::ReadFile(*files, path);
  for (size_t i = 0; i < data.size(); i += 7) {
    std::string broken = data;
    broken[i] ^= 4;
    ASSERT_TRUE(io::WriteFileAtomically(*files, path, broken).ok());
    const auto loaded = LoadLatest(*files);
    ASSERT_TRUE(loaded.ok()) << i << ": " << loaded.status();
    EXPECT_EQ(loaded->value, 10) << i;
    EXPECT_THAT(loaded->note, AllOf(HasSubstr("passed over for m/model.ckpt-10"), HasSubstr(path)));
  }
  ASSERT_TRUE(io::WriteFileAtomically(*files, path, data.substr(0, data.size() / 2)).ok());
  EXPECT_EQ(LoadLatest(*files)->value, 10);
  ASSERT_TRUE(io::WriteFileAtomically(*files, path, data).ok());
  EXPECT_EQ(LoadLatest(*files)->value, 11);
  // The next save makes a new newest checkpoint.
  ASSERT_TRUE(io::WriteFileAtomically(*files, path, "").ok());
  ASSERT_TRUE(SaveStep(*files, 12, 12).ok());
  EXPECT_EQ(LoadLatest(*files)->value, 12);
}

TEST(CheckpointTest, OnlyACheckThatReadsAllBytesFindsABrokenNewest) {
  const auto files = io::NewMemoryFileSystem();
  for (int step : {10, 11}) ASSERT_TRUE(SaveStep(*files, step, 1).ok());
  const auto whole = FindLatest(*files, "m", /*verify=*/true);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->prefix, "m/model.ckpt-11");
  EXPECT_EQ(DescribePassedOver(*whole), "");
  EXPECT_TRUE(CheckNewest(*whole).ok());
  const std::string path = "m/model.ckpt-11.data-00000-of-00001";
  std::string data = *io::ReadFile(*files, path);
  data[5] ^= 4;
  ASSERT_TRUE(io::WriteFileAtomically(*files, path, data).ok());
  EXPECT_EQ(FindLatest(*files, "m")->prefix, "m/model.ckpt-11");
  const auto older = FindLatest(*files, "m", /*verify=*/true);
  ASSERT_TRUE(older.ok()) << older.status();
  EXPECT_EQ(older->prefix, "m/model.ckpt-10");
  EXPECT_THAT(DescribePassedOver(*older), AllOf(HasSubstr("m/model.ckpt-10"), HasSubstr(path)));
  EXPECT_TRUE(absl::IsDataLoss(CheckNewest(*older)));
}

TEST(CheckpointTest, AFailingDiskIsNoMissingCheckpoint) {
  const auto memory = io::NewMemoryFileSystem();
  ASSERT_TRUE(SaveStep(*memory, 1, 1).ok());
  io::FaultFileSystem files(*memory);
  for (int n = 1; n <= 3; ++n) {  // state file, index, data
    files.FailNth(io::FileOperation::kOpen, n, absl::InternalError("disk"));
    EXPECT_TRUE(absl::IsInternal(Latest(files, "m").status())) << n;
  }
}

TEST(CheckpointTest, RestoreNamesEveryDifference) {
  const auto files = io::NewMemoryFileSystem();
  ASSERT_TRUE(SaveStep(*files, 1, 1).ok());
  const auto bundle = *formats::BundleReader::Open(*files, "m/model.ckpt-1");
  Weights weights;
  std::vector<Tensor> tensors = weights.tensors();
  tensors[0].shape = {3, 100};
  tensors[1].type = formats::DataType::kInt32;
  tensors.push_back({"biass", formats::DataType::kFloat, {}, {}});
  const absl::Status status = Restore(*bundle, tensors);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(),
            "checkpoint of another spec: 'kernel' is float32 [100, 3], the model has float32 "
            "[3, 100]; 'bias' is float32 [7], the model has int32 [7]; 'biass' is missing (did you "
            "mean 'bias'?)");
  EXPECT_TRUE(weights.AllAre(0));
}

}  // namespace
}  // namespace muster::checkpoint
