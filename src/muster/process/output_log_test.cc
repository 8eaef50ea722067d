#include "muster/process/output_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "muster/process/test_program.h"

namespace muster::process {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

// While it lives no file of this process grows past so many bytes: what a full disk does to a
// writer, on any machine.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &ignore, &old_action_);
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = old_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    sigaction(SIGXFSZ, &old_action_, nullptr);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit old_ = {};
  struct sigaction old_action_ = {};
};

// A pipe, its two ends, and what was read from it.
struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    reader.Reset(ends[0]);
    writer.Reset(ends[1]);
    signal(SIGPIPE, SIG_IGN);
  }
  std::string Read(size_t bytes) const {
    std::string text(bytes, '\0');
    const ssize_t got = read(reader.get(), text.data(), bytes);
    text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return text;
  }
  Descriptor reader, writer;
};

TEST(OutputCopyTest, AReaderThatIsSlowGetsAllInTheEnd) {
  const Pipe pipe;
  OutputCopy copy(pipe.writer.get());
  const std::string bytes(size_t{1} << 20, 'x');  // more than a pipe holds
  copy.Append(bytes);
  EXPECT_EQ(copy.waiting_fd(), pipe.writer.get());
  size_t got = 0;
  while (got < bytes.size()) {
    got += pipe.Read(1 << 16).size();
    copy.Flush();
  }
  EXPECT_EQ(got, bytes.size());
  EXPECT_EQ(copy.waiting_fd(), -1);
}

TEST(OutputCopyTest, WhatNobodyReadsIsLeftOutAndSaid) {
  const Pipe pipe;
  OutputCopy copy(pipe.writer.get());
  for (int i = 0; i < 8; ++i) copy.Append(std::string(size_t{1} << 20, 'x'));
  std::string got;
  while (copy.waiting_fd() >= 0) {
    got += pipe.Read(1 << 16);
    copy.Flush();
  }
  copy.Append("the end\n");
  while (!got.ends_with("the end\n")) {
    got += pipe.Read(1 << 16);
    copy.Flush();
  }
  EXPECT_LT(got.size(), size_t{8} << 20);
  EXPECT_NE(got.find(" bytes of output left out here"), std::string::npos);
}

TEST(OutputCopyTest, AReaderThatIsGoneIsForgotten) {
  Pipe pipe;
  OutputCopy copy(pipe.writer.get());
  pipe.reader.Reset();
  copy.Append("text");
  EXPECT_EQ(copy.waiting_fd(), -1);
  copy.Drain(0);
}

TEST(LineTailTest, KeepsTheLastLines) {
  LineTail tail(3);
  EXPECT_THAT(tail.Lines(), IsEmpty());
  tail.Append("a\nb");
  EXPECT_THAT(tail.Lines(), ElementsAre("a", "b"));
  tail.Append("b\n\nc\n");
  EXPECT_THAT(tail.Lines(), ElementsAre("bb", "", "c"));
  tail.Append("open");
  EXPECT_THAT(tail.Lines(), ElementsAre("", "c", "open"));
  std::string many = "ed\n";
  for (int i = 0; i < 100; ++i) many += StrCat(i, "\n");
  tail.Append(many);
  EXPECT_THAT(tail.Lines(), ElementsAre("97", "98", "99"));
}

TEST(LineTailTest, HowTheBytesAreCutMakesNoDifference) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += StrCat(std::string(i % 7, 'x'), i, i % 5 == 0 ? "\r" : "\n");
  LineTail whole(10);
  whole.Append(text);
  for (size_t cut = 1; cut < 50; ++cut) {
    LineTail pieces(10);
    for (size_t i = 0; i < text.size(); i += cut) pieces.Append(text.substr(i, cut));
    EXPECT_EQ(pieces.Lines(), whole.Lines()) << cut;
  }
}

TEST(LineTailTest, ARewrittenLineIsItsLastText) {
  LineTail tail(5);
  tail.Append("10%\r50%");
  tail.Append("\r99%\r");
  EXPECT_THAT(tail.Lines(), ElementsAre("99%"));
  tail.Append("\nwindows\r\n");
  EXPECT_THAT(tail.Lines(), ElementsAre("99%", "windows"));
}

