#include "muster/data/file_rules.h"

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

formats::Schema IntSchema(const std::vector<std::string>& names) {
  formats::Schema schema;
  for (const std::string& name : names) {
    formats::Field& field = schema.fields.emplace_back();
    field.name = name;
    field.type = formats::ValueType::kInt;
  }
  return schema;
}

class FileRulesTest : public testing::Test {
 protected:
  SetRules Find(const std::vector<std::string>& paths, const formats::DataFormat& given = {}) {
    auto rules = FindSetRules(*files_, paths, given);
    EXPECT_TRUE(rules.ok()) << rules.status();
    return rules.ok() ? *std::move(rules) : SetRules();
  }
  // Reads the values of the columns in all rows, one after the other.
  absl::StatusOr<std::vector<std::vector<int64_t>>> ReadInts(
      const SourceSpec& spec, const std::vector<std::string>& columns) {
    MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const RecordSource> source, OpenSource(*files_, spec));
    const formats::Schema schema = IntSchema(columns);
    MUSTER_ASSIGN_OR_RETURN(const auto reader,
                            BatchReader::Create(source, schema, {.batch_size = 100}));
    formats::Columns rows(schema);
    MUSTER_RETURN_IF_ERROR(reader->Next(&rows).status());
    std::vector<std::vector<int64_t>> values;
    for (const formats::Column& column : rows.columns()) values.push_back(column.ints);
    return values;
  }

  const std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
};

TEST_F(FileRulesTest, ContentDecidesWhateverTheName) {
  WriteText(*files_, "part-0", "a;b\n1;2\n");
  WriteText(*files_, "zipped", formats::Gzip("a;b\n1;2\n"));
  WriteText(*files_, "lines", "{\"a\": 1}\n");
  WriteTfRecords(*files_, "records.csv", {"r"});
  const SetRules text = Find({"part-0", "zipped"});
  EXPECT_EQ(text.files[0].format, FileFormat::kCsv);
  EXPECT_EQ(text.files[0].csv.delimiter, ';');
  EXPECT_EQ(text.files[0].compression, formats::Compression::kNone);
  EXPECT_EQ(text.files[1].compression, formats::Compression::kGzip);
  EXPECT_EQ(Find({"lines"}).files[0].format, FileFormat::kJsonLines);
  EXPECT_EQ(Find({"records.csv"}).files[0].format, FileFormat::kTfRecord);
}

TEST_F(FileRulesTest, GuessesAreReportedButGivenSettingsAreNot) {
  WriteText(*files_, "part-0", "a;b\n1;2\n");
  WriteText(*files_, "a.csv", "a,b\n1,2\n");
  WriteText(*files_, "semicolons.csv", "a;b\n1;2\n");
  WriteText(*files_, "tabs.tsv", "a\tb\n1\t2\n");
  WriteTfRecords(*files_, "records", {"r"});
  EXPECT_THAT(Find({"part-0"}).note,
              HasSubstr("part-0 is read as CSV with ';' between its 2 cells, as its content says"));
  EXPECT_THAT(Find({"semicolons.csv"}).note, HasSubstr("with ';' between its 2 cells"));
  for (const char* const expected : {"a.csv", "tabs.tsv", "records"}) {
    EXPECT_EQ(Find({expected}).note, "") << expected;
  }
  const formats::DataFormat given = {.type = FileFormat::kCsv, .delimiter = ';'};
  EXPECT_EQ(Find({"part-0"}, given).note, "");
}

TEST_F(FileRulesTest, AnEmptyFileHasTheFormatOfTheOthers) {
  WriteText(*files_, "part-0", "");
  WriteText(*files_, "part-1", "a|b\n1|2\n");
  const SetRules rules = Find({"part-0", "part-1"});
  EXPECT_EQ(rules.files[0].format, FileFormat::kCsv);
  EXPECT_EQ(rules.files[0].csv.delimiter, '|');
}

TEST_F(FileRulesTest, FilesOfTwoFormatsAreRefused) {
  WriteText(*files_, "a", "x,y\n1,2\n");
  WriteText(*files_, "b", "{\"x\": 1}\n");
  EXPECT_EQ(FindSetRules(*files_, {"a", "b"}, {}).status().message(),
            "files of two formats cannot be read together: a is CSV, but b is JSON lines");
}

TEST_F(FileRulesTest, ColumnsOfFilesMayBeInAnyOrder) {
  WriteText(*files_, "a.csv", "x,y,z\n1,2,3\n");
  WriteText(*files_, "b.csv", "z,x,y\n6,4,5\n");
  WriteText(*files_, "c.csv.gz", formats::Gzip("y,z,x\n8,9,7\n"));
  EXPECT_THAT(*ReadInts({.patterns = {"*.csv*"}}, {"x", "z"}),
              ElementsAre(ElementsAre(1, 4, 7), ElementsAre(3, 6, 9)));
}

TEST_F(FileRulesTest, RowsWithoutAHeaderHaveTheGivenNames) {
  WriteText(*files_, "a.data", "1, 2\n3, 4\n");
  WriteText(*files_, "b.csv", "old,names\n5,6\n");
  EXPECT_THAT(*ReadInts({.patterns = {"a.data"}, .format = {.columns = {"y", "x"}}}, {"x"}),
              ElementsAre(ElementsAre(2, 4)));
  const formats::DataFormat renamed = {.header = true, .columns = {"y", "x"}};
  EXPECT_THAT(*ReadInts({.patterns = {"b.csv"}, .format = renamed}, {"x"}),
              ElementsAre(ElementsAre(6)));
  const formats::DataFormat three = {.header = true, .columns = {"y", "x", "z"}};
  EXPECT_EQ(ReadInts({.patterns = {"b.csv"}, .format = three}, {"x"}).status().message(),
            "b.csv: its header has 2 columns, but 3 names were given");
}

TEST_F(FileRulesTest, RowsWithoutAHeaderMayLackTheLabel) {
  WriteText(*files_, "train", "0\t1\t2\n");
  WriteText(*files_, "test", "3\t4\n");
  SourceSpec spec = {.patterns = {"train"}, .format = {.columns = {"label", "x", "y"}}};
  spec.may_lack = {"label"};
  EXPECT_THAT(*ReadInts(spec, {"x", "y"}), ElementsAre(ElementsAre(1), ElementsAre(2)));
  spec.patterns = {"test"};
  EXPECT_THAT(*ReadInts(spec, {"x", "y"}), ElementsAre(ElementsAre(3), ElementsAre(4)));
  spec.may_lack = {};
  EXPECT_EQ(ReadInts(spec, {"x", "y"}).status().message(),
            "test:1: the row has 2 cells, the names of columns are 3");
}

TEST_F(FileRulesTest, TheIndexOfAFileWithoutAHeaderIncludesItsFirstRow) {
  WriteText(*files_, "a", "1,2\n3,4\n");
  const formats::DataFormat format = {.columns = {"x", "y"}};
  const FileRules rules = *FindFileRules(*files_, "a", format);
  ASSERT_TRUE(WriteRecordIndex(*files_, "a", *ScanRecords(*files_, "a", rules)).ok());
  EXPECT_THAT(*ReadInts({.patterns = {"a"}, .format = format}, {"x"}),
              ElementsAre(ElementsAre(1, 3)));
  // The index does not fit a file with a header.
  EXPECT_EQ((*OpenSource(*files_, {.patterns = {"a"}}))->records(), 1u);
}

}  // namespace
}  // namespace muster::data
