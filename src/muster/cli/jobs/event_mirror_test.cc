#include "muster/cli/jobs/event_mirror.h"

#include <gtest/gtest.h>

#include "muster/io/memory_file_system.h"

namespace muster::cli {
namespace {

class EventMirrorTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(files_->MakeFolders("m/eval").ok());
    ASSERT_TRUE(files_->MakeFolders("copy").ok());
  }
  void Append(const std::string& path, const std::string& text) {
    const auto file = files_->OpenForAppend(path).value();
    ASSERT_TRUE(file->Append(text).ok() && file->Close().ok());
  }
  std::string Copy(const std::string& path) {
    return io::ReadFile(*files_, "copy/" + path).value_or("none");
  }

  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
  EventMirror mirror_{*files_, "m", "copy"};
};

TEST_F(EventMirrorTest, FollowsTheEventFilesOfAllFolders) {
  Append("m/events.out.tfevents.1.host", "one");
  Append("m/eval/events.out.tfevents.2.host", "two");
  Append("m/model.ckpt-1.index", "large");
  ASSERT_TRUE(mirror_.Update().ok());
  EXPECT_EQ(Copy("events.out.tfevents.1.host"), "one");
  EXPECT_EQ(Copy("eval/events.out.tfevents.2.host"), "two");
  EXPECT_EQ(Copy("model.ckpt-1.index"), "none");
  Append("m/events.out.tfevents.1.host", " more");
  ASSERT_TRUE(mirror_.Update().ok());
  EXPECT_EQ(Copy("events.out.tfevents.1.host"), "one more");
  EXPECT_EQ(mirror_.bytes(), 11u) << "nothing is copied twice";
}

TEST_F(EventMirrorTest, AFileThatBecameShorterIsCopiedAnew) {
  Append("m/events.out.tfevents.1.host", "a long one");
  ASSERT_TRUE(mirror_.Update().ok());
  ASSERT_TRUE(files_->Remove("m/events.out.tfevents.1.host").ok());
  Append("m/events.out.tfevents.1.host", "new");
  ASSERT_TRUE(mirror_.Update().ok());
  EXPECT_EQ(Copy("events.out.tfevents.1.host"), "new");
}

TEST_F(EventMirrorTest, AFolderThatIsNotThereIsAnError) {
  ASSERT_TRUE(files_->RemoveAll("m").ok());
  EXPECT_TRUE(absl::IsNotFound(mirror_.Update()));
}

}  // namespace
}  // namespace muster::cli