TEST(LineTailTest, AnEndlessLineTakesBoundedMemory) {
  LineTail tail(5);
  for (int i = 0; i < 1000; ++i) tail.Append(std::string(1000, 'x'));
  EXPECT_THAT(tail.Lines(), ElementsAre(SizeIs(LineTail::kMaxLineBytes)));
}

class LogFileTest : public testing::Test {
 protected:
  std::unique_ptr<LogFile> Open(int64_t max_bytes, int kept = 2) {
    auto file = LogFile::Open({.path = path_, .max_bytes = max_bytes, .kept_files = kept});
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
  std::string Rotated(int n) const { return ReadAll(StrCat(path_, ".", n)); }

  TestFolder folder_;
  std::string path_ = folder_.File("log");
};

TEST_F(LogFileTest, AppendsToWhatIsThere) {
  folder_.Write("log", "before\n");
  auto file = Open(0);
  file->Append("after, ");
  EXPECT_EQ(ReadAll(path_), "before\nafter, ") << "not written at once";
  file->Append("unfinished");
  EXPECT_TRUE(file->Close().ok());
  EXPECT_EQ(ReadAll(path_), "before\nafter, unfinished");
}

TEST_F(LogFileTest, RotatesBetweenLines) {
  auto file = Open(10);
  file->Append("12345678\nabcdefgh\n");
  file->Append("third\n");
  file->Append("fourth line\nfifth\nsixth line\nseventh\n");
  EXPECT_TRUE(file->Close().ok());
  EXPECT_EQ(ReadAll(path_), "seventh\n");
  EXPECT_EQ(Rotated(1), "fifth\nsixth line\n");
  EXPECT_EQ(Rotated(2), "third\nfourth line\n");
  EXPECT_FALSE(std::filesystem::exists(StrCat(path_, ".3"))) << "too many are kept";
}

TEST_F(LogFileTest, KeepsNoOldFilesWhenNoneAreWanted) {
  auto file = Open(4, 0);
  file->Append("12345\n12\n");
  EXPECT_TRUE(file->Close().ok());
  EXPECT_EQ(ReadAll(path_), "12\n");
  EXPECT_FALSE(std::filesystem::exists(StrCat(path_, ".1")));
}

TEST_F(LogFileTest, AnEndlessLineRotatesToo) {
  auto file = Open(1000, 1);
  for (int i = 0; i < 100; ++i) file->Append(std::string(333, 'x'));
  EXPECT_TRUE(file->Close().ok());
  EXPECT_LE(ReadAll(path_).size(), 2000U);
  EXPECT_EQ(Rotated(1).size(), 2000U);
}

TEST_F(LogFileTest, AFullDiskLosesBytesThatAreCountedAndSaid) {
  auto file = Open(0);
  file->Append("kept\n");
  {
    const FileSizeLimit full(8);
    file->Append("lost line\n");  // of which three bytes fit
    file->Append("another\n");
    EXPECT_EQ(file->dropped_bytes(), 15);
  }
  file->Append("back\n");
  EXPECT_EQ(ReadAll(path_),
            "kept\nlos\n[muster: 15 bytes of output lost here: File too large]\nback\n");
  const absl::Status status = file->Close();
  EXPECT_THAT(status.message(), AllOf(HasSubstr("15 bytes"), HasSubstr(path_)));
}

TEST(LogFileOpenTest, SaysWhatCannotBeOpened) {
  const TestFolder folder;
  const auto file = LogFile::Open({.path = folder.File("no/folder/log")});
  EXPECT_EQ(file.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(file.status().message(), HasSubstr("no/folder/log"));
}

class OutputLogTest : public testing::Test {
 protected:
  std::unique_ptr<OutputLog> Open(const std::string& path) {
    auto log = OutputLog::Open({.file = {.path = path}, .tail_lines = 3}, &clock_);
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  // Runs a program with stdout and stderr in a log; says the log's end.
  absl::Status Run(const std::vector<std::string>& argv, OutputLog* log) {
    const ChildSpec spec = {.argv = argv,
                            .environment = CurrentEnvironment(),
                            .stdout_fd = log->writer_fd(),
                            .stderr_fd = log->writer_fd()};
    auto child = Child::Start(spec);
    EXPECT_TRUE(child.ok()) << child.status();
    log->CloseWriter();
    const auto exit = (*child)->Wait(kTestSeconds);
    EXPECT_TRUE(exit.ok() && exit->ok());
    return log->Finish(kTestSeconds);
  }
  absl::Status RunShell(const std::string& script, OutputLog* log) {
    return Run({"sh", "-c", script}, log);
  }

  SystemClock clock_;
  TestFolder folder_;
  std::string path_ = folder_.File("log");
};

TEST_F(OutputLogTest, TakesBothStreamsInOrder) {
  auto log = Open(path_);
  EXPECT_TRUE(RunShell("echo one; echo two >&2; printf three", log.get()).ok());
  EXPECT_EQ(ReadAll(path_), "one\ntwo\nthree");
  EXPECT_THAT(log->Tail(), ElementsAre("one", "two", "three"));
  EXPECT_EQ(log->bytes(), 13);
  EXPECT_EQ(log->writer_fd(), -1);
  EXPECT_TRUE(log->Finish(0).ok());
}

TEST_F(OutputLogTest, ABurstOfTenThousandLinesIsWhole) {
  auto log = Open(path_);
  EXPECT_TRUE(RunShell("seq 1 10000", log.get()).ok());
  std::string expected;
  for (int i = 1; i <= 10000; ++i) expected += StrCat(i, "\n");
  EXPECT_EQ(ReadAll(path_), expected);
  EXPECT_THAT(log->Tail(), ElementsAre("9998", "9999", "10000"));
}

TEST_F(OutputLogTest, BinaryOutputIsKeptByteForByte) {
  auto log = Open(path_);
  EXPECT_TRUE(
      Run({"python3", "-S", "-c", "import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)"},
          log.get())
          .ok());
  const std::string text = ReadAll(path_);
  ASSERT_EQ(text.size(), 256'000U);
  for (size_t i = 0; i < text.size(); ++i) ASSERT_EQ(static_cast<uint8_t>(text[i]), i % 256);
}

TEST_F(OutputLogTest, OutputIsThereWhileTheProgramRuns) {
  auto log = Open(path_);
  const int64_t opened = log->last_output_nanos();
  ChildSpec spec = Shell("printf 'no newline'; sleep 1000");
  spec.stdout_fd = log->writer_fd();
  auto child = Child::Start(spec);
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_TRUE(Eventually([&] { return ReadAll(path_) == "no newline"; }));
  EXPECT_TRUE(Eventually([&] { return log->Tail() == std::vector<std::string>{"no newline"}; }));
  EXPECT_GT(log->last_output_nanos(), opened);
}

TEST_F(OutputLogTest, AFullDiskDoesNotStopTheProgram) {
  auto log = Open("/dev/full");
  const absl::Status status = RunShell("seq 1 100000", log.get());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("588895 bytes"), HasSubstr("/dev/full")));
  EXPECT_EQ(log->dropped_bytes(), 588895);
  EXPECT_EQ(log->bytes(), 588895);
  EXPECT_THAT(log->Tail(), ElementsAre("99998", "99999", "100000"));
}

TEST_F(OutputLogTest, FinishDoesNotWaitForWhoHoldsThePipe) {
  auto log = Open(path_);
  ChildSpec spec = Shell("echo done; sleep 1000 & echo $!");
  spec.stdout_fd = log->writer_fd();
  auto child = Child::Start(spec);
  ASSERT_TRUE(child.ok()) << child.status();
  ASSERT_TRUE((*child)->Wait(kTestSeconds).ok());
  EXPECT_TRUE(log->Finish(0).ok());
  EXPECT_THAT(ReadAll(path_), StartsWith("done\n")) << "what was in the pipe is lost";
  EXPECT_THAT(log->Tail(), SizeIs(2));
  kill(std::stoi(log->Tail()[1]), SIGKILL);
}

TEST_F(OutputLogTest, AFloodAfterTheStopEnds) {
  auto log = Open("/dev/null");
  ChildSpec spec = Shell("exec yes");
  spec.stdout_fd = log->writer_fd();
  auto child = Child::Start(spec);
  ASSERT_TRUE(child.ok()) << child.status();
  ASSERT_TRUE(Eventually([&] { return log->bytes() > 0; }));
  EXPECT_TRUE(log->Finish(0).ok());
}

}  // namespace
}  // namespace muster::process
