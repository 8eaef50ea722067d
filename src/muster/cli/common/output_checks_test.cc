#include "muster/cli/common/output_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "CLI/CLI.hpp"
#include "muster/io/local_file_system.h"

namespace muster::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class OutputChecksTest : public testing::Test {
 protected:
  OutputChecksTest() {
    std::string path = testing::TempDir() + "/muster_outputs_XXXXXX";
    folder_ = mkdtemp(path.data());
    std::filesystem::create_directory(At("data"));
    for (const char* const name : {"data/a.csv", "data/b.csv", "other.csv"}) {
      std::ofstream(At(name)) << "x\n1\n";
    }
    std::filesystem::create_symlink("data/b.csv", At("link.csv"));
    std::filesystem::create_hard_link(At("data/b.csv"), At("hard.csv"));
    std::filesystem::create_directory_symlink("data", At("data_link"));
  }
  ~OutputChecksTest() override { std::filesystem::remove_all(folder_); }

  std::string At(const std::string& name) const { return folder_ + "/" + name; }
  // What is said of it, "" where it may be written.
  std::string Refused(const std::string& path, bool is_folder = false) {
    const absl::Status status = CheckNotData(*files_, {"-", At("none*.csv"), At("data/*.csv")},
                                             {{"--out", ""}, {"--rejects", path, is_folder}});
    std::string said(ToStd(status.message()));
    // Only what would destroy data is wrong whatever lies on disk.
    const bool is_data = said.find(" of the data file ") != said.npos ||
                         said.find(" is the data file ") != said.npos;
    EXPECT_EQ(status.code(), status.ok() ? absl::StatusCode::kOk
                             : is_data   ? absl::StatusCode::kInvalidArgument
                                         : absl::StatusCode::kFailedPrecondition);
    return said;
  }

  const std::unique_ptr<io::FileSystem> files_ = io::NewLocalFileSystem();
  std::string folder_;
};

TEST_F(OutputChecksTest, AFileOfTheDataIsRefusedUnderEveryName) {
  for (const std::string name :
       {"data/b.csv", "data/../data/b.csv", "link.csv", "hard.csv", "data_link/b.csv"}) {
    EXPECT_THAT(Refused(At(name)),
                AllOf(HasSubstr("--rejects " + At(name)), HasSubstr(At("data/b.csv"))));
    EXPECT_NE(Refused("file://" + At(name)), "");
  }
  for (const std::string name : {"other.csv", "data/c.csv", "none.csv"}) {
    EXPECT_EQ(Refused(At(name)), "") << name;
  }
  EXPECT_THAT(Refused(At("data")), HasSubstr("is a folder: give the name of a file"));
  EXPECT_EQ(Refused("-"), "");
}

TEST_F(OutputChecksTest, AFolderThatIsMissingOrAFileIsNamedWithWhatToDo) {
  const std::string place = At("nowhere");
  EXPECT_EQ(Refused(At("nowhere/a.csv")),
            StrCat("--rejects ", place, "/a.csv: the folder ", place,
                   " does not exist; make it (mkdir -p ", place, "), or give another path"));
  EXPECT_EQ(Refused(At("other.csv/below/a.csv")),
            StrCat("--rejects ", At("other.csv/below/a.csv"), ": ", At("other.csv"),
                   " is a file, and no folder; give another path"));
  for (const std::string name : {"other.csv", "other.csv/below"}) {
    EXPECT_EQ(Refused(At(name), true),
              StrCat("--rejects ", At(name), ": ", At("other.csv"),
                     " is a file, and no folder; give another folder, which is made if it is not "
                     "there"));
  }
  EXPECT_EQ(Refused(At("new/deep"), true), "");
  EXPECT_EQ(Refused("surely_not_here.csv"), "");
  EXPECT_EQ(Refused("surely_not_here", true), "");
  EXPECT_EQ(Refused("hdfs://namenode/nowhere/a.csv"), "");
}

TEST_F(OutputChecksTest, PartsDoNotGoAmongTheData) {
  EXPECT_THAT(Refused(At("data"), true), HasSubstr("the folder of the data file"));
  EXPECT_NE(Refused(At("data_link/"), true), "");
  EXPECT_EQ(Refused(At("data/parts"), true), "");
  EXPECT_EQ(Refused(folder_, true), "");
}

TEST_F(OutputChecksTest, TwoOutputsHaveTwoPlaces) {
  EXPECT_TRUE(SamePlace(*files_, "new.csv", "./new.csv"));
  EXPECT_TRUE(SamePlace(*files_, At("new"), At("data_link/../new/")));
  EXPECT_TRUE(SamePlace(*files_, At("link.csv"), At("data/b.csv")));
  EXPECT_FALSE(SamePlace(*files_, "new.csv", "other.csv"));
  EXPECT_FALSE(SamePlace(*files_, "", ""));
  EXPECT_FALSE(SamePlace(*files_, "-", "-"));
  CheckRejectsPlace(*files_, "", "");
  CheckRejectsPlace(*files_, "", "-");
  CheckRejectsPlace(*files_, "r", "-");
  EXPECT_THROW(CheckRejectsPlace(*files_, "-", "p.csv"), CLI::ValidationError);
  EXPECT_THROW(CheckRejectsPlace(*files_, "-", ""), CLI::ValidationError);
  EXPECT_THROW(CheckRejectsPlace(*files_, "p.csv", "p.csv"), CLI::ValidationError);
}

}  // namespace
}  // namespace muster::cli
