#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "muster/formats/csv.h"

namespace muster::formats {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Field MakeField(std::string name, ValueType type, bool list = false) {
  Field field;
  field.name = std::move(name);
  field.type = type;
  field.list = list;
  return field;
}

// Decodes one field named "x" from a file with that column and another.
class OneColumn {
 public:
  explicit OneColumn(Field field) : schema_{{std::move(field)}}, columns_(schema_) {
    auto decoder = NewCsvDecoder(schema_, {"other", "x"});
    EXPECT_TRUE(decoder.ok()) << decoder.status();
    decoder_ = *std::move(decoder);
  }
  // `cell` is written as in the file, and kept, since strings point into it.
  absl::Status Decode(std::string_view cell) {
    rows_.push_back(std::make_unique<std::string>(StrCat("o,", cell)));
    return decoder_->Decode(*rows_.back(), &columns_);
  }
  const Column& column() const { return columns_.column(0); }
  const Columns& columns() const { return columns_; }

 private:
  Schema schema_;
  Columns columns_;
  std::unique_ptr<RowDecoder> decoder_;
  std::vector<std::unique_ptr<std::string>> rows_;
};

TEST(CsvDecoderTest, Floats) {
  OneColumn x(MakeField("x", ValueType::kFloat));
  for (const char* cell : {"3", "3.0", "-1e-3", "+5", "  7.5\t", ".5", "2.", "1e-60", "\"8\"",
                           "16777217", "0.1", "3.4028235e38"}) {
    EXPECT_TRUE(x.Decode(cell).ok()) << cell;
  }
  EXPECT_THAT(x.column().floats,
              ElementsAre(3, 3, -1e-3f, 5, 7.5, .5, 2, 0, 8, 16777216.f, 0.1f, 3.4028235e38f));
}

TEST(CsvDecoderTest, BadFloatsAreReportedWithColumnAndValueAndLeaveNothing) {
  OneColumn x(MakeField("x", ValueType::kFloat));
  const auto message = [&](const char* cell) { return std::string(x.Decode(cell).message()); };
  EXPECT_EQ(message("abc"), "column 'x': 'abc' is not a float");
  EXPECT_EQ(message("1.5x"), "column 'x': '1.5x' is not a float");
  EXPECT_EQ(message("+-1"), "column 'x': '+-1' is not a float");
  EXPECT_EQ(message("1 2"), "column 'x': '1 2' is not a float");
  EXPECT_EQ(message("0x10"), "column 'x': '0x10' is not a float");
  EXPECT_EQ(message("1e400"), "column 'x': '1e400' is out of the range of a float");
  EXPECT_THAT(message("nan"), HasSubstr("column 'x': 'nan' is not a finite number"));
  EXPECT_THAT(message("-inf"), HasSubstr("'-inf' is not a finite number"));
  EXPECT_EQ(message(""), "column 'x': no value and no default");
  EXPECT_EQ(message("   "), "column 'x': no value and no default");
  EXPECT_EQ(message("a\x01\u00fc"), "column 'x': 'a\\x01\u00fc' is not a float");
  EXPECT_LT(message(std::string(5000, 'y').c_str()).size(), 200u);
  EXPECT_EQ(x.columns().rows(), 0);
  EXPECT_TRUE(x.column().floats.empty());
}

TEST(CsvDecoderTest, Ints) {
  OneColumn x(MakeField("x", ValueType::kInt));
  for (const char* cell : {"3", "3.0", "+5", " -7 ", "3.", "1e3", "9223372036854775807",
                           "-9223372036854775808", "9007199254740993.00"}) {
    EXPECT_TRUE(x.Decode(cell).ok()) << cell;
  }
  EXPECT_THAT(x.column().ints,
              ElementsAre(3, 3, 5, -7, 3, 1000, INT64_MAX, INT64_MIN, 9007199254740993));
  EXPECT_THAT(x.Decode("34.5").message(), HasSubstr("column 'x': '34.5' is not an int"));
  EXPECT_EQ(x.Decode("x12").message(), "column 'x': 'x12' is not an int");
  EXPECT_EQ(x.Decode("12x").message(), "column 'x': '12x' is not an int");
  EXPECT_EQ(x.Decode("--1").message(), "column 'x': '--1' is not an int");
  EXPECT_EQ(x.Decode("9223372036854775808").message(),
            "column 'x': '9223372036854775808' is out of the range of an int");
  EXPECT_EQ(x.Decode("1e30").message(), "column 'x': '1e30' is out of the range of an int");
  EXPECT_THAT(x.Decode("nan").message(), HasSubstr("'nan' is not a finite number; list it under"));
  EXPECT_EQ(x.columns().rows(), 9);
}

TEST(CsvDecoderTest, TruncatedInts) {
  Field field = MakeField("x", ValueType::kInt);
  field.truncate = true;
  OneColumn x(field);
  for (const char* cell : {"34.5", "-34.5", "0.42", ".9", "7", "2.5e1"}) {
    EXPECT_TRUE(x.Decode(cell).ok()) << cell;
  }
  EXPECT_THAT(x.column().ints, ElementsAre(34, -34, 0, 0, 7, 25));
  EXPECT_FALSE(x.Decode("1e300").ok());
}

TEST(CsvDecoderTest, DatesAreSeconds) {
  Field field = MakeField("x", ValueType::kInt);
  field.date = true;
  field.missing = {"never"};
  field.has_default = true;
  field.default_value = int64_t{7};
  OneColumn x(field);
  for (const char* cell : {"1970-01-02", " 1970-01-01T00:01Z ", "never", "", "86400"}) {
    EXPECT_TRUE(x.Decode(cell).ok()) << cell;
  }
  EXPECT_THAT(x.column().ints, ElementsAre(86400, 60, 7, 7, 86400));
  EXPECT_EQ(x.Decode("1970-02-30").message(), "column 'x': '1970-02-30' is not a date or an int");
}

TEST(CsvDecoderTest, StringsAreNotChanged) {
  Field field = MakeField("x", ValueType::kString);
  field.missing = {"?", "NA"};
  field.has_default = true;
  field.default_value = std::string("none");
  OneColumn x(field);
  for (const char* cell : {" a ", "\"say \"\"x\"\"\"", "\"b,c\"", "", "\"\"", "?", "NA", " ?"}) {
    EXPECT_TRUE(x.Decode(cell).ok()) << cell;
  }
  EXPECT_THAT(x.column().strings,
              ElementsAre(" a ", "say \"x\"", "b,c", "none", "none", "none", "none", " ?"));
}

TEST(CsvDecoderTest, UnquotedStringsAreNotCopied) {
  OneColumn x(MakeField("x", ValueType::kString));
  const Schema schema{{MakeField("x", ValueType::kString)}};
  auto decoder = NewCsvDecoder(schema, {"x", "y"});
  Columns columns(schema);
  const std::string row = "word,\"a\"\"b\"", quoted = "\"word\",1";
  ASSERT_TRUE((*decoder)->Decode(row, &columns).ok());
  ASSERT_TRUE((*decoder)->Decode(quoted, &columns).ok());
  EXPECT_EQ(columns.column(0).strings[0].data(), row.data());
  EXPECT_EQ(columns.column(0).strings[1].data(), quoted.data() + 1);
}

TEST(CsvDecoderTest, NumbersHaveDefaults) {
  Field field = MakeField("x", ValueType::kInt);
  field.missing = {"NA"};
  field.has_default = true;
  field.default_value = int64_t{-1};
  OneColumn x(field);
  for (const char* cell : {"", " NA ", "4"}) EXPECT_TRUE(x.Decode(cell).ok()) << cell;
  EXPECT_THAT(x.column().ints, ElementsAre(-1, -1, 4));
}

TEST(CsvDecoderTest, Lists) {
  OneColumn numbers(MakeField("x", ValueType::kInt, true));
  for (const char* cell : {"1|2|3", "", "4"}) EXPECT_TRUE(numbers.Decode(cell).ok()) << cell;
  EXPECT_EQ(numbers.Decode("1||2").message(), "column 'x': '' is not an int");
  EXPECT_TRUE(numbers.Decode("5| 6").ok());
  EXPECT_THAT(numbers.column().ints, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(numbers.column().offsets, ElementsAre(0, 3, 3, 4, 6));

  Field field = MakeField("x", ValueType::kString, true);
  field.separator = ';';
  field.missing = {"none"};
  OneColumn words(field);
  for (const char* cell : {"a;;b", "none", "\"c;\"\"d\"\"\""}) EXPECT_TRUE(words.Decode(cell).ok());
  EXPECT_THAT(words.column().strings, ElementsAre("a", "", "b", "c", "\"d\""));
  EXPECT_THAT(words.column().offsets, ElementsAre(0, 3, 3, 5));
}

TEST(CsvDecoderTest, ABadRowLeavesNothing) {
  const Schema schema{{MakeField("a", ValueType::kString), MakeField("l", ValueType::kInt, true),
                       MakeField("b", ValueType::kInt)}};
  auto decoder = NewCsvDecoder(schema, {"a", "b", "l"});
  Columns columns(schema);
  ASSERT_TRUE((*decoder)->Decode("x,1,2|3", &columns).ok());
  EXPECT_FALSE((*decoder)->Decode("y,bad,4|5", &columns).ok());
  EXPECT_EQ((*decoder)->Decode("y,2", &columns).message(), "the row has 2 cells, the header has 3");
  EXPECT_EQ((*decoder)->Decode("y,2,3,4", &columns).message(),
            "the row has 4 cells, the header has 3");
  ASSERT_TRUE((*decoder)->Decode("z,6,", &columns).ok());
  EXPECT_EQ(columns.rows(), 2);
  EXPECT_THAT(columns.column(0).strings, ElementsAre("x", "z"));
  EXPECT_THAT(columns.column(1).ints, ElementsAre(2, 3));
  EXPECT_THAT(columns.column(1).offsets, ElementsAre(0, 2, 2));
  EXPECT_THAT(columns.column(2).ints, ElementsAre(1, 6));
}

TEST(CsvDecoderTest, HeaderErrorsAreReported) {
  const Schema schema{{MakeField("income", ValueType::kInt)}};
  const auto absent = NewCsvDecoder(schema, {"age", "Incomes"});
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(absent.status().message(),
            "column 'income' is not in the header (did you mean 'Incomes'?)");
  EXPECT_EQ(NewCsvDecoder(schema, {"income", "age", "income"}).status().message(),
            "column 'income' occurs twice in the header");
}

TEST(CsvDecoderTest, ADelimiterThatDoesNotFitIsReported) {
  const Schema schema{{MakeField("age", ValueType::kInt), MakeField("job", ValueType::kString)}};
  EXPECT_EQ(NewCsvDecoder(schema, {"age,job,y"}, {.delimiter = '\t'}).status().message(),
            "column 'age' is not in the header; its cells are divided by ',', it seems, and not by "
            "tab, as --delimiter or 'format: {delimiter: ...}' of the model file says: give "
            "--delimiter ','");
  EXPECT_THAT(NewCsvDecoder(schema, {"age\tjob"}, {.delimiter = ';'}).status().message(),
              HasSubstr("give --delimiter tab"));
  EXPECT_THAT(NewCsvDecoder(schema, {"ages"}, {.delimiter = ';'}).status().message(),
              Not(HasSubstr("--delimiter")));
  const auto decoder = *NewCsvDecoder(schema, std::vector<std::string>{"age", "job"},
                                      {.delimiter = ';', .header = false});
  Columns columns(schema);
  EXPECT_THAT(decoder->Decode("31,clerk", &columns).message(),
              AllOf(HasSubstr("the row has 1 cells"), HasSubstr("give --delimiter ','")));
  EXPECT_THAT(decoder->Decode("31;a,b;c", &columns).message(), Not(HasSubstr("--delimiter")));
}

TEST(CsvDecoderTest, ARowHasTheLayoutOfItsFile) {
  const Schema schema = {{MakeField("x", ValueType::kInt), MakeField("y", ValueType::kInt)}};
  const std::vector<std::vector<std::string>> headers = {{"x", "y"}, {"y", "other", "x"}};
  const auto decoder = *NewCsvDecoder(schema, headers, {});
  Columns columns(schema);
  ASSERT_TRUE(decoder->Decode("1,2", &columns).ok());
  decoder->UseLayout(1);
  ASSERT_TRUE(decoder->Decode("3,0,4", &columns).ok());
  EXPECT_EQ(decoder->Decode("3,0", &columns).message(), "the row has 2 cells, the header has 3");
  decoder->UseLayout(0);
  ASSERT_TRUE(decoder->Decode("5,6", &columns).ok());
  EXPECT_THAT(columns.column(0).ints, ElementsAre(1, 4, 5));
  EXPECT_THAT(columns.column(1).ints, ElementsAre(2, 3, 6));
}

TEST(CsvDecoderTest, RowsThatAreNotUtf8AreReadAsChosen) {
  const Schema schema = {{MakeField("x", ValueType::kString)}};
  const auto decode = [&](EncodingErrors errors) -> std::string {
    const auto decoder =
        *NewCsvDecoder(schema, std::vector<std::string>{"x"}, {.encoding_errors = errors});
    Columns columns(schema);
    const absl::Status status = decoder->Decode("caf\xe9", &columns);
    return status.ok() ? std::string(columns.column(0).strings[0]) : std::string(status.message());
  };
  EXPECT_EQ(decode(EncodingErrors::kKeep), "caf\xe9");
  EXPECT_EQ(decode(EncodingErrors::kReplace), "caf\xef\xbf\xbd");
  EXPECT_EQ(decode(EncodingErrors::kLatin1), "caf\xc3\xa9");
  EXPECT_THAT(decode(EncodingErrors::kError), HasSubstr("the row is not UTF-8, from '\\xe9' on"));
}

TEST(CsvDecoderTest, AFieldWithoutASeparatorIsOneValue) {
  Field field = MakeField("x", ValueType::kString, true);
  field.separator = '\0';
  OneColumn x(field);
  EXPECT_TRUE(x.Decode(std::string_view("a|b\0c", 5)).ok());
  EXPECT_THAT(x.column().strings, ElementsAre(std::string_view("a|b\0c", 5)));
}

TEST(CsvDecoderTest, ARowThatLooksLikeAHeaderIsReportedAsSuch) {
  const Schema schema{{MakeField("c1", ValueType::kFloat), MakeField("c2", ValueType::kString)}};
  Columns columns(schema);
  const auto decoder =
      NewCsvDecoder(schema, std::vector<std::string>{"c1", "c2"}, {.header = false});
  ASSERT_TRUE(decoder.ok());
  EXPECT_EQ((*decoder)->Decode("age,job", &columns).message(),
            "column 'c1': 'age' is not a float; the row looks like a header: if it is one, give "
            "--header --columns c1,c2, since the model was made for data without one");
  EXPECT_THAT(std::string((*decoder)->Decode("c1,c2", &columns).message()),
              HasSubstr("if it is one, give --header, since"));
  EXPECT_EQ((*decoder)->Decode("x,7", &columns).message(), "column 'c1': 'x' is not a float");
}

TEST(CsvDecoderTest, AHeaderThatIsNotUtf8IsReportedAsSuch) {
  const Schema schema{{MakeField("caf\xc3\xa9", ValueType::kString)}};
  EXPECT_THAT(
      std::string(NewCsvDecoder(schema, {"x", "caf\xe9"}).status().message()),
      HasSubstr("the header is not UTF-8: if it is Latin-1, give --encoding-errors latin1"));
}

TEST(CsvDecoderTest, AHeaderThatLooksLikeDataIsReportedAsSuch) {
  const Schema schema = {{MakeField("age", ValueType::kInt)}};
  const std::vector<std::string> data = {"39", " State-gov"};
  EXPECT_THAT(NewCsvDecoder(schema, data).status().message(),
              HasSubstr("column 'age' is not in the header; that row looks like data: if the file "
                        "has no header, give --no-header"));
}

}  // namespace
}  // namespace muster::formats
