// Tests that every LogSource must pass. An implementation's test contains
//   INSTANTIATE_TEST_SUITE_P(Mine, LogSourceConformance, testing::Values(LogSourceMember{...}),
//                            LogSourceMemberName);
// To be included in one source file of a test program.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <functional>
#include <memory>
#include <string>

#include "muster/control/log_source.h"

namespace muster::control {

// A log and what the tests do to it. One owner thread.
class LogUnderTest {
 public:
  virtual ~LogUnderTest() = default;
  virtual std::unique_ptr<LogSource> Open() = 0;
  virtual void Write(const std::string& bytes) = 0;
  // Writes once a reader waits, or at any time before.
  virtual void WriteWhileReading(const std::string& bytes) = 0;
  // Begins another file, if there are files.
  virtual void Rotate() {}
  // Removes everything that was written so far.
  virtual void Drop() = 0;
  // Empties the log, as another program may; the task continues to write to it.
  virtual void Truncate() = 0;
  // For a place that is asked over a network; elsewhere they do nothing.
  virtual void SetSilent(bool) {}
  virtual void Move() {}
};

struct LogSourceMember {
  std::string name;
  std::function<std::unique_ptr<LogUnderTest>()> make;
  bool can_be_silent = false;
};

inline std::string LogSourceMemberName(const testing::TestParamInfo<LogSourceMember>& member) {
  return member.param.name;
}

class LogSourceConformance : public testing::TestWithParam<LogSourceMember> {
 protected:
  static constexpr size_t kMax = 1000;
  static constexpr double kLongSeconds = 30;  // never reached

  void SetUp() override {
    log_ = GetParam().make();
    source_ = log_->Open();
  }
  LogPiece Read(size_t max = kMax, double wait = 0) {
    const auto piece = source_->Read(offset_, max, wait);
    EXPECT_TRUE(piece.ok()) << piece.status();
    if (!piece.ok()) return {};
    offset_ = piece->next;
    return *piece;
  }
  // Everything that can be read, with "|" for a gap.
  std::string ReadAll(size_t max = kMax) {
    std::string all;
    while (true) {
      const LogPiece piece = Read(max);
      if (piece.bytes.empty()) return all;
      all += (piece.gap ? "|" : "") + piece.bytes;
    }
  }

  std::unique_ptr<LogUnderTest> log_;
  std::unique_ptr<LogSource> source_;
  int64_t offset_ = 0;
};

TEST_P(LogSourceConformance, ATaskThatHasWrittenNothingHasAnEmptyLog) {
  const LogPiece piece = Read();
  EXPECT_EQ(piece.bytes, "");
  EXPECT_EQ(piece.next, 0);
  EXPECT_FALSE(piece.gap);
  log_->Write("begun");
  EXPECT_EQ(ReadAll(), "begun");
}

TEST_P(LogSourceConformance, ReadsForwardsInPieces) {
  log_->Write("one\ntwo\n");
  EXPECT_EQ(Read(5).bytes, "one\nt");
  EXPECT_EQ(offset_, 5);
  log_->Write("three");
  EXPECT_EQ(ReadAll(2), "wo\nthree");
  EXPECT_EQ(ReadAll(), "");
  EXPECT_EQ(offset_, 13);
}

TEST_P(LogSourceConformance, ARepeatedReadReturnsTheSameBytes) {
  log_->Write("abcdef");
  Read(2);
  const int64_t before = offset_;
  EXPECT_EQ(Read(2).bytes, "cd");
  offset_ = before;
  EXPECT_EQ(Read(2).bytes, "cd");
  offset_ = before;
  EXPECT_EQ(Read().bytes, "cdef");
  EXPECT_EQ(Read().bytes, "");
}

TEST_P(LogSourceConformance, AnOffsetThatWasNeverReturnedIsRefused) {
  log_->Write("abcdef");
  Read(2);
  Read(2);
  for (const int64_t offset : {int64_t{0}, int64_t{3}, int64_t{6}, int64_t{-1}}) {
    EXPECT_TRUE(absl::IsOutOfRange(source_->Read(offset, kMax, 0).status())) << offset;
  }
  EXPECT_EQ(ReadAll(), "ef");
}

TEST_P(LogSourceConformance, BytesOfAnyKindComeAsTheyAre) {
  const std::string bytes("\0\xff\xc3\n\r", 5);
  log_->Write(bytes);
  EXPECT_EQ(ReadAll(), bytes);
}

TEST_P(LogSourceConformance, OutputEndsAWait) {
  log_->WriteWhileReading("at last");
  const LogPiece piece = Read(kMax, kLongSeconds);
  ASSERT_FALSE(piece.bytes.empty());
  EXPECT_EQ(piece.bytes + ReadAll(), "at last");
}

TEST_P(LogSourceConformance, ANoticeSaysThatThereIsMore) {
  if (source_->change_fd() < 0) return;  // a reader uses `wait` instead
  Read();
  source_->ClearChange();
  log_->Write("news");
  pollfd change{.fd = source_->change_fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&change, 1, static_cast<int>(kLongSeconds * 1000)), 1);
  source_->ClearChange();
  EXPECT_EQ(poll(&change, 1, 0), 0);
  EXPECT_EQ(ReadAll(), "news");
}

