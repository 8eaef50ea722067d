// Which compiled files are used, and for which data they are kept.
#include "muster/train/input/compiled/feature_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "muster/base/strings.h"
#include "muster/io/local_file_system.h"
#include "muster/train/input/input.h"
#include "muster/train/training_test_support.h"

namespace muster::train {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kManyRows = 20000;  // more than an input reads ahead

class FeatureCacheTest : public TrainingTest {
 protected:
  FeatureCacheTest()
      : start_(fs::current_path()),
        root_(testing::TempDir() + "feature-cache-" +
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    fs::create_directories(root_ + "/a");
    fs::create_directories(root_ + "/b");
    auto spec = model::ParseModelSpec(*files_, kTestSpec, "spec.yaml");
    auto model = model::BuildModel(*spec);
    EXPECT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    auto cache = FeatureCache::Open({.folder = root_ + "/cache"});
    EXPECT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
    spec_.source.patterns = {"train.csv"};
    spec_.reader = {.batch_size = 64, .epochs = 1};
    spec_.cache = cache_;
  }
  ~FeatureCacheTest() override {
    fs::current_path(start_);
    fs::remove_all(root_);
  }

  // The key of a file, for a process that was started in `folder`.
  std::string Key(const std::string& folder, const std::string& name) {
    fs::current_path(folder);
    const auto key = cache_->MakeKey(*local_, model_, {.patterns = {name}}, true);
    EXPECT_TRUE(key.ok()) << key.status();
    return key.ok() ? key->text : "";
  }
  std::string MemoryKey() {
    return cache_->MakeKey(*files_, model_, spec_.source, spec_.with_labels)->text;
  }
  std::unique_ptr<Input> Open() {
    auto input = Input::Open(*files_, model_, spec_);
    EXPECT_TRUE(input.ok()) << input.status();
    return *std::move(input);
  }
  // Reads what is left, and returns the warnings.
  std::vector<std::string> ReadRest(Input& input) {
    std::vector<std::string> warnings;
    while (true) {
      const auto batch = input.Next();
      EXPECT_TRUE(batch.ok()) << batch.status();
      for (std::string& warning : input.ConsumeWarnings()) warnings.push_back(std::move(warning));
      if (!batch.ok() || *batch == nullptr) return warnings;
    }
  }
  std::vector<std::string> ReadAll() { return ReadRest(*Open()); }
  std::vector<std::string> Cached() const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(cache_->folder())) {
      paths.push_back(entry.path().string());
    }
    std::ranges::sort(paths);
    return paths;
  }

  const fs::path start_;
  const std::string root_;
  const std::unique_ptr<io::FileSystem> local_ = io::NewLocalFileSystem();
  model::Model model_;
  std::shared_ptr<const FeatureCache> cache_;
  InputSpec spec_;
};

TEST_F(FeatureCacheTest, AFileHasOneKeyFromAnyFolder) {
  ASSERT_TRUE(io::WriteFileAtomically(*local_, root_ + "/a/m.csv", Csv(300)).ok());
  const std::string key = Key(root_ + "/a", "m.csv");
  EXPECT_EQ(Key(root_ + "/a", "./m.csv"), key);
  EXPECT_EQ(Key(root_, "a/m.csv"), key);
  EXPECT_EQ(Key(root_ + "/b", "../a/m.csv"), key);
  EXPECT_EQ(Key(root_ + "/b", root_ + "/a/m.csv"), key);
  EXPECT_EQ(Key(root_ + "/b", "file://" + root_ + "/a/m.csv"), key);
  fs::create_directory_symlink(root_ + "/a", root_ + "/link");
  EXPECT_EQ(Key(root_ + "/link", "m.csv"), key);
  EXPECT_EQ(Key(root_, "link/m.csv"), key);
}

TEST_F(FeatureCacheTest, FilesOfOneNameInTwoFoldersHaveTwoKeys) {
  const std::string text = Csv(300);
  for (const char* folder : {"/a", "/b"}) {
    ASSERT_TRUE(io::WriteFileAtomically(*local_, root_ + folder + "/m.csv", text).ok());
  }
  fs::last_write_time(root_ + "/b/m.csv", fs::last_write_time(root_ + "/a/m.csv"));
  EXPECT_NE(Key(root_ + "/a", "m.csv"), Key(root_ + "/b", "m.csv"));
  // "link/../m.csv" is in the folder above the link's target.
  fs::create_directories(root_ + "/b/below");
  fs::create_directory_symlink(root_ + "/b/below", root_ + "/a/link");
  EXPECT_EQ(Key(root_ + "/a", "link/../m.csv"), Key(root_ + "/b", "m.csv"));
}

