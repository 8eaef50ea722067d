#include "muster/formats/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "muster/base/random.h"
#include "muster/formats/csv_test_util.h"
#include "zlib.h"

namespace muster::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

struct Row {
  std::string text;
  uint64_t line;
  uint64_t begin, end;
};

absl::StatusOr<std::vector<Row>> ReadRows(std::string contents, CsvOptions options = {}) {
  MUSTER_ASSIGN_OR_RETURN(auto reader,
                          CsvRowReader::Open(StringFile(std::move(contents)), options));
  std::vector<Row> rows;
  std::string_view row;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool more, reader->Next(&row));
    if (!more) return rows;
    rows.push_back({std::string(row), reader->line(), reader->row_offset(), reader->offset()});
  }
}

std::vector<std::string> Texts(const std::vector<Row>& rows) {
  std::vector<std::string> texts;
  for (const Row& row : rows) texts.push_back(row.text);
  return texts;
}

std::vector<std::string> Split(std::string_view row, char delimiter = ',') {
  std::vector<std::string_view> cells;
  std::string scratch;
  EXPECT_TRUE(SplitCsvRow(row, {delimiter}, &cells, &scratch).ok()) << row;
  return {cells.begin(), cells.end()};
}

TEST(SplitCsvRowTest, Cells) {
  EXPECT_THAT(Split("a,b,c"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Split("a;b,c", ';'), ElementsAre("a", "b,c"));
  EXPECT_THAT(Split(""), ElementsAre(""));
  EXPECT_THAT(Split(",,"), ElementsAre("", "", ""));
  EXPECT_THAT(Split("\"a,b\",\"c\"\"d\"\"\",\"\""), ElementsAre("a,b", "c\"d\"", ""));
  EXPECT_THAT(Split("\"a\","), ElementsAre("a", ""));
  EXPECT_THAT(Split("\"\"\"\",x"), ElementsAre("\"", "x"));
  EXPECT_THAT(Split("5\" disk,a\"\"b"), ElementsAre("5\" disk", "a\"\"b"));
  EXPECT_THAT(Split("\"line\nbreak\",2"), ElementsAre("line\nbreak", "2"));
}

TEST(SplitCsvRowTest, LongRowsOfManyBlocks) {
  std::string row;
  std::vector<std::string> expected;
  for (int i = 0; i < 300; ++i) {
    expected.push_back(std::string(i % 70, 'x'));
    row += expected.back() + (i < 299 ? "," : "");
  }
  EXPECT_EQ(Split(row), expected);
}

TEST(SplitCsvRowTest, TextAfterAClosingQuoteIsRefused) {
  std::vector<std::string_view> cells;
  std::string scratch;
  const absl::Status status = SplitCsvRow("1,\"a\"b,2", {}, &cells, &scratch);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("cell 2 continues after its closing quote, with 'b,2'"));
}

TEST(SplitCsvRowTest, TrimsAndQuotesAsTheOptionsSay) {
  std::vector<std::string_view> cells;
  std::string scratch;
  CsvOptions options = {.trim = true};
  ASSERT_TRUE(SplitCsvRow(" a,  \"b, c\" ,d\t, ", options, &cells, &scratch).ok());
  EXPECT_THAT(cells, ElementsAre("a", "b, c", "d", ""));
  options = {.delimiter = '\t', .trim = true};
  ASSERT_TRUE(SplitCsvRow(" a\t\t b", options, &cells, &scratch).ok());
  EXPECT_THAT(cells, ElementsAre("a", "", "b"))
      << "a tab that is the delimiter must not be trimmed";
  options = {.quote = '\''};
  ASSERT_TRUE(SplitCsvRow("'it''s, so',\"x", options, &cells, &scratch).ok());
  EXPECT_THAT(cells, ElementsAre("it's, so", "\"x"));
  options = {.quote = '\0'};
  ASSERT_TRUE(SplitCsvRow("\"a,b\"", options, &cells, &scratch).ok());
  EXPECT_THAT(cells, ElementsAre("\"a", "b\""));
}

