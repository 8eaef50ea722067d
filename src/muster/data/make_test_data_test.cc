#include <gtest/gtest.h>

#include <cstring>

#include "muster/base/crc32c.h"
#include "muster/data/memory_log.h"
#include "muster/data/test_data.h"
#include "muster/formats/csv_test_util.h"
#include "muster/formats/tfrecord.h"

namespace muster::data {
namespace {

std::string Frame(const std::string& record) {
  const auto little = [](uint64_t value, size_t size) {
    std::string bytes(size, '\0');
    std::memcpy(bytes.data(), &value, size);
    return bytes;
  };
  const std::string length = little(record.size(), 8);
  return length + little(MaskedCrc32c(length), 4) + record + little(MaskedCrc32c(record), 4);
}

class TfRecordFormat : public SourceFormat {
 public:
  explicit TfRecordFormat(formats::Compression compression) : compression_(compression) {}
  std::string name() const override {
    return compression_ == formats::Compression::kNone   ? "TfRecord"
           : compression_ == formats::Compression::kGzip ? "TfRecordGzip"
                                                         : "TfRecordZlib";
  }
  std::string extension() const override { return ".tfrecord"; }
  std::string Record(uint64_t number, size_t size) const override {
    return StrCat(number, ":", std::string(size, static_cast<char>(number)));
  }
  void Write(io::FileSystem& files, const std::string& path,
             const std::vector<std::string>& records) const override {
    WriteTfRecords(files, path, records, compression_);
  }
  bool compressed() const override { return compression_ != formats::Compression::kNone; }

 private:
  const formats::Compression compression_;
};

// Cells have line breaks, quotes and delimiters; there are blank lines between rows, and no line
// end at the end of the file.
class CsvFormat : public SourceFormat {
 public:
  explicit CsvFormat(bool gzip) : gzip_(gzip) {}
  std::string name() const override { return gzip_ ? "CsvGzip" : "Csv"; }
  std::string extension() const override { return gzip_ ? ".csv.gz" : ".csv"; }
  std::string Record(uint64_t number, size_t size) const override {
    std::string filler(size, 'x');
    if (number % 3 == 0) filler[size / 2] = '\n';
    if (number % 5 == 0) filler[size / 3] = '"';
    std::string row = StrCat(number, ",");
    formats::AppendCsvCell(filler, ',', &row);
    return row;
  }
  void Write(io::FileSystem& files, const std::string& path,
             const std::vector<std::string>& records) const override {
    std::string text = "number,filler";
    for (size_t i = 0; i < records.size(); ++i) {
      text += (i % 7 == 0 ? "\r\n\n" : "\n") + records[i];
    }
    WriteText(files, path, gzip_ ? formats::Gzip(text) : text);
  }
  bool compressed() const override { return gzip_; }

 private:
  const bool gzip_;
};

// Objects with quotes and escapes, which must be treated like any other character here.
class JsonLinesFormat : public SourceFormat {
 public:
  explicit JsonLinesFormat(bool gzip) : gzip_(gzip) {}
  std::string name() const override { return gzip_ ? "JsonLinesGzip" : "JsonLines"; }
  std::string extension() const override { return gzip_ ? ".jsonl.gz" : ".jsonl"; }
  std::string Record(uint64_t number, size_t size) const override {
    return StrCat("{\"number\":", number, R"(,"filler":"\")", std::string(size, 'x'), "\"}");
  }
  void Write(io::FileSystem& files, const std::string& path,
             const std::vector<std::string>& records) const override {
    std::string text;
    for (size_t i = 0; i < records.size(); ++i) {
      text += records[i] + (i % 7 == 0 ? "\r\n\n" : "\n");
    }
    WriteText(files, path, gzip_ ? formats::Gzip(text) : text);
  }
  bool compressed() const override { return gzip_; }

 private:
  const bool gzip_;
};

// Partitions with gaps before, between and after the records.
class LogFormat : public SourceFormat {
 public:
  std::string name() const override { return "MemoryLog"; }
  std::string extension() const override { return ""; }
  SourceSchemes Begin() override {
    log_ = std::make_shared<MemoryLog>();
    return {{MemoryLog::kScheme, log_}};
  }
  bool exact() const override { return false; }
  std::string Record(uint64_t number, size_t size) const override {
    return StrCat(number, ":", std::string(size, static_cast<char>(number)));
  }
  void Write(io::FileSystem&, const std::string& path,
             const std::vector<std::string>& records) const override {
    log_->Remove(path);
    log_->Skip(path, 0);
    for (size_t i = 0; i < records.size(); ++i) {
      if (i % 5 == 0) log_->Skip(path, i % 7);
      if (i == 1000) log_->Skip(path, 900);  // a gap as compaction leaves it
      log_->Append(path, records[i]);
      if (i + 1 == records.size()) log_->Skip(path, 2);
    }
  }
  bool compressed() const override { return false; }

 private:
  std::shared_ptr<MemoryLog> log_;
};

}  // namespace

void WriteText(io::FileSystem& files, const std::string& path, const std::string& text) {
  auto file = files.OpenForWrite(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append(text).ok());
  ASSERT_TRUE((*file)->Close().ok());
}

void WriteTfRecords(io::FileSystem& files, const std::string& path,
                    const std::vector<std::string>& records, formats::Compression compression,
                    const std::function<void(std::string*)>& damage) {
  std::string frames;
  for (const std::string& record : records) frames += Frame(record);
  if (damage) damage(&frames);
  if (compression == formats::Compression::kNone) return WriteText(files, path, frames);
  auto file = files.OpenForWrite(path);
  ASSERT_TRUE(file.ok()) << file.status();
  formats::Deflater deflater(compression);
  ASSERT_TRUE(deflater.Write(frames, file->get()).ok());
  ASSERT_TRUE(deflater.Finish(file->get()).ok());
  ASSERT_TRUE((*file)->Close().ok());
}

std::vector<std::shared_ptr<SourceFormat>> FileSourceFormats() {
  return {std::make_shared<TfRecordFormat>(formats::Compression::kNone),
          std::make_shared<TfRecordFormat>(formats::Compression::kGzip),
          std::make_shared<TfRecordFormat>(formats::Compression::kZlib),
          std::make_shared<CsvFormat>(false),
          std::make_shared<CsvFormat>(true),
          std::make_shared<JsonLinesFormat>(false),
          std::make_shared<JsonLinesFormat>(true)};
}

std::vector<std::shared_ptr<SourceFormat>> AllSourceFormats() {
  auto all = FileSourceFormats();
  all.push_back(std::make_shared<LogFormat>());
  return all;
}

}  // namespace muster::data