TEST_P(LogSourceConformance, ANewReaderBeginsWithTheOldestByteThatIsKept) {
  log_->Write("old ");
  log_->Rotate();
  log_->Write("new");
  EXPECT_EQ(ReadAll(), "old new");
  log_->Drop();
  log_->Write("newer");
  source_ = log_->Open();
  offset_ = 0;
  EXPECT_THAT(ReadAll(), testing::AnyOf("newer", "|newer"));
}

TEST_P(LogSourceConformance, RotatedOutputIsReadInOrderWithoutAGap) {
  log_->Write("a");
  EXPECT_EQ(ReadAll(), "a");
  log_->Write("b");
  log_->Rotate();
  log_->Write("c");
  log_->Rotate();
  log_->Write("d");
  EXPECT_EQ(ReadAll(), "bcd");
  log_->Rotate();
  log_->Write("e");
  EXPECT_EQ(ReadAll(), "e");
}

TEST_P(LogSourceConformance, OutputThatWasDroppedUnreadIsAGap) {
  log_->Write("abc");
  EXPECT_EQ(ReadAll(), "abc");
  log_->Write("lost");
  log_->Rotate();
  log_->Write("lost too");
  log_->Drop();
  log_->Write("kept");
  const std::string all = ReadAll();
  EXPECT_TRUE(all.ends_with("|kept")) << all;  // a file that is open is read to its end before
  log_->Write(" on");
  EXPECT_EQ(ReadAll(), " on");
}

TEST_P(LogSourceConformance, ATruncatedLogContinuesAfterAGap) {
  log_->Write("abcdef");
  EXPECT_EQ(ReadAll(), "abcdef");
  log_->Truncate();
  EXPECT_EQ(ReadAll(), "");
  log_->Write("gh");
  const LogPiece piece = Read(1);
  EXPECT_EQ(piece.bytes, "g");
  EXPECT_TRUE(piece.gap);
  EXPECT_EQ(ReadAll(), "h");
  log_->Write("i");
  EXPECT_EQ(ReadAll(), "i");
}

TEST_P(LogSourceConformance, SilenceIsUnavailableAndLosesNothing) {
  if (!GetParam().can_be_silent) return;
  log_->Write("one ");
  EXPECT_EQ(ReadAll(), "one ");
  log_->SetSilent(true);
  log_->Write("two");
  EXPECT_TRUE(absl::IsUnavailable(source_->Read(offset_, kMax, 0).status()));
  EXPECT_TRUE(absl::IsUnavailable(source_->Read(offset_, kMax, 0).status()));
  log_->SetSilent(false);
  EXPECT_EQ(ReadAll(), "two");
}

TEST_P(LogSourceConformance, APlaceThatHasMovedIsFoundAgain) {
  if (!GetParam().can_be_silent) return;
  log_->Write("one ");
  EXPECT_EQ(ReadAll(), "one ");
  log_->SetSilent(true);
  EXPECT_FALSE(source_->Read(offset_, kMax, 0).ok());
  log_->Move();
  log_->Write("two");
  log_->SetSilent(false);
  EXPECT_EQ(ReadAll(), "two");
}

}  // namespace muster::control