TEST(CsvRowReaderTest, AQuoteAfterASpaceMayHaveALineBreak) {
  auto rows = ReadRows("a,b\n1, \"x\ny\"\n2,z\n", {.trim = true});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(Texts(*rows), ElementsAre("1, \"x\ny\"", "2,z"));
  rows = ReadRows("a,b\n1,'x\ny'\n", {.quote = '\''});
  EXPECT_THAT(Texts(*rows), ElementsAre("1,'x\ny'"));
}

TEST(DescribeOtherColumnsTest, ListsMissingAndAdditionalColumns) {
  EXPECT_EQ(DescribeOtherColumns({"a", "b"}, {"b", "a"}), "");
  EXPECT_EQ(DescribeOtherColumns({"a", "b", "c"}, {"b", "d"}),
            "column 'a' is missing; column 'c' is missing; column 'd' is additional");
}

TEST(AppendCsvCellTest, WhatIsWrittenIsRead) {
  const std::vector<std::string> cells = {"plain", "",   "a,b", "say \"x\"", "two\nlines",
                                          "cr\r",  "\"", "ü",   " "};
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    AppendCsvCell(cells[i], ',', &line);
  }
  EXPECT_TRUE(line.starts_with("plain,,\"a,b\",\"say \"\"x\"\"\","));
  EXPECT_EQ(Split(line), cells);
}

TEST(CsvRowReaderTest, LineEndsBlankLinesAndMark) {
  auto rows = ReadRows(
      "\xef\xbb\xbf"
      "a,b\r\n1,2\r\n\r\n\n3,4\n5,6");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(Texts(*rows), ElementsAre("1,2", "3,4", "5,6"));
  EXPECT_EQ((*rows)[0].line, 2u);
  EXPECT_EQ((*rows)[0].begin, 8u);
  EXPECT_EQ((*rows)[0].end, 13u);
  EXPECT_EQ((*rows)[1].line, 5u);
  EXPECT_EQ((*rows)[2].line, 6u);
  EXPECT_EQ((*rows)[2].end, 23u);
}

TEST(CsvRowReaderTest, QuotedLineBreaksCountAsLines) {
  auto rows = ReadRows("a,b\n\"x\ny\r\nz\",1\nq\"r,2\n\"\"\"\n\",3\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(Texts(*rows), ElementsAre("\"x\ny\r\nz\",1", "q\"r,2", "\"\"\"\n\",3"));
  EXPECT_EQ((*rows)[1].line, 5u);
  EXPECT_EQ((*rows)[2].line, 6u);
}

TEST(CsvRowReaderTest, HeaderIsSplit) {
  auto reader = CsvRowReader::Open(StringFile("\"a,1\"|b\n"), {'|'});
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->header(), ElementsAre("a,1", "b"));
  std::string_view row;
  EXPECT_FALSE(*(*reader)->Next(&row));
  EXPECT_FALSE(*(*reader)->Next(&row));
}

TEST(CsvRowReaderTest, TheHeaderIsConvertedAsRowsAre) {
  const auto header = [](EncodingErrors errors) {
    const auto reader = CsvRowReader::Open(StringFile("caf\xe9,b\n"), {.encoding_errors = errors});
    return reader.ok() ? (*reader)->header().front() : std::string(reader.status().message());
  };
  EXPECT_EQ(header(EncodingErrors::kKeep), "caf\xe9");
  EXPECT_EQ(header(EncodingErrors::kLatin1), "caf\xc3\xa9");
  EXPECT_EQ(header(EncodingErrors::kReplace), "caf\xef\xbf\xbd");
  EXPECT_THAT(header(EncodingErrors::kError), HasSubstr("text.csv:1: the row is not UTF-8"));
}

