#include "muster/launch/slots/shared_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "muster/io/memory_file_system.h"

namespace muster::launch::slots {
namespace {

class SharedStateTest : public testing::Test {
 protected:
  SharedStateTest() { (void)files_->MakeFolders("/state"); }
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(io::WriteFileAtomically(*files_, path, text).ok());
  }
  std::string Read(const std::string& path) { return io::ReadFile(*files_, path).value_or(""); }

  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
};

TEST_F(SharedStateTest, ALaterAttemptTakesJournalAndRecord) {
  Write("/state/journal-0", "journal");
  auto first = ClaimSharedState(*files_, "/state", 1);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(Read(first->journal), "journal");
  Write(first->record, "record");
  const auto third = ClaimSharedState(*files_, "/state", 3);
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(Read(third->journal), "journal");
  EXPECT_EQ(Read(third->record), "record");
  EXPECT_TRUE(absl::IsNotFound(files_->Stat(first->journal).status()));
  EXPECT_EQ(FindSharedJournal(*files_, "/state").value_or(""), third->journal);
}

TEST_F(SharedStateTest, AnAttemptThatIsStartedAgainKeepsItsState) {
  Write("/state/journal-2", "journal");
  const auto again = ClaimSharedState(*files_, "/state", 2);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Read(again->journal), "journal");
}

TEST_F(SharedStateTest, AnEarlierAttemptGetsNothing) {
  Write("/state/journal-2", "journal");
  EXPECT_TRUE(absl::IsAborted(ClaimSharedState(*files_, "/state", 1).status()));
  EXPECT_EQ(Read("/state/journal-2"), "journal");
}

TEST_F(SharedStateTest, AClaimThatEndedHalfwayIsFinished) {
  Write("/state/journal-1", "journal");
  Write("/state/slots-2.json", "record");  // attempt 2 ended before it took the journal
  const auto second = ClaimSharedState(*files_, "/state", 2);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(Read(second->journal), "journal");
  EXPECT_EQ(Read(second->record), "record");
}

TEST_F(SharedStateTest, AClaimThatEndedBeforeTheRecordIsFinishedByTheNext) {
  for (const int64_t next : {2, 3}) {
    Write("/state/journal-2", "journal");  // attempt 2 ended before it took the record
    Write("/state/slots-1.json", "record");
    const auto claimed = ClaimSharedState(*files_, "/state", next);
    ASSERT_TRUE(claimed.ok()) << claimed.status();
    EXPECT_EQ(Read(claimed->journal), "journal");
    EXPECT_EQ(Read(claimed->record), "record");
    ASSERT_TRUE(files_->Remove(claimed->journal).ok() && files_->Remove(claimed->record).ok());
  }
}

TEST_F(SharedStateTest, OtherFilesAreNoJournals) {
  Write("/state/journal-", "x");
  Write("/state/journal-1x", "x");
  Write("/state/.journal-7.tmp-1-2", "x");
  Write("/state/slots-.json", "x");
  EXPECT_TRUE(absl::IsNotFound(ClaimSharedState(*files_, "/state", 1).status()));
  EXPECT_TRUE(absl::IsNotFound(FindSharedJournal(*files_, "/state").status()));
}

}  // namespace
}  // namespace muster::launch::slots
