#include "muster/formats/event.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "muster/formats/tfrecord.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::formats {
namespace {

std::string OnlyEventFile(io::FileSystem& files, const std::string& folder) {
  const auto names = files.List(folder);
  if (!names.ok() || names->size() != 1) return "not one file";
  return io::JoinPath(folder, names->front());
}

TEST(EventWriterTest, WritesTheBytesOfTheProtobuf) {
  const auto files = io::NewMemoryFileSystem();
  FakeClock clock(1.5);
  EventWriter writer(*files, "logs", clock);
  ASSERT_TRUE(writer.WriteScalars(3, {{"loss", 0.5f}}).ok());
  ASSERT_TRUE(writer.Close().ok());
  const std::string path = OnlyEventFile(*files, "logs");
  EXPECT_EQ(path.find("logs/events.out.tfevents.0000000001."), 0u) << path;
  std::vector<std::string> records;
  ASSERT_TRUE(ForEachRecord(*io::ReadFile(*files, path), path, 0, [&](size_t offset, size_t size) {
                records.push_back(io::ReadFile(*files, path)->substr(offset, size));
              }).ok());
  ASSERT_EQ(records.size(), 2u);
  const std::string wall_time("\x09\0\0\0\0\0\0\xf8\x3f", 9);  // 1.5
  EXPECT_EQ(records[0], wall_time +
                            "\x1a\x0d"
                            "brain.Event:2");
  EXPECT_EQ(records[1],
            wall_time + "\x10\x03\x2a\x0d\x0a\x0b\x0a\x04loss" + std::string("\x15\0\0\0\x3f", 5));
}

TEST(EventWriterTest, ScalarsComeBack) {
  const auto files = io::NewMemoryFileSystem();
  FakeClock clock;
  EventWriter writer(*files, "a/b", clock, ".suffix");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(writer.WriteScalars(0, {{"loss", 0.5f}, {"auc", 0.75f}}).ok());
  clock.Advance(2.25);
  ASSERT_TRUE(writer.WriteScalars(int64_t{1} << 40, {{"loss", nan}}).ok());
  ASSERT_TRUE(writer.WriteScalars(7, {}).ok());
  ASSERT_TRUE(writer.Flush().ok());
  const std::string path = OnlyEventFile(*files, "a/b");
  EXPECT_EQ(path.substr(path.size() - 7), ".suffix");
  const auto events = ReadScalarEvents(*files, path);  // the writer is still open
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 3u);
  EXPECT_EQ((*events)[0].tag, "loss");
  EXPECT_EQ((*events)[0].value, 0.5f);
  EXPECT_EQ((*events)[0].step, 0);
  EXPECT_EQ((*events)[0].wall_time, 1'700'000'000);
  EXPECT_EQ((*events)[1].tag, "auc");
  EXPECT_EQ((*events)[2].step, int64_t{1} << 40);
  EXPECT_EQ((*events)[2].wall_time, 1'700'000'002.25);
  EXPECT_TRUE(std::isnan((*events)[2].value));
}

TEST(EventWriterTest, OtherSummariesAndGraphsAreSkipped) {
  const auto files = io::NewMemoryFileSystem();
  FakeClock clock(1.5);
  EventWriter writer(*files, "logs", clock);
  Summary summary;
  summary.AddText("spec", "text");
  summary.AddScalar("loss", 0.5f);
  summary.AddHistogram("kernel", {.count = 1, .limits = {0}, .buckets = {1}});
  ASSERT_TRUE(writer.WriteSummary(4, summary).ok());
  ASSERT_TRUE(writer.WriteGraph("a graph").ok());
  ASSERT_TRUE(writer.WriteScalars(5, {{"loss", 0.25f}}).ok());
  ASSERT_TRUE(writer.Close().ok());
  const std::string path = OnlyEventFile(*files, "logs");
  const auto events = ReadScalarEvents(*files, path);
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 2u);
  EXPECT_EQ((*events)[0].step, 4);
  EXPECT_EQ((*events)[0].value, 0.5f);
  EXPECT_EQ((*events)[1].step, 5);
  const std::string wall_time("\x09\0\0\0\0\0\0\xf8\x3f", 9);
  EXPECT_NE(io::ReadFile(*files, path)->find(wall_time + "\x22\x07" + "a graph"),
            std::string::npos);
}

TEST(EventWriterTest, WithoutEventsThereIsNoFileAndNamesAreUnique) {
  const auto files = io::NewMemoryFileSystem();
  FakeClock clock;
  {
    EventWriter idle(*files, "logs", clock);
    EXPECT_TRUE(idle.Flush().ok());
    EXPECT_TRUE(idle.Close().ok());
  }
  EXPECT_FALSE(files->Stat("logs").ok());
  for (int n = 0; n < 3; ++n) {
    EventWriter writer(*files, "logs", clock);
    ASSERT_TRUE(writer.WriteScalars(n, {{"x", 1}}).ok());
  }
  EXPECT_EQ(files->List("logs")->size(), 3u);
}

TEST(EventWriterTest, AfterAFullDiskAllWritesFail) {
  const auto memory = io::NewMemoryFileSystem();
  io::FaultFileSystem files(*memory);
  FakeClock clock;
  EventWriter writer(files, "logs", clock);
  ASSERT_TRUE(writer.WriteScalars(1, {{"x", 1}}).ok());
  files.FillDiskAfter(5);
  EXPECT_TRUE(absl::IsResourceExhausted(writer.WriteScalars(2, {{"x", 1}})));
  EXPECT_TRUE(absl::IsResourceExhausted(writer.WriteScalars(3, {{"x", 1}})));
  EXPECT_FALSE(writer.Close().ok());
}

TEST(EventWriterTest, AFailureThatIsToleratedIsToldOnce) {
  for (const auto operation :
       {io::FileOperation::kMakeFolders, io::FileOperation::kCreate, io::FileOperation::kWrite,
        io::FileOperation::kFlush, io::FileOperation::kClose}) {
    for (const bool tolerated : {true, false}) {
      const auto memory = io::NewMemoryFileSystem();
      io::FaultFileSystem files(*memory);
      FakeClock clock;
      EventWriter writer(files, "logs", clock);
      std::vector<absl::Status> told;
      writer.SetTolerance([&](const absl::Status& failure) {
        told.push_back(failure);
        return tolerated;
      });
      files.FailNth(operation, 1, absl::ResourceExhaustedError("full"));
      absl::Status status;
      for (int step = 1; step <= 3; ++step) {
        status.Update(writer.WriteScalars(step, {{"x", 1}}));
        status.Update(writer.Flush());
      }
      status.Update(writer.Close());
      EXPECT_EQ(status.ok(), tolerated) << status;
      EXPECT_EQ(told.size(), 1u);
    }
  }
}

TEST(ReadScalarEventsTest, ACutRecordEndsTheFileAndABrokenOneFails) {
  const auto files = io::NewMemoryFileSystem();
  FakeClock clock;
  EventWriter writer(*files, "logs", clock);
  for (int step = 1; step <= 3; ++step) ASSERT_TRUE(writer.WriteScalars(step, {{"x", 1}}).ok());
  ASSERT_TRUE(writer.Close().ok());
  const std::string path = OnlyEventFile(*files, "logs");
  const std::string bytes = *io::ReadFile(*files, path);
  size_t last_count = 0;
  for (size_t size = 0; size <= bytes.size(); ++size) {
    ASSERT_TRUE(io::WriteFileAtomically(*files, "cut", bytes.substr(0, size)).ok());
    const auto events = ReadScalarEvents(*files, "cut");
    ASSERT_TRUE(events.ok()) << size << ": " << events.status();
    EXPECT_GE(events->size(), last_count);
    last_count = events->size();
  }
  EXPECT_EQ(last_count, 3u);
  int found = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string broken = bytes;
    broken[i] ^= 4;
    ASSERT_TRUE(io::WriteFileAtomically(*files, "broken", broken).ok());
    const absl::Status status = ReadScalarEvents(*files, "broken").status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << i << ": " << status;
    found += !status.ok();
  }
  EXPECT_EQ(found, static_cast<int>(bytes.size()));
}

}  // namespace
}  // namespace muster::formats