TEST(CsvRowReaderTest, BadFilesAreRefused) {
  EXPECT_EQ(ReadRows("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(ReadRows("\n\r\n").status().message(), HasSubstr("text.csv: the file is empty"));
  EXPECT_THAT(ReadRows("\xff\xfe"
                       "a\0,\0")
                  .status()
                  .message(),
              HasSubstr("UTF-16"));
  EXPECT_THAT(ReadRows("a\n1\n", {'"'}).status().message(),
              HasSubstr("delimiter cannot be '\\\"'"));
}

TEST(CsvRowReaderTest, AnUnclosedQuoteIsReportedWithTheLineWhereItOpened) {
  const auto rows = ReadRows("a,b\n1,2\n\"x\ny\",\"z\n3,4\n");
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(rows.status().message(), "text.csv:4: the quote that opens at byte 14 is never closed");
}

TEST(CsvRowReaderTest, AnUnclosedQuoteInALargeFileStopsAtTheLimit) {
  std::string contents = "a,b\n1,\"x\n";
  while (contents.size() < kMaxCsvRowBytes * 5 / 2) contents += "some more text, of another row\n";
  auto reader = CsvRowReader::Open(StringFile(std::move(contents)));
  ASSERT_TRUE(reader.ok());
  std::string_view row;
  const absl::Status status = (*reader)->Next(&row).status();
  EXPECT_EQ(status.message(),
            "text.csv:2: the quote that opens at byte 6 is not closed within 16 MiB");
  EXPECT_EQ((*reader)->Next(&row).status(), status);
}

TEST(CsvRowReaderTest, ARowOverTheLimitIsRefused) {
  const auto rows = ReadRows("a\n1\n" + std::string(kMaxCsvRowBytes + 1, 'x') + "\n2\n");
  EXPECT_EQ(rows.status().message(), "text.csv:3: the row is longer than 16 MiB");
}

// Rows are longer and shorter than the reader's buffer; they are compared with a list of the rows
// that were written.
TEST(CsvRowReaderTest, RandomFilesAcrossBuffers) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream random(seed, RandomPurpose::kSampleData, 0);
    std::string contents = "a,b\n";
    std::vector<std::vector<std::string>> written;
    while (contents.size() < 1'500'000) {
      std::vector<std::string> cells;
      for (int c = 0; c < 2; ++c) {
        std::string cell(random.Below(20) == 0 ? random.Below(400'000) : random.Below(30), 'x');
        for (uint64_t k = random.Below(4); k > 0 && !cell.empty(); --k) {
          cell[random.Below(cell.size())] = "\",\n\r"[random.Below(4)];
        }
        cells.push_back("." + cell);
        AppendCsvCell(cells.back(), ',', &contents);
        contents += c == 0 ? "," : seed % 2 ? "\n" : "\r\n";
      }
      written.push_back(cells);
    }
    for (const std::string& file : {contents, Gzip(contents)}) {
      auto rows = ReadRows(file);
      ASSERT_TRUE(rows.ok()) << rows.status();
      ASSERT_EQ(rows->size(), written.size());
      uint64_t line = 2, offset = 4;
      for (size_t i = 0; i < written.size(); ++i) {
        const Row& row = (*rows)[i];
        ASSERT_EQ(Split(row.text), written[i]);
        ASSERT_EQ(row.line, line);
        ASSERT_EQ(row.begin, offset);
        line += std::count(row.text.begin(), row.text.end(), '\n') + 1;
        offset = row.end;
      }
      EXPECT_EQ(offset, contents.size());
    }
  }
}

TEST(CsvRowReaderTest, SeveralGzipMembersAreOneFile) {
  auto rows = ReadRows(Gzip("a,b\n1,") + Gzip("2\n3,4\n") + Gzip(""));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(Texts(*rows), ElementsAre("1,2", "3,4"));
}

TEST(CsvRowReaderTest, BrokenGzipIsRefused) {
  std::string contents = "a,b\n";
  for (int i = 0; i < 100'000; ++i) contents += StrCat(i, ",", i * 7919 % 10007, "\n");
  std::string file = Gzip(contents);
  auto cut = ReadRows(file.substr(0, file.size() / 2));
  EXPECT_EQ(cut.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(cut.status().message()), MatchesRegex("text.csv:[0-9]+: the GZIP .*"));
  file[file.size() / 2] ^= 1;
  EXPECT_THAT(std::string(ReadRows(file).status().message()),
              MatchesRegex("text.csv:[0-9]+: the GZIP .* at byte [0-9]+ of the file"));
  EXPECT_FALSE(ReadRows(Gzip("a\n1\n") + "garbage").ok());
}

}  // namespace
}  // namespace muster::formats