TEST_F(FeatureCacheTest, FilesOfOthersStayInTheFolder) {
  const std::string folder = root_ + "/cache/";
  const std::string digits = "0123456789abcdef";
  const std::vector<std::string> others = {"my.features", ".my.features.tmp-1-2",
                                           "." + digits + "0.features.tmp-1-2",
                                           digits + ".features.bak"};
  const std::vector<std::string> ours = {digits + ".features", "." + digits + ".features.tmp-1-2"};
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1000);
  for (const auto& names : {others, ours}) {
    for (const std::string& name : names) {
      std::ofstream(folder + name) << "bytes";
      fs::last_write_time(folder + name, old);
    }
  }
  std::ofstream(folder + "fedcba9876543210.features") << "the newest one stays";
  const auto cache = FeatureCache::Open({.folder = folder, .most_bytes = 1});
  ASSERT_TRUE(cache.ok()) << cache.status();
  (*cache)->RemoveOldest();
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(folder + name)) << name;
  for (const std::string& name : ours) EXPECT_FALSE(fs::exists(folder + name)) << name;
}

TEST_F(FeatureCacheTest, DataThatChangesWhileItIsReadIsNotKept) {
  const std::string text = Csv(kManyRows), path = root_ + "/a/m.csv";
  spec_.source.patterns = {path};
  for (const bool removed : {false, true}) {
    ASSERT_TRUE(io::WriteFileAtomically(*local_, path, text).ok());
    auto input = Input::Open(*local_, model_, spec_);
    ASSERT_TRUE(input.ok() && (*input)->Next().ok());
    if (removed) {
      fs::remove(path);
    } else {
      std::fstream(path, std::ios::in | std::ios::out).write(text.data(), 100);  // in place
    }
    EXPECT_THAT(ReadRest(**input),
                ElementsAre(AllOf(HasSubstr("not kept in " + root_), HasSubstr(path))));
    EXPECT_THAT(Cached(), IsEmpty());
  }
}

TEST_F(FeatureCacheTest, DataThatCameLaterDoesNotMatter) {
  spec_.source.patterns = {"part-*.csv"};
  Write("part-1.csv", Csv(kManyRows));
  const auto input = Open();
  ASSERT_TRUE(input->Next().ok());
  Write("part-2.csv", Csv(10));
  EXPECT_THAT(ReadRest(*input), IsEmpty());
  EXPECT_EQ(Cached().size(), 1);
}

TEST_F(FeatureCacheTest, AFileThatOthersMayWriteIsMadeAgainWithAWord) {
  EXPECT_THAT(ReadAll(), IsEmpty());
  const std::string path = Cached().front();
  for (const mode_t mode : {0666, 0620, 0602}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_THAT(ReadAll(), ElementsAre(AllOf(HasSubstr(path), HasSubstr("may write the file"))));
    EXPECT_THAT(ReadAll(), IsEmpty());
  }
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_THAT(ReadAll(), IsEmpty()) << "others may read it";
}

TEST_F(FeatureCacheTest, AFileOfAnotherUserIsMadeAgainWithAWord) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make such a file";
  ReadAll();
  const std::string path = Cached().front();
  ASSERT_EQ(chown(path.c_str(), 4711, 4711), 0);
  EXPECT_THAT(ReadAll(), ElementsAre(AllOf(HasSubstr(path), HasSubstr("another user (4711)"))));
  EXPECT_THAT(ReadAll(), IsEmpty());
}

TEST_F(FeatureCacheTest, AFileWithAnotherKeyIsMadeAgainWithAWord) {
  ReadAll();
  const std::string first = Cached().front();
  Write("train.csv", Csv(200));
  ReadAll();
  std::string second = Cached().front();
  if (second == first) second = Cached().back();
  fs::copy_file(first, second, fs::copy_options::overwrite_existing);
  EXPECT_THAT(ReadAll(), ElementsAre(AllOf(HasSubstr(second), HasSubstr("other data or columns"))));
  EXPECT_THAT(ReadAll(), IsEmpty());
  std::string note;
  const auto file = cache_->Find(MemoryKey(), &note);
  ASSERT_NE(file, nullptr) << note;
  EXPECT_EQ(file->source()->records(), 200);
}

TEST_F(FeatureCacheTest, AShareThatIsHeldBackIsNotKeptWithAWord) {
  spec_.source.held_back = {.share = 0.1};
  EXPECT_THAT(ReadAll(),
              ElementsAre(AllOf(HasSubstr("not kept in " + root_), HasSubstr("--eval"))));
  spec_.source.held_back.is_read = true;
  EXPECT_THAT(ReadAll(), IsEmpty()) << "the training has said it";
  EXPECT_THAT(Cached(), IsEmpty());
}

}  // namespace
}  // namespace muster::train
