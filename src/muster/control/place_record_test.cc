#include "muster/control/place_record.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::control {
namespace {

using ::testing::HasSubstr;

class PlaceRecordTest : public ::testing::Test {
 protected:
  PlaceRecordTest() {
    std::string path = ::testing::TempDir() + "/muster_place_XXXXXX";
    jobs_ = mkdtemp(path.data());
    folder_.path = jobs_ + "/j";
    std::filesystem::create_directories(folder_.path);
  }
  ~PlaceRecordTest() override { std::filesystem::remove_all(jobs_); }

  std::string jobs_;
  JobFolder folder_;
};

TEST_F(PlaceRecordTest, PrintsBackToWhatItWasParsedFrom) {
  const PlaceRecord all{"yarn", "application_1_7", "https://rm:8090",
                        "hdfs://nn/user/me/.muster/j"};
  const PlaceRecord cluster{.kind = "kubernetes", .config = "/home/me/config", .context = "lab"};
  for (const PlaceRecord& record : {all, cluster, PlaceRecord{.kind = "spark"}, PlaceRecord()}) {
    const auto parsed = ParsePlaceRecord(PrintPlaceRecord(record), "place.json");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, record);
  }
  EXPECT_EQ(PrintPlaceRecord({.kind = "yarn", .id = "a"}),
            "{\"format\":1,\"kind\":\"yarn\",\"id\":\"a\"}\n");
}

TEST_F(PlaceRecordTest, WhatIsNoRecordIsRefusedAndNamed) {
  for (const char* const text :
       {"", "[]", "{}", "{\"format\":1}", "{\"format\":2,\"kind\":\"yarn\"}",
        "{\"format\":1,\"kind\":7}", "{\"format\":1,\"kind\":\"\"}"}) {
    const auto record = ParsePlaceRecord(text, "jobs/j/place.json");
    EXPECT_TRUE(absl::IsInvalidArgument(record.status())) << text;
    EXPECT_THAT(std::string(record.status().message()), HasSubstr("jobs/j/place.json"));
  }
}

TEST_F(PlaceRecordTest, AFolderWithoutOneIsAJobOfThisMachine) {
  EXPECT_EQ(ReadPlaceRecord(folder_).value(), PlaceRecord());
  EXPECT_EQ(ReadPlaceRecord(folder_)->kind, "local");
}

TEST_F(PlaceRecordTest, AFolderWithARecordIsAJobThatIsFoundAndListed) {
  EXPECT_TRUE(absl::IsNotFound(FindJobFolder(jobs_, "j").status()));
  const PlaceRecord record{.kind = "kubernetes", .id = "team/j"};
  ASSERT_TRUE(WritePlaceRecord(folder_, record).ok());
  EXPECT_EQ(FindJobFolder(jobs_, "j")->path, folder_.path);
  EXPECT_EQ(ListJobs(jobs_), std::vector<std::string>{"j"});
  EXPECT_EQ(ReadPlaceRecord(folder_).value(), record);
  struct stat info {};
  ASSERT_EQ(stat(folder_.place().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

}  // namespace
}  // namespace muster::control
