// What the tests of this layer share: real small programs, and waiting for what they do.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "muster/process/child.h"
#include "muster/process/deadline.h"
#include "muster/process/proc.h"

namespace muster::process {

// What is waited for happens in milliseconds, or a bug holds it up.
constexpr double kTestSeconds = 60;

// A folder of the test's own, gone afterwards.
class TestFolder {
 public:
  TestFolder() {
    std::string path = testing::TempDir() + "/muster_process_XXXXXX";
    path_ = mkdtemp(path.data());
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& text,
                    bool executable = false) const {
    const std::string path = File(name);
    std::ofstream(path) << text;
    if (executable) {
      std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    }
    return path;
  }

 private:
  std::string path_;
};

inline std::string ReadAll(const std::string& path) {
  return ReadSmallFile(path, size_t{64} << 20).value_or("");
}

// Looks until it holds. For states of other processes that nothing announces.
inline bool Eventually(const std::function<bool()>& holds) {
  const Deadline deadline = Deadline::After(kTestSeconds);
  while (!holds()) {
    if (deadline.expired()) return false;
    usleep(1000);
  }
  return true;
}

inline ChildSpec Shell(const std::string& script) {
  return {.argv = {"sh", "-c", script}, .environment = CurrentEnvironment()};
}

// A pipe whose reading end is here; the writing end goes to a program.
struct TestPipe {
  Descriptor reading, writing;
  TestPipe() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    reading.Reset(ends[0]);
    writing.Reset(ends[1]);
  }
  // Up to a newline; what there was when the other end closed, or the deadline passed.
  std::string ReadLine() const {
    std::string line;
    const int fd = reading.get();
    char byte;
    while (PollReadable(&fd, 1, Deadline::After(kTestSeconds)) && read(fd, &byte, 1) == 1) {
      if (byte == '\n') break;
      line.push_back(byte);
    }
    return line;
  }
  // Closes our writing end first.
  std::string ReadToEnd() {
    writing.Reset();
    std::string text;
    char buffer[4096];
    ssize_t got;
    while ((got = read(reading.get(), buffer, sizeof buffer)) > 0) text.append(buffer, got);
    return text;
  }
};

inline bool IsGone(pid_t pid) {
  const auto stat = ReadStat(pid);
  return !stat || stat->ended();
}

}  // namespace muster::process
