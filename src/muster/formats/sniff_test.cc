#include "muster/formats/sniff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <string>

#include "muster/formats/csv_test_util.h"
#include "muster/formats/tfrecord.h"
#include "muster/io/memory_file_system.h"

namespace muster::formats {
namespace {

using ::testing::HasSubstr;
using Content = Sniffed::Content;

std::string Zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string TfRecord(Compression compression) {
  const auto files = io::NewMemoryFileSystem();
  auto writer = *TfRecordWriter::Create(*files->OpenForWrite("f"), compression);
  EXPECT_TRUE(writer->Write("a record").ok() && writer->Close().ok());
  return *io::ReadFile(*files, "f", 1000);
}

absl::StatusOr<Sniffed> Sniff(std::string_view bytes, std::string_view path = "part-00000",
                              const DataFormat& format = {}) {
  return SniffBytes(bytes, /*whole=*/true, path, format);
}

char Guess(std::string_view text, const DataFormat& format = {}) {
  return GuessDelimiter(text, /*whole=*/true, format).byte;
}

TEST(SniffTest, LinesThatEndWithCrAloneAreRefused) {
  EXPECT_THAT(std::string(Sniff("a,b\r1,2\r", "old.csv").status().message()),
              HasSubstr("convert it: tr '\\r' '\\n' < old.csv > new.csv"));
  EXPECT_FALSE(Sniff("a,b\r1,2\r3,4\n", "old.csv").ok());
  EXPECT_TRUE(Sniff("a,\"x\ry\"\n", "data.csv").ok());
  EXPECT_EQ(Sniff("a,b\r\n1,2\r\n", "data.csv")->cells, 2u);
  EXPECT_EQ(Sniff("a,b\r", "data.csv")->cells, 2u);
  EXPECT_EQ(Sniff("a,b", "data.csv")->cells, 2u);
}

TEST(SniffTest, ARareNulIsText) {
  const std::string text = std::string("a\0b,1\n", 6) + std::string(500, 'x') + ",2\n";
  EXPECT_EQ(Sniff(text)->content, Content::kText);
}

TEST(SniffTest, DelimitersAreThoseThatGiveEqualRows) {
  EXPECT_EQ(Guess("a,b,c\n1,2,3\n"), ',');
  EXPECT_EQ(Guess("a;b;c\n1,5;2;x\n2,5;3;y, z\n"), ';') << "decimal commas do not count";
  EXPECT_EQ(Guess("a\tb\n1, 2\t3;4\n"), '\t');
  EXPECT_EQ(Guess("a|b|c\n1|2|3\n"), '|');
  EXPECT_EQ(Guess("a,b\nx,1|2|3\ny,4|5|6\n"), ',') << "lists in cells do not count";
  EXPECT_EQ(Guess("1,5;2,3;4\n2,5;3,3;5\n"), ';') << "both give three cells, and ';' is preferred";
  EXPECT_EQ(Guess("\"a;b\",\"c;d\"\n\"1;2\",\"3;4\"\n"), ',')
      << "delimiters inside quotes do not count";
  EXPECT_EQ(Guess("a,b,c\n1,2,3\n1,2\n4,5,6\n"), ',') << "one bad row does not matter";
  EXPECT_EQ(Guess("text\nof one column; here\n"), ',') << "without a delimiter it is ','";
  EXPECT_EQ(Guess("a\x01"
                  "b\n1\x01"
                  "2\n"),
            '\x01')
      << "Hive's";
  EXPECT_EQ(Guess("1;2,3\n4;5,6\n", {.columns = {"x", "y"}}), ';') << "the number of names decides";
  EXPECT_EQ(Guess("a,b\n1,2\n", {.delimiter = ';'}), ';') << "given";
}

TEST(SniffTest, OnlyWholeRowsOfALargeFileCount) {
  const Delimiter cut = GuessDelimiter("a,b\n1,2\n3", /*whole=*/false);
  EXPECT_EQ(cut.byte, ',');
  EXPECT_EQ(cut.cells, 2u);
}

TEST(SniffTest, RecognisesTheFormatsThatAreRead) {
  EXPECT_EQ(Sniff("")->content, Content::kEmpty);
  EXPECT_EQ(Sniff("a,b\n1,2\n")->content, Content::kText);
  EXPECT_EQ(Sniff("a,b\n1,2\n")->cells, 2u);
  EXPECT_EQ(Sniff("{\"a\": 1}\n{\"a\": 2}\n")->content, Content::kJsonLines);
  EXPECT_EQ(Sniff("{\"a\": 1}\n", "x.csv")->content, Content::kText) << "the file's name decides";
  EXPECT_EQ(Sniff(TfRecord(Compression::kNone))->content, Content::kTfRecord);
  EXPECT_EQ(Sniff(TfRecord(Compression::kNone), "x.csv")->content, Content::kTfRecord);
  EXPECT_EQ(Sniff(std::string("\x03\0\x80\x7f\0\0", 6))->content, Content::kUnknown);
  EXPECT_EQ(Sniff("ORCHID,price\n1,2\n")->content, Content::kText)
      << "a text must not be taken for ORC";
  EXPECT_EQ(Sniff("PAR1,PK\n1,2\n")->content, Content::kText);
}

TEST(SniffTest, FindsCompressionByContent) {
  const std::string text = "a;b\n1;2\n";
  const auto sniff = [](const std::string& bytes) { return *SniffFile(StringFile(bytes)); };
  EXPECT_EQ(sniff(text).compression, Compression::kNone);
  EXPECT_EQ(sniff(Gzip(text)).compression, Compression::kGzip);
  EXPECT_EQ(sniff(Zstd(text)).compression, Compression::kZstd);
  for (const std::string& bytes : {text, Gzip(text), Zstd(text)}) {
    EXPECT_EQ(sniff(bytes).content, Content::kText);
    EXPECT_EQ(sniff(bytes).delimiter, ';');
  }
  for (const auto compression : {Compression::kNone, Compression::kGzip, Compression::kZlib}) {
    EXPECT_EQ(sniff(TfRecord(compression)).content, Content::kTfRecord);
    EXPECT_EQ(sniff(TfRecord(compression)).compression, compression);
  }
  EXPECT_EQ(sniff(Zstd(TfRecord(Compression::kNone))).content, Content::kTfRecord);
  // The first two bytes could also be a header of ZLIB.
  EXPECT_EQ(sniff("x^2,b\n1,2\n").compression, Compression::kNone);
  EXPECT_EQ(sniff("x^2,b\n1,2\n").content, Content::kText);
}

TEST(SniffTest, ReportsFormatsThatAreNotReadWithACommand) {
  const auto refusal = [](std::string_view bytes, std::string_view path = "d/data.x") {
    const auto sniffed = Sniff(bytes, path);
    EXPECT_EQ(sniffed.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(sniffed.status().message());
  };
  const auto binary = [](std::string magic) { return magic + std::string("\0\x01\x02\x03", 4); };
  EXPECT_EQ(
      refusal(binary("PAR1")),
      "d/data.x: this is Apache Parquet, which muster init, train, evaluate, predict and "
      "records stats read by a name that ends in .parquet; convert it for other verbs: muster "
      "records from-parquet d/data.x --spec model.yaml --out data");
  EXPECT_EQ(refusal(binary("ORC")),
            "d/data.x: this is Apache ORC, which muster does not read; convert it to CSV, JSON "
            "lines or TFRecord, for example: python3 -c \"import pandas; "
            "pandas.read_orc('d/data.x').to_csv('data.csv', index=False)\"");
  EXPECT_THAT(refusal(binary("Obj\x01")), HasSubstr("Apache Avro"));
  EXPECT_THAT(refusal(binary("ARROW1")), HasSubstr("Arrow (Feather)"));
  EXPECT_THAT(refusal(binary("FEA1")), HasSubstr("Feather"));
  EXPECT_THAT(refusal(binary("\xff\xff\xff\xff")), HasSubstr("Arrow stream"));
  EXPECT_THAT(refusal(binary("PK\x03\x04")), HasSubstr("read_excel"));
  EXPECT_THAT(refusal(binary("\x89HDF\r\n\x1a\n")), HasSubstr("HDF5"));
  EXPECT_THAT(refusal(binary("BZh9")), HasSubstr("bunzip2"));
  EXPECT_THAT(refusal(binary("\x89PNG\r\n\x1a\n")), HasSubstr("this is a picture"));
  EXPECT_THAT(refusal(binary("\xff\xd8\xff\xe0")), HasSubstr("this is a picture"));
  EXPECT_THAT(refusal(binary("\x80\x04\x95")), HasSubstr("read_pickle('d/data.x')"));
  EXPECT_THAT(refusal(std::string("\xff\xfe"
                                  "a\0,\0",
                                  6)),
              HasSubstr("UTF-16"));
  EXPECT_THAT(refusal("[{\"a\": 1},\n {\"a\": 2}]", "x.json"),
              HasSubstr("an array in JSON, which muster does not read; it reads JSON lines, with "
                        "one object on each line: jq -c '.[]' x.json > x.jsonl"));
  EXPECT_THAT(refusal("{\n  \"a\": 1\n}\n"), HasSubstr("JSON with objects over several lines"));
}

}  // namespace
}  // namespace muster::formats
