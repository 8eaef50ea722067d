#include "muster/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::pair<std::string, std::string>>;

// Two tensors whose every element is `value`, so that a mixture of two saves is seen.
struct Weights {
  explicit Weights(float value = 0) : kernel(300, value), bias(7, value) {}
  std::vector<Tensor> tensors() {
    return {{"kernel", formats::DataType::kFloat, {100, 3}, Bytes(kernel)},
            {"bias", formats::DataType::kFloat, {7}, Bytes(bias)}};
  }
  static std::span<char> Bytes(std::vector<float>& values) {
    return {reinterpret_cast<char*>(values.data()), values.size() * sizeof(float)};
  }
  bool AllAre(float value) const {
    for (const auto* part : {&kernel, &bias}) {
      for (const float x : *part) {
        if (x != value) return false;
      }
    }
    return true;
  }
  std::vector<float> kernel, bias;
};

absl::StatusOr<std::string> SaveStep(io::FileSystem& files, int64_t step, float value,
                                     int keep = 5) {
  Weights weights(value);
  const Strings strings = {{"position", StrCat("at ", step)}};
  return Saver(files, "m", keep).Save(step, weights.tensors(), strings);
}

// The value that all weights of the latest checkpoint have; a mixture or a damaged one is an error.
absl::StatusOr<std::pair<int64_t, float>> LoadLatest(io::FileSystem& files) {
  MUSTER_ASSIGN_OR_RETURN(const std::string prefix, Latest(files, "m"));
  MUSTER_ASSIGN_OR_RETURN(const auto bundle, formats::BundleReader::Open(files, prefix));
  Weights weights;
  MUSTER_RETURN_IF_ERROR(Restore(*bundle, weights.tensors()));
  MUSTER_ASSIGN_OR_RETURN(const int64_t step, GlobalStep(*bundle));
  MUSTER_ASSIGN_OR_RETURN(const auto position, bundle->ReadStrings("position"));
  if (position != std::vector<std::string>{StrCat("at ", step)}) {
    return absl::InternalError("position of another step");
  }
  if (!weights.AllAre(weights.kernel[0])) return absl::InternalError("a mixture of two saves");
  return std::pair(step, weights.kernel[0]);
}

TEST(CheckpointTest, SavesFindsAndRestores) {
  const auto files = io::NewMemoryFileSystem();
  EXPECT_TRUE(absl::IsNotFound(Latest(*files, "m").status()));
  const auto prefix = SaveStep(*files, 100, 1.5f);
  ASSERT_TRUE(prefix.ok()) << prefix.status();
  EXPECT_EQ(*prefix, "m/model.ckpt-100");
  const auto loaded = LoadLatest(*files);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(*loaded, std::pair(int64_t{100}, 1.5f));
  EXPECT_EQ(*io::ReadFile(*files, "m/checkpoint"),
            "model_checkpoint_path: \"model.ckpt-100\"\n"
            "all_model_checkpoint_paths: \"model.ckpt-100\"\n");
}

TEST(CheckpointTest, KeepsTheNewest) {
  const auto files = io::NewMemoryFileSystem();
  for (int step = 1; step <= 5; ++step) {
    ASSERT_TRUE(SaveStep(*files, step, static_cast<float>(step), 2).ok());
  }
  EXPECT_THAT(*files->List("m"),
              ElementsAre("checkpoint", "model.ckpt-4.data-00000-of-00001", "model.ckpt-4.index",
                          "model.ckpt-5.data-00000-of-00001", "model.ckpt-5.index"));
  const auto state = ReadState(*files, "m");
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->latest, "model.ckpt-5");
  EXPECT_THAT(state->all, ElementsAre("model.ckpt-4", "model.ckpt-5"));
}

TEST(CheckpointTest, KeepZeroKeepsAll) {
  const auto files = io::NewMemoryFileSystem();
  for (int step = 0; step < 9; ++step) ASSERT_TRUE(SaveStep(*files, step, 1, 0).ok());
  EXPECT_EQ(ReadState(*files, "m")->all.size(), 9u);
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
  // It names nothing that is there.
  EXPECT_EQ(*Latest(*files, "m"), "m/model.ckpt-7");
}

TEST(CheckpointTest, ABrokenStateFileIsAnErrorOnlyToItsReader) {
  const auto files = io::NewMemoryFileSystem();
  ASSERT_TRUE(SaveStep(*files, 7, 1).ok());
  for (const char* text :
       {"", "model_checkpoint_path", "model_checkpoint_path: \"open", "{\"a\": 1}",
        "model_checkpoint_path: \"\\q\"", "all_model_checkpoint_paths: \"a\""}) {
    ASSERT_TRUE(io::WriteFileAtomically(*files, "m/checkpoint", text).ok());
    EXPECT_TRUE(absl::IsDataLoss(ReadState(*files, "m").status())) << text;
    EXPECT_EQ(*Latest(*files, "m"), "m/model.ckpt-7") << text;
  }
  ASSERT_TRUE(SaveStep(*files, 8, 1).ok());
  EXPECT_EQ(*Latest(*files, "m"), "m/model.ckpt-8");
}

