#include "muster/control/log_source.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "muster/control/local_log_source.h"
#include "muster/control/log_source_conformance.h"
#include "muster/control/memory_place.h"
#include "muster/process/log_file.h"

namespace muster::control {
namespace {

namespace fs = std::filesystem;

constexpr job::TaskId kTask{job::TaskType::kWorker, 0};

class MemoryLog : public LogUnderTest {
 public:
  MemoryLog() { job_.AddTask(kTask); }
  std::unique_ptr<LogSource> Open() override {
    return std::make_unique<MemoryLogSource>(&job_, kTask);
  }
  void Write(const std::string& bytes) override { log().bytes += bytes; }
  void WriteWhileReading(const std::string& bytes) override {
    job_.on_wait = [this, bytes] { Write(bytes); };
  }
  void Drop() override {
    log().first += static_cast<int64_t>(log().bytes.size());
    log().bytes.clear();
  }
  void Truncate() override { log() = {.truncated = log().truncated + 1}; }
  void SetSilent(bool silent) override { job_.silent = silent; }
  void Move() override { job_.address = "b:2"; }

 private:
  MemoryJob::Log& log() { return job_.logs.at(kTask); }
  MemoryJob job_;
};

// As an agent writes it, with LogFile's rotation.
class LocalLog : public LogUnderTest {
 public:
  LocalLog() {
    std::string path = ::testing::TempDir() + "/muster_log_XXXXXX";
    folder_ = mkdtemp(path.data());
  }
  ~LocalLog() override { fs::remove_all(folder_); }
  std::unique_ptr<LogSource> Open() override {
    return std::make_unique<LocalLogSource>(path(), std::make_shared<FolderNotice>(folder_));
  }
  void Write(const std::string& bytes) override {
    std::ofstream(path(), std::ios::app | std::ios::binary) << bytes;
  }
  void WriteWhileReading(const std::string& bytes) override {
    writer_ = std::jthread([this, bytes] { Write(bytes); });
  }
  // What process::LogFile does when a file is full.
  void Rotate() override {
    const int kept = process::LogFileOptions().kept_files;
    for (int age = kept; age > 0; --age) {
      std::error_code ignored;  // not all are there
      fs::rename(Name(age - 1), Name(age), ignored);
    }
    Write("");
  }
  void Drop() override {
    for (int i = 0; i <= process::LogFileOptions().kept_files; ++i) Rotate();
  }
  void Truncate() override { fs::resize_file(path(), 0); }

 private:
  std::string path() const { return folder_ + "/worker-0.log"; }
  std::string Name(int age) const { return age == 0 ? path() : path() + "." + std::to_string(age); }
  std::string folder_;
  std::jthread writer_;
};

INSTANTIATE_TEST_SUITE_P(
    Members, LogSourceConformance,
    ::testing::Values(LogSourceMember{"Local", [] { return std::make_unique<LocalLog>(); }},
                      LogSourceMember{"Memory", [] { return std::make_unique<MemoryLog>(); },
                                      true}),
    LogSourceMemberName);

// The real writer, whose files are rotated while they are read.
TEST(LocalLogSourceTest, EveryByteOfALogFileIsReadInOrder) {
  std::string folder = ::testing::TempDir() + "/muster_log_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/worker-0.log";
  const auto writer = *process::LogFile::Open({.path = path, .max_bytes = 100});
  LocalLogSource source(path, std::make_shared<FolderNotice>(folder));
  std::string written, read;
  int64_t offset = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string line = StrCat("line ", i, " of the task's output\n");
    writer->Append(line);
    written += line;
    if (i % 7 != 0) continue;  // fewer than four files of 100 bytes in between
    while (true) {
      const auto piece = source.Read(offset, 30, 0);
      ASSERT_TRUE(piece.ok()) << piece.status();
      if (piece->bytes.empty()) break;
      EXPECT_FALSE(piece->gap);
      read += piece->bytes;
      offset = piece->next;
    }
  }
  EXPECT_TRUE(written.starts_with(read));
  EXPECT_GT(read.size(), 5000U);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace muster::control
