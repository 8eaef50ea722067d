#include "muster/files/tensorflow/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "muster/files/service/file_service.h"
#include "muster/io/file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::files {

struct TF_Status {
  int code = -1;
  std::string message;
};

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void SetStatus(TF_Status* status, int code, const char* message) { *status = {code, message}; }

// A service in a thread of this process, and what TensorFlow has of its plugin.
class PluginTest : public testing::Test {
 protected:
  PluginTest()
      : client_([this](int* control) {
          int ends[2] = {-1, -1};
          EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
          *control = ends[0];
          control_ = ends[0];
          threads_.emplace_back([this, end = ends[1]] {
            FileService service(*files_);
            EXPECT_TRUE(service.Serve(end).ok());
            close(end);
          });
          return Outcome{};
        }) {
    EXPECT_TRUE(files_->MakeFolders("/d").ok());
    FillPlugin(client_, SetStatus, {"hdfs", "webhdfs"}, &info_);
    info_.ops[0].filesystem_ops->init(&system_, &status_);
    EXPECT_EQ(status_.code, 0);
  }
  ~PluginTest() override {
    for (size_t i = 0; i < info_.num_schemes; ++i) {
      info_.plugin_memory_free(info_.ops[i].scheme);
      info_.plugin_memory_free(info_.ops[i].filesystem_ops);
      info_.plugin_memory_free(info_.ops[i].random_access_file_ops);
      info_.plugin_memory_free(info_.ops[i].writable_file_ops);
    }
    info_.plugin_memory_free(info_.ops);
    shutdown(control_, SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
  }

  const TF_FilesystemOps& ops() const { return *info_.ops[0].filesystem_ops; }
  const TF_RandomAccessFileOps& reads() const { return *info_.ops[0].random_access_file_ops; }
  const TF_WritableFileOps& writes() const { return *info_.ops[0].writable_file_ops; }

  void Write(const std::string& path, const std::string& text) {
    TF_WritableFile file = {};
    ops().new_writable_file(&system_, path.c_str(), &file, &status_);
    ASSERT_EQ(status_.code, 0) << status_.message;
    writes().append(&file, text.data(), text.size(), &status_);
    writes().close(&file, &status_);
    EXPECT_EQ(status_.code, 0) << status_.message;
    writes().cleanup(&file);
  }
  std::string Contents(const std::string& path) {
    const auto contents = io::ReadFile(*files_, path);
    return contents.ok() ? *contents : contents.status().ToString();
  }
  int Exists(const std::string& path) {
    ops().path_exists(&system_, path.c_str(), &status_);
    return status_.code;
  }

  std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
  std::vector<std::thread> threads_;
  int control_ = -1;
  FileClient client_;
  TF_FilesystemPluginInfo info_;
  TF_Filesystem system_ = {};
  TF_Status status_;
};

TEST_F(PluginTest, HasTheTablesThatTensorFlowAsksFor) {
  ASSERT_EQ(info_.num_schemes, 2U);
  EXPECT_STREQ(info_.ops[1].scheme, "webhdfs");
  EXPECT_EQ(info_.ops[0].filesystem_ops_abi, 0);
  // What TensorFlow 2.4 has of each table, by its header.
  EXPECT_EQ(info_.ops[0].filesystem_ops_size, 21 * sizeof(void*));
  EXPECT_EQ(info_.ops[0].random_access_file_ops_size, 2 * sizeof(void*));
  EXPECT_EQ(info_.ops[0].writable_file_ops_size, 6 * sizeof(void*));
  EXPECT_EQ(sizeof(TF_FilesystemPluginOps), 13 * sizeof(void*));
}

TEST_F(PluginTest, ReadsUpToTheEnd) {
  Write("/a", "0123456789");
  TF_RandomAccessFile file = {};
  ops().new_random_access_file(&system_, "/a", &file, &status_);
  ASSERT_EQ(status_.code, 0) << status_.message;
  char buffer[8] = {};
  EXPECT_EQ(reads().read(&file, 2, 4, buffer, &status_), 4);
  EXPECT_EQ(status_.code, 0);
  EXPECT_EQ(std::string(buffer, 4), "2345");
  EXPECT_EQ(reads().read(&file, 7, 8, buffer, &status_), 3);
  EXPECT_EQ(status_.code, Outcome::kOutOfRange);
  EXPECT_EQ(std::string(buffer, 3), "789");
  EXPECT_EQ(reads().read(&file, 99, 8, buffer, &status_), 0);
  EXPECT_EQ(status_.code, Outcome::kOutOfRange);
  reads().cleanup(&file);
}

TEST_F(PluginTest, ReadsAndWritesMoreThanOnePieceHolds) {
  std::string text(2 * kMaxPieceBytes + 5, 'x');
  for (size_t i = 0; i < text.size(); i += 1000) text[i] = static_cast<char>('a' + i % 23);
  Write("/large", text);
  EXPECT_TRUE(Contents("/large") == text);
  TF_RandomAccessFile file = {};
  ops().new_random_access_file(&system_, "/large", &file, &status_);
  std::string read(text.size(), ' ');
  EXPECT_EQ(reads().read(&file, 0, read.size(), read.data(), &status_), text.size());
  EXPECT_TRUE(read == text);
  reads().cleanup(&file);
}

TEST_F(PluginTest, AppendsAndTellsThePosition) {
  Write("/a", "0123");
  TF_WritableFile file = {};
  ops().new_appendable_file(&system_, "/a", &file, &status_);
  ASSERT_EQ(status_.code, 0) << status_.message;
  EXPECT_EQ(writes().tell(&file, &status_), 4);
  writes().append(&file, "45", 2, &status_);
  EXPECT_EQ(writes().tell(&file, &status_), 6);
  EXPECT_EQ(Contents("/a"), "0123");
  writes().flush(&file, &status_);
  EXPECT_EQ(Contents("/a"), "012345");
  writes().append(&file, "6", 1, &status_);
  writes().cleanup(&file);  // not closed: as the program left it
  EXPECT_EQ(Contents("/a"), "0123456");
}

TEST_F(PluginTest, MakesFoldersAsTensorFlowSays) {
  ops().create_dir(&system_, "/a/b", &status_);
  EXPECT_EQ(status_.code, Outcome::kNotFound);
  ops().recursively_create_dir(&system_, "/a/b", &status_);
  EXPECT_EQ(status_.code, 0);
  ops().create_dir(&system_, "/a/b/", &status_);
  EXPECT_EQ(status_.code, Outcome::kAlreadyExists);
  ops().create_dir(&system_, "/a/c/", &status_);
  EXPECT_EQ(status_.code, 0);
  Write("/a/f", "x");
  ops().create_dir(&system_, "/a/f/g", &status_);
  EXPECT_EQ(status_.code, Outcome::kFailedPrecondition);
}

TEST_F(PluginTest, ListsAndDescribes) {
  Write("/d/b", "123");
  Write("/d/a", "");
  char** entries = nullptr;
  ASSERT_EQ(ops().get_children(&system_, "/d", &entries, &status_), 2);
  EXPECT_STREQ(entries[0], "a");
  EXPECT_STREQ(entries[1], "b");
  for (int i = 0; i < 2; ++i) info_.plugin_memory_free(entries[i]);
  info_.plugin_memory_free(entries);
  EXPECT_EQ(ops().get_children(&system_, "/d/b", &entries, &status_), -1);
  EXPECT_EQ(status_.code, Outcome::kFailedPrecondition);
  TF_FileStatistics stats = {};
  ops().stat(&system_, "/d/b", &stats, &status_);
  EXPECT_EQ(stats.length, 3);
  EXPECT_FALSE(stats.is_directory);
  EXPECT_TRUE(ops().is_directory(&system_, "/d", &status_));
  EXPECT_FALSE(ops().is_directory(&system_, "/d/b", &status_));
  EXPECT_EQ(status_.code, Outcome::kFailedPrecondition);
  EXPECT_EQ(ops().get_file_size(&system_, "/d/b", &status_), 3);
  EXPECT_EQ(Exists("/d/none"), Outcome::kNotFound);
  EXPECT_THAT(status_.message, HasSubstr("/d/none"));
}

TEST_F(PluginTest, RenamesAndDeletes) {
  Write("/d/a", "1");
  Write("/d/b", "2");
  ops().rename_file(&system_, "/d/a", "/d/b", &status_);
  EXPECT_EQ(status_.code, 0);
  EXPECT_EQ(Contents("/d/b"), "1");
  ops().delete_dir(&system_, "/d", &status_);
  EXPECT_EQ(status_.code, Outcome::kFailedPrecondition);
  ops().delete_dir(&system_, "/d/b", &status_);
  EXPECT_EQ(status_.code, Outcome::kFailedPrecondition);
  ops().delete_file(&system_, "/d", &status_);
  EXPECT_EQ(status_.code, Outcome::kFailedPrecondition);
  uint64_t files = 9;
  uint64_t folders = 9;
  ops().delete_recursively(&system_, "/d", &files, &folders, &status_);
  EXPECT_EQ(status_.code, 0);
  EXPECT_EQ(files + folders, 0U);
  EXPECT_EQ(Exists("/d"), Outcome::kNotFound);
  ops().delete_recursively(&system_, "/d", &files, &folders, &status_);
  EXPECT_EQ(status_.code, Outcome::kNotFound);
  EXPECT_EQ(folders, 1U);
}

TEST_F(PluginTest, ServesSeveralThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      TF_Status status;
      const std::string path = "/d/" + std::to_string(t);
      for (int round = 0; round < 50; ++round) {
        TF_WritableFile file = {};
        ops().new_writable_file(&system_, path.c_str(), &file, &status);
        writes().append(&file, path.data(), path.size(), &status);
        writes().close(&file, &status);
        EXPECT_EQ(status.code, 0) << status.message;
        writes().cleanup(&file);
        EXPECT_EQ(ops().get_file_size(&system_, path.c_str(), &status), path.size());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(PluginTest, AServiceThatEndsIsAnErrorAndIsReplaced) {
  Write("/a", "1");
  TF_RandomAccessFile file = {};
  ops().new_random_access_file(&system_, "/a", &file, &status_);
  shutdown(control_, SHUT_RDWR);
  char buffer[1];
  while (reads().read(&file, 0, 1, buffer, &status_) == 1) std::this_thread::yield();
  EXPECT_EQ(status_.code, Outcome::kUnavailable);
  EXPECT_THAT(status_.message, HasSubstr("/a: the process of muster"));
  EXPECT_EQ(Exists("/a"), 0);
  // The new service knows nothing of the file.
  EXPECT_EQ(reads().read(&file, 0, 1, buffer, &status_), -1);
  EXPECT_EQ(status_.code, Outcome::kFailedPrecondition);
  reads().cleanup(&file);
  EXPECT_EQ(threads_.size(), 2U);
}

TEST(FileServiceTest, RefusesWhatIsNoRequest) {
  const auto files = io::NewMemoryFileSystem();
  FileService service(*files);
  for (const uint16_t op : {uint16_t{0}, uint16_t{99}, static_cast<uint16_t>(FileOp::kRead)}) {
    EXPECT_NE(service.Do({.op = op, .file = 1}, "/a", "").head.code, 0U);
  }
  const auto reading = service.Do({.op = static_cast<uint16_t>(FileOp::kOpenForWrite)}, "/a", "");
  ASSERT_EQ(reading.head.code, 0U);
  const FileRequestHead read = {
      .op = static_cast<uint16_t>(FileOp::kRead), .file = reading.head.number, .size = 1};
  EXPECT_THAT(service.Do(read, "", "").data, HasSubstr("it is open for writing"));
}

}  // namespace
}  // namespace muster::files
