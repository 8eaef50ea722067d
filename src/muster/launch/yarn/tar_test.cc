#include "muster/launch/yarn/tar.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "muster/base/strings.h"

namespace muster::launch::yarn {
namespace {

TEST(TarTest, FilesAreFoundByTheirNames) {
  const std::string large(3000, 'x');
  const std::string tar = MakeTar({{.name = "token", .bytes = "secret"},
                                   {.name = "conf/a.xml", .bytes = large},
                                   {.name = "empty"}})
                              .value();
  EXPECT_EQ(tar.size() % 512, 0U);
  EXPECT_EQ(ReadFromTar(tar, "token").value(), "secret");
  EXPECT_EQ(ReadFromTar(tar, "conf/a.xml").value(), large);
  EXPECT_EQ(ReadFromTar(tar, "empty").value(), "");
  EXPECT_TRUE(absl::IsNotFound(ReadFromTar(tar, "toke").status()));
  EXPECT_TRUE(absl::IsNotFound(ReadFromTar(tar, "a.xml").status()));
}

TEST(TarTest, NoLongNameAndNoDamagedArchive) {
  EXPECT_TRUE(absl::IsInvalidArgument(MakeTar({{.name = std::string(100, 'n')}}).status()));
  const std::string tar =
      MakeTar({{.name = "a", .bytes = std::string(600, 'a')}, {.name = "b", .bytes = "b"}}).value();
  for (size_t size = 0; size < tar.size(); size += 100) {
    const auto found = ReadFromTar(std::string_view(tar).substr(0, size), "c");
    // The last block of the end is not needed.
    EXPECT_TRUE(absl::IsDataLoss(found.status()) || size >= tar.size() - 512) << size;
  }
  std::string other = tar;
  other.replace(124, 11, "77777777777");
  EXPECT_TRUE(absl::IsDataLoss(ReadFromTar(other, "b").status()));
  other.replace(124, 11, "00x00000000");
  EXPECT_TRUE(absl::IsDataLoss(ReadFromTar(other, "b").status()));
}

// What containers do with the archive.
TEST(TarTest, TheSystemsTarUnpacksFilesWithTheirModes) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "tar";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string tar = MakeTar({{.name = "token", .bytes = "secret"},
                                   {.name = "conf/a.xml", .bytes = std::string(1000, 'a')},
                                   {.name = "run", .bytes = "#!", .mode = 0755}})
                              .value();
  std::ofstream(folder / "task.tar", std::ios::binary) << tar;
  ASSERT_EQ(
      std::system(
          StrCat("tar -xf ", (folder / "task.tar").string(), " -C ", folder.string()).c_str()),
      0);
  const auto mode = [&](const char* name) {
    struct stat info = {};
    EXPECT_EQ(stat((folder / name).c_str(), &info), 0) << name;
    return info.st_mode & 0777;
  };
  EXPECT_EQ(mode("token"), 0400U);
  EXPECT_EQ(mode("conf/a.xml"), 0400U);
  EXPECT_EQ(mode("run") & 0700, 0700U);
  EXPECT_EQ(std::filesystem::file_size(folder / "conf/a.xml"), 1000U);
}

}  // namespace
}  // namespace muster::launch::yarn
