#include "muster/data/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/data/reader.h"
#include "muster/data/source.h"
#include "muster/data/test_data.h"
#include "muster/formats/csv_test_util.h"
#include "muster/io/memory_file_system.h"

namespace muster::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

formats::Schema PeopleSchema() {
  formats::Schema schema;
  const auto add = [&](std::string name, formats::ValueType type, bool list = false) {
    formats::Field field;
    field.name = std::move(name);
    field.type = type;
    field.list = list;
    schema.fields.push_back(field);
  };
  add("age", formats::ValueType::kInt);
  add("height", formats::ValueType::kFloat);
  add("name", formats::ValueType::kString);
  add("tags", formats::ValueType::kString, true);
  schema.fields[0].has_default = true;
  schema.fields[0].default_value = int64_t{-1};
  return schema;
}

constexpr const char* kPeople =
    "name,unused,age,height,tags\n"
    "\"Smith, J\",0,31,1.5,a|b\n"
    "\"two\nlines\",0,,1.75,\n"
    "Zoë,0,7,+1,c\n";

class ConvertTest : public testing::Test {
 protected:
  ConvertTest() {
    spec_.inputs = {"in.csv"};
    spec_.schema = PeopleSchema();
    spec_.output = {.folder = "out", .files = 2};
  }
  absl::StatusOr<ConversionCounts> Convert(const std::string& text) {
    WriteText(*files_, "in.csv", text);
    return ConvertCsv(*files_, spec_);
  }
  std::string Failure(const std::string& text) {
    const auto counts = Convert(text);
    EXPECT_FALSE(counts.ok());
    EXPECT_THAT(*files_->List("out"), IsEmpty());
    return std::string(counts.status().message());
  }

  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
  ConversionSpec spec_;
};

TEST_F(ConvertTest, WhatIsConvertedIsReadBack) {
  const auto counts = Convert(kPeople);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->rows, 3u);
  EXPECT_GT(counts->bytes, 3 * 16u);
  const std::shared_ptr<const RecordSource> source =
      *OpenSource(*files_, {.patterns = {"out/part-*"}});
  EXPECT_EQ(source->files().size(), 2u);
  auto reader = *BatchReader::Create(source, spec_.schema, {.batch_size = 10});
  formats::Columns columns(spec_.schema);
  ASSERT_TRUE(*reader->Next(&columns));
  // Rows 0 and 2 are in the first part file.
  EXPECT_THAT(columns.column(0).ints, ElementsAre(31, 7, -1));
  EXPECT_THAT(columns.column(1).floats, ElementsAre(1.5f, 1.0f, 1.75f));
  EXPECT_THAT(columns.column(2).strings, ElementsAre("Smith, J", "Zoë", "two\nlines"));
  EXPECT_THAT(columns.column(3).strings, ElementsAre("a", "b", "c"));
  EXPECT_THAT(columns.column(3).offsets, ElementsAre(0, 2, 3, 3));
}

TEST_F(ConvertTest, FilesMayDifferInColumnOrderAndCompression) {
  WriteText(*files_, "in.csv", kPeople);
  WriteText(*files_, "in2.csv.gz", formats::Gzip("tags,height,age,name\n,2,3,x\n"));
  spec_.inputs = {"in*"};
  const auto counts = ConvertCsv(*files_, spec_);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->rows, 4u);
}

TEST_F(ConvertTest, BadInputIsReportedAndLeavesNothing) {
  const std::string head = "name,unused,age,height,tags\nx,0,1,1,\n";
  EXPECT_EQ(Failure(head + "y,0,old,1,\n"), "in.csv:3: column 'age': 'old' is not an int");
  EXPECT_EQ(Failure(head + "y,0,1,,\n"), "in.csv:3: column 'height': no value and no default");
  EXPECT_EQ(Failure(head + "y,0,1,nan,\n").substr(0, 34), "in.csv:3: column 'height': 'nan' i");
  EXPECT_EQ(Failure(head + "\n\ny,0,1\n"), "in.csv:5: the row has 3 cells, the header has 5");
  EXPECT_THAT(Failure(head + "y,0,1,1,\"a\n"), HasSubstr("in.csv:3: the quote that opens"));
  EXPECT_THAT(Failure(head + "\"y\"z,0,1,1,\n"), HasSubstr("in.csv:3: cell 1 continues"));
  EXPECT_THAT(Failure("name,unused,ages,height,tags\n"),
              HasSubstr("in.csv: column 'age' is not in the header (did you mean 'ages'?)"));
  EXPECT_THAT(Failure("name,unused,age,height,tags\n"), HasSubstr("in.csv: no rows"));
  EXPECT_THAT(Failure(""), HasSubstr("in.csv: the file is empty"));
}