TEST(CheckpointTest, LatestFallsBackToWholeCheckpoints) {
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
  const absl::Status none = Latest(*files, "m").status();
  EXPECT_TRUE(absl::IsNotFound(none));
  EXPECT_THAT(none.ToString(), HasSubstr("no whole checkpoint in m"));
}

TEST(CheckpointTest, AFailingDiskIsNotTakenForAMissingCheckpoint) {
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

// Saves step 3 over a folder with 1 and 2 (and, `again`, over a 3 of another value) while `fault`
// is at work; then the folder must hold a whole checkpoint, and the next save must work.
template <typename Fault>
void ExpectSurvives(bool again, bool only_one, const std::string& what, Fault&& fault,
                    bool* succeeded) {
  const auto memory = io::NewMemoryFileSystem();
  const int keep = 2;
  if (!only_one) {
    ASSERT_TRUE(SaveStep(*memory, 1, 1, keep).ok());
    ASSERT_TRUE(SaveStep(*memory, 2, 2, keep).ok());
  }
  if (again || only_one) {
    ASSERT_TRUE(SaveStep(*memory, 3, 3, keep).ok());
  }
  io::FaultFileSystem files(*memory);
  fault(files);
  const auto saved = SaveStep(files, 3, 30, keep);
  *succeeded = saved.ok();

  const auto loaded = LoadLatest(*memory);
  ASSERT_TRUE(loaded.ok()) << what << ": " << loaded.status();
  const auto [step, value] = *loaded;
  const float old_value = again || only_one ? 3 : 2;
  EXPECT_TRUE(value == 30 || (!saved.ok() && value == old_value)) << what << ": " << value;
  EXPECT_EQ(step, value == 2 ? 2 : 3) << what;

  const auto next = SaveStep(*memory, 4, 4, keep);
  ASSERT_TRUE(next.ok()) << what << ": " << next.status();
  EXPECT_EQ(LoadLatest(*memory)->second, 4) << what;
  const auto names = *memory->List("m");
  for (const std::string& name : names) {
    EXPECT_EQ(name.find(".tmp-"), std::string::npos) << what << ": " << name;
    const size_t data = name.find(".data-");
    if (data != std::string::npos) {
      EXPECT_THAT(names, ::testing::Contains(name.substr(0, data) + ".index")) << what;
    }
  }
}

class FaultTest : public ::testing::TestWithParam<std::pair<bool, bool>> {
 protected:
  // Runs with n = 1, 2, ... until a save is not reached by the fault; returns that n.
  template <typename Fault>
  int ForEachPoint(const std::string& name, Fault&& fault) {
    bool succeeded = false;
    int n = 0;
    int successes = 0;
    // Failures of cleaning up are forgiven, so that one success is not the end.
    while (successes < 12 && n < 200) {
      ++n;
      ExpectSurvives(
          GetParam().first, GetParam().second, StrCat(name, " ", n),
          [&](io::FaultFileSystem& files) { fault(files, n); }, &succeeded);
      successes = succeeded ? successes + 1 : 0;
      if (HasFatalFailure()) return n;
    }
    return n - successes + 1;
  }
};

TEST_P(FaultTest, ACrashAtEveryChange) {
  EXPECT_GT(ForEachPoint("crash at change",
                         [](io::FaultFileSystem& files, int n) { files.CrashAtChange(n); }),
            12);
}

TEST_P(FaultTest, AnErrorAtEveryOperation) {
  using Operation = io::FileOperation;
  for (const Operation operation :
       {Operation::kOpen, Operation::kRead, Operation::kStat, Operation::kList, Operation::kCreate,
        Operation::kWrite, Operation::kFlush, Operation::kSync, Operation::kClose,
        Operation::kMakeFolders, Operation::kRename, Operation::kRemove, Operation::kSyncFolder}) {
    ForEachPoint(StrCat("operation ", static_cast<int>(operation)),
                 [&](io::FaultFileSystem& files, int n) {
                   files.FailNth(operation, n, absl::InternalError("made to fail"));
                 });
  }
}

TEST_P(FaultTest, AShortWrite) {
  EXPECT_GT(ForEachPoint("short write",
                         [](io::FaultFileSystem& files, int n) {
                           files.ShortWriteNth(n, absl::ResourceExhaustedError("made to fail"));
                         }),
            4);
}

TEST_P(FaultTest, AFullDisk) {
  EXPECT_GT(ForEachPoint("disk with 40 bytes times",
                         [](io::FaultFileSystem& files, int n) { files.FillDiskAfter(n * 40); }),
            30);
}

INSTANTIATE_TEST_SUITE_P(NewStepSameStepOnlyOne, FaultTest,
                         ::testing::Values(std::pair(false, false), std::pair(true, false),
                                           std::pair(false, true)));

}  // namespace
}  // namespace muster::checkpoint
