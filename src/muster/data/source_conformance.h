// The conformance suite of RecordSource and SourceSet, for all implementations.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "muster/data/source.h"
#include "muster/io/memory_file_system.h"

namespace muster::data {

// How the files or partitions of an implementation are written.
class SourceFormat {
 public:
  virtual ~SourceFormat() = default;
  virtual std::string name() const = 0;
  virtual std::string extension() const = 0;
  // Prepares for a test: nothing that was written before remains. An implementation for data that
  // is not in files returns its scheme, with which its patterns begin.
  virtual SourceSchemes Begin() { return {}; }
  // Whether chunks have exactly as many records as they announce; else at most as many.
  virtual bool exact() const { return true; }
  // Returns the bytes of record number `number`, about `size` long.
  virtual std::string Record(uint64_t number, size_t size) const = 0;
  // Replaces the contents of `path`, which is "data/NAME" and the extension.
  virtual void Write(io::FileSystem& files, const std::string& path,
                     const std::vector<std::string>& records) const = 0;
  virtual bool compressed() const = 0;
};

class RecordSourceConformance : public testing::TestWithParam<std::shared_ptr<SourceFormat>> {
 protected:
  // Writes three files data/a, b, c of several chunks (the second has one record), with 7,001
  // records in total.
  void SetUp() override;
  // Returns the spec of the files with these paths, or of all files if there are no paths.
  SourceSpec Spec(Shard shard = {}, const std::vector<std::string>& paths = {}) const;
  std::unique_ptr<RecordSource> Open(Shard shard = {}, const std::vector<std::string>& paths = {});
  // Returns the records of the source, chunk after chunk.
  std::vector<std::string> All(const RecordSource& source) const;

  const SourceFormat& format() const { return *GetParam(); }
  std::string Path(const std::string& name) const { return "data/" + name + format().extension(); }

  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
  SourceSchemes schemes_;
  std::vector<std::vector<std::string>> written_;  // by file
  std::vector<std::string> all_;
};

// Tests that only files must pass.
class FileSourceConformance : public RecordSourceConformance {};

inline void RecordSourceConformance::SetUp() {
  schemes_ = GetParam()->Begin();
  uint64_t number = 0;
  for (const size_t count : {4000, 1, 3000}) {
    std::vector<std::string>& records = written_.emplace_back();
    while (records.size() < count) {
      records.push_back(format().Record(number, 300 + number * 7919 % 1200));
      all_.push_back(records.back());
      ++number;
    }
  }
  ASSERT_TRUE(files_->MakeFolders("data").ok());
  const std::vector<std::string> names = {"a", "b", "c"};
  for (size_t i = 0; i < names.size(); ++i) format().Write(*files_, Path(names[i]), written_[i]);
}

inline SourceSpec RecordSourceConformance::Spec(Shard shard,
                                                const std::vector<std::string>& paths) const {
  SourceSpec spec = {.patterns = {}, .shard = shard, .schemes = schemes_};
  const std::string prefix = schemes_.empty() ? "" : schemes_.begin()->first + "://";
  for (const std::string& path : paths) spec.patterns.push_back(prefix + path);
  if (paths.empty()) spec.patterns.push_back(schemes_.empty() ? "data/*" : prefix + "data");
  return spec;
}

inline std::unique_ptr<RecordSource> RecordSourceConformance::Open(
    Shard shard, const std::vector<std::string>& paths) {
  auto source = OpenSource(*files_, Spec(shard, paths));
  EXPECT_TRUE(source.ok()) << source.status();
  return source.ok() ? *std::move(source) : nullptr;
}

inline std::vector<std::string> RecordSourceConformance::All(const RecordSource& source) const {
  std::vector<std::string> records;
  for (size_t i = 0; i < source.chunks().size(); ++i) {
    auto chunk = source.Read(i);
    EXPECT_TRUE(chunk.ok()) << chunk.status();
    if (!chunk.ok()) break;
    if (format().exact()) {
      EXPECT_EQ((*chunk)->records.size(), source.chunks()[i].records);
    }
    EXPECT_LE((*chunk)->records.size(), source.chunks()[i].records);
    EXPECT_EQ((*chunk)->records.size(), (*chunk)->offsets.size());
    records.insert(records.end(), (*chunk)->records.begin(), (*chunk)->records.end());
  }
  return records;
}

}  // namespace muster::data