TEST_F(ConvertTest, BadRowsAreLeftOutUpToTheLimit) {
  const std::string text = "name,unused,age,height,tags\nx,0,1,1,\ny,0,old,1,\nz,0\nw,0,2,1,\n";
  spec_.max_bad_records = 2;
  const auto counts = Convert(text);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->rows, 2u);
  EXPECT_EQ(counts->bad_records, 2u);
  ASSERT_TRUE(files_->RemoveAll("out").ok());
  spec_.max_bad_records = 1;
  EXPECT_THAT(Failure(text), HasSubstr("in.csv:4"));
  spec_.max_bad_records = 9;
  EXPECT_THAT(Failure("name,unused,age,height,tags\nx\n"), HasSubstr("none of its 1 rows"));
}

TEST_F(ConvertTest, DataMayLackTheLabel) {
  spec_.may_lack = {"height", "age"};
  const auto counts = Convert("name,age,tags\nx,1,\n");
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_THAT(counts->lacking, ElementsAre("height"));
  const std::shared_ptr<const RecordSource> source =
      *OpenSource(*files_, {.patterns = {"out/part-*"}});
  formats::Schema schema = spec_.schema;
  schema.fields.erase(schema.fields.begin() + 1);
  formats::Columns columns(schema);
  ASSERT_TRUE(*(*BatchReader::Create(source, schema, {.batch_size = 9}))->Next(&columns));
  EXPECT_THAT(columns.column(0).ints, ElementsAre(1));
}

TEST_F(ConvertTest, AShortNameIsNoMisspelling) {
  spec_.schema.fields[0].name = "y";
  spec_.may_lack = {"y"};
  const auto counts = Convert("x,height,name,tags\n1,1,x,\n");
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_THAT(counts->lacking, ElementsAre("y"));
  EXPECT_FALSE(Convert("Y,height,name,tags\n1,1,x,\n").ok());
}

TEST_F(ConvertTest, ALabelThatIsMisspeltIsAnError) {
  spec_.may_lack = {"height"};
  EXPECT_THAT(Failure("name,Height,age,tags\n"),
              HasSubstr("column 'height' is not in the header (did you mean 'Height'?)"));
}

TEST_F(ConvertTest, FindsTheDelimiterAndReportsIt) {
  std::string told;
  spec_.note = [&told](const std::string& note) { told = note; };
  const auto counts = Convert("name;age;height;tags\nx;1;2;a|b\n");
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_THAT(told, HasSubstr("in.csv is read as CSV with ';' between its 4 cells"));
}

TEST_F(ConvertTest, FilesThatNeedNoConversionAreRefused) {
  WriteTfRecords(*files_, "in.csv", {"r"});
  EXPECT_EQ(ConvertCsv(*files_, spec_).status().message(),
            "in.csv: this is TFRecord, which needs no conversion: give it to train, evaluate or "
            "predict");
}

TEST_F(ConvertTest, ProgressCanStopIt) {
  std::string text = "name,unused,age,height,tags\n";
  for (int i = 0; i < 10'000; ++i) text += "x,0,1,1,\n";
  WriteText(*files_, "in.csv", text);
  uint64_t last = 0;
  const auto counts = ConvertCsv(*files_, spec_, [&](const ConversionCounts& so_far) {
    last = so_far.rows;
    return so_far.rows > 5000 ? absl::CancelledError("stopped") : absl::OkStatus();
  });
  EXPECT_EQ(counts.status(), absl::CancelledError("stopped"));
  EXPECT_LT(last, 10'000u);
  EXPECT_THAT(*files_->List("out"), IsEmpty());
}

}  // namespace
}  // namespace muster::data
