#include "muster/formats/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "muster/formats/bundle_files.h"
#include "muster/formats/bundle_proto.h"
#include "muster/formats/bundle_test_util.h"
#include "muster/formats/table.h"
#include "muster/io/local_file_system.h"
#include "muster/io/memory_file_system.h"

namespace muster::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kTensorFlowPrefix = MUSTER_TESTDATA "/tensorflow_bundle";

template <typename T>
std::string Bytes(std::vector<T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// The tensors that make_test_bundle.py saves, in its order.
struct Saved {
  std::string name;
  DataType type;
  std::vector<int64_t> shape;
  std::string bytes;
  std::vector<std::string> strings;
};
std::vector<Saved> TensorFlowsTensors() {
  std::string long_string;
  for (int i = 0; i < 60; ++i) long_string += "long ";
  std::vector<float> grid;
  for (int i = 0; i < 12; ++i) grid.push_back(static_cast<float>(i) / 8);
  std::vector<Saved> saved = {
      {"zeta/float", DataType::kFloat, {3, 4}, Bytes(grid), {}},
      {"scalar/int64", DataType::kInt64, {}, Bytes<int64_t>({-(int64_t{1} << 40)}), {}},
      {"scalar/float", DataType::kFloat, {}, Bytes<float>({0.25f}), {}},
      {"scalar/string", DataType::kString, {}, "", {"a scalar"}},
      {"strings",
       DataType::kString,
       {2, 2},
       "",
       {"", "one", std::string("\x00\xff binary", 9), long_string}},
      {"empty/float", DataType::kFloat, {0, 7}, "", {}},
      {"empty/strings", DataType::kString, {0}, "", {}},
      {"int32", DataType::kInt32, {3}, Bytes<int32_t>({1, -2, 3}), {}},
      {"bool", DataType::kBool, {3}, std::string("\1\0\1", 3), {}},
      {"double", DataType{2}, {2}, Bytes<double>({1.5, -2.5}), {}},
      {"scope/" + std::string(500, 'x'), DataType::kFloat, {1}, Bytes<float>({42}), {}},
  };
  for (int i = 0; i < 100; ++i) {
    const float value = static_cast<float>(i);
    saved.push_back({StrCat("many/variable_", i / 100, i / 10 % 10, i % 10),
                     DataType::kFloat,
                     {2},
                     Bytes<float>({value, value + 0.5f}),
                     {}});
  }
  return saved;
}

absl::Status WriteAll(io::FileSystem& files, const std::string& prefix,
                      const std::vector<Saved>& all) {
  MUSTER_ASSIGN_OR_RETURN(auto writer, BundleWriter::Create(files, prefix));
  for (const Saved& saved : all) {
    MUSTER_RETURN_IF_ERROR(saved.type == DataType::kString
                               ? writer->AddStrings(saved.name, saved.shape, saved.strings)
                               : writer->Add(saved.name, saved.type, saved.shape, saved.bytes));
  }
  return writer->Finish();
}

void ExpectHolds(const BundleReader& reader, const std::vector<Saved>& all) {
  EXPECT_EQ(reader.tensors().size(), all.size());
  for (const Saved& saved : all) {
    const auto found = reader.tensors().find(saved.name);
    ASSERT_NE(found, reader.tensors().end()) << saved.name;
    EXPECT_EQ(found->second.type, saved.type) << saved.name;
    EXPECT_EQ(found->second.shape, saved.shape) << saved.name;
    if (saved.type == DataType::kString) {
      const auto strings = reader.ReadStrings(saved.name);
      ASSERT_TRUE(strings.ok()) << strings.status();
      EXPECT_EQ(*strings, saved.strings) << saved.name;
    } else {
      const auto bytes = ReadTensorBytes(reader, saved.name);
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      EXPECT_EQ(*bytes, saved.bytes) << saved.name;
    }
  }
}

TEST(BundleTest, ReadsWhatTensorFlowWrote) {
  const auto files = io::NewLocalFileSystem();
  const auto reader = BundleReader::Open(*files, kTensorFlowPrefix);
  ASSERT_TRUE(reader.ok()) << reader.status();
  ExpectHolds(**reader, TensorFlowsTensors());
}

TEST(BundleTest, WritesTheBytesThatTensorFlowWrites) {
  const auto local = io::NewLocalFileSystem();
  const auto memory = io::NewMemoryFileSystem();
  ASSERT_TRUE(WriteAll(*memory, "b", TensorFlowsTensors()).ok());
  for (const char* suffix : {".index", ".data-00000-of-00001"}) {
    const auto ours = io::ReadFile(*memory, StrCat("b", suffix));
    const auto theirs = io::ReadFile(*local, kTensorFlowPrefix + suffix);
    ASSERT_TRUE(ours.ok() && theirs.ok());
    EXPECT_TRUE(*ours == *theirs) << suffix;
  }
  const auto names = memory->List(".");
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_THAT(*names, ElementsAre("b.data-00000-of-00001", "b.index"));
}

TEST(BundleTest, ReplacesABundleWithANewDataFile) {
  const auto files = io::NewMemoryFileSystem();
  const std::vector<Saved> first = {{"a", DataType::kInt32, {1}, Bytes<int32_t>({1}), {}}};
  const std::vector<Saved> second = {{"a", DataType::kInt32, {1}, Bytes<int32_t>({2}), {}}};
  const std::vector<std::string> one = {"b.data-00000-of-00001", "b.index"};
  const std::vector<std::string> two = {"b.data-00000-of-00002", "b.data-00001-of-00002",
                                        "b.index"};
  int round = 0;
  for (const auto& [tensors, names] :
       {std::pair(first, one), std::pair(second, two), std::pair(first, one)}) {
    ASSERT_TRUE(WriteAll(*files, "b", tensors).ok());
    EXPECT_EQ(*files->List("."), names) << round;
    const auto reader = BundleReader::Open(*files, "b");
    ASSERT_TRUE(reader.ok()) << reader.status();
    ExpectHolds(**reader, tensors);
    ++round;
  }
}

TEST(BundleTest, AnUnfinishedWriterLeavesNothing) {
  const auto files = io::NewMemoryFileSystem();
  {
    auto writer = BundleWriter::Create(*files, "b");
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Add("a", DataType::kBool, {}, "\1").ok());
    EXPECT_EQ(files->List(".")->size(), 1u);
  }
  EXPECT_TRUE(files->List(".")->empty());
}

TEST(BundleTest, RefusesTensorsThatCannotBeStored) {
  const auto files = io::NewMemoryFileSystem();
  auto writer = *BundleWriter::Create(*files, "b");
  const int64_t three[] = {3};
  const std::string values[] = {"x", "y"};
  EXPECT_TRUE(absl::IsInvalidArgument(writer->Add("a", DataType::kFloat, three, "12345678")));
  EXPECT_TRUE(absl::IsInvalidArgument(writer->AddStrings("a", three, values)));
  EXPECT_TRUE(absl::IsInvalidArgument(writer->Add("", DataType::kBool, {}, "1")));
  EXPECT_TRUE(absl::IsInvalidArgument(writer->Add({"\0x", 2}, DataType::kBool, {}, "1")));
  EXPECT_TRUE(absl::IsInvalidArgument(writer->Add("s", DataType::kString, {}, "1")));
  EXPECT_TRUE(writer->Add("a", DataType::kBool, {}, "1").ok());
  const absl::Status twice = writer->Add("a", DataType::kBool, {}, "1");
  EXPECT_THAT(twice.ToString(), HasSubstr("tensor 'a': added twice"));
}

TEST(BundleTest, ReadsSeveralDataFiles) {
  const auto files = io::NewMemoryFileSystem();
  BundleEntry a, b;
  a.type = b.type = DataType::kInt32;
  a.size = b.size = 4;
  b.shard = 1;
  b.offset = 3;
  const std::string a_bytes = Bytes<int32_t>({7}), b_bytes = Bytes<int32_t>({8});
  // These are the masked CRC-32C of each data file, as a writer of one shard stores it.
  ASSERT_TRUE(
      WriteAll(*files, "one",
               {{"a", DataType::kInt32, {}, a_bytes, {}}, {"b", DataType::kInt32, {}, b_bytes, {}}})
          .ok());
  ASSERT_TRUE(ReadTable(*io::ReadFile(*files, "one.index"), "one.index",
                        [&](std::string_view key, std::string_view value) {
                          if (key == "a") a.masked_crc = ParseBundleEntry(value)->masked_crc;
                          if (key == "b") b.masked_crc = ParseBundleEntry(value)->masked_crc;
                          return absl::OkStatus();
                        })
                  .ok());
  WriteIndex(*files, {.shards = 2},
             {{"a", SerializeBundleEntry(a)}, {"b", SerializeBundleEntry(b)}});
  EXPECT_TRUE(absl::IsNotFound(BundleReader::Open(*files, "b").status()));
  ASSERT_TRUE(io::WriteFileAtomically(*files, BundleDataPath("b", 0, 2), a_bytes).ok());
  ASSERT_TRUE(io::WriteFileAtomically(*files, BundleDataPath("b", 1, 2), "???" + b_bytes).ok());
  const auto reader = BundleReader::Open(*files, "b");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(*ReadTensorBytes(**reader, "a"), a_bytes);
  EXPECT_EQ(*ReadTensorBytes(**reader, "b"), b_bytes);
}

TEST(BundleTest, PiecesMakeTheBytesOfOneAdd) {
  const auto files = io::NewMemoryFileSystem();
  std::string bytes((size_t{600} << 10) + 4, '\0');  // three pieces, the last one short
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 999);
  const std::vector<int64_t> shape = {static_cast<int64_t>(bytes.size()) / 4};
  auto whole = *BundleWriter::Create(*files, "whole");
  ASSERT_TRUE(whole->Add("a", DataType::kFloat, shape, bytes).ok());
  ASSERT_TRUE(whole->Finish().ok());
  auto pieces = *BundleWriter::Create(*files, "pieces");
  size_t done = 0;
  const auto read = [&](std::span<char> piece) {
    std::memcpy(piece.data(), bytes.data() + done, piece.size());
    done += piece.size();
    return absl::OkStatus();
  };
  ASSERT_TRUE(pieces->AddPieces("a", DataType::kFloat, shape, read).ok());
  ASSERT_TRUE(pieces->Finish().ok());
  EXPECT_EQ(done, bytes.size());
  for (const char* suffix : {".index", ".data-00000-of-00001"}) {
    EXPECT_EQ(*io::ReadFile(*files, StrCat("pieces", suffix)),
              *io::ReadFile(*files, StrCat("whole", suffix)));
  }
  const auto reader = *BundleReader::Open(*files, "pieces");
  EXPECT_EQ(*ReadTensorBytes(*reader, "a"), bytes);
  EXPECT_TRUE(reader->Verify("a").ok());
}

TEST(BundleTest, AFailingSourceOfPiecesFailsTheAdd) {
  const auto files = io::NewMemoryFileSystem();
  auto writer = *BundleWriter::Create(*files, "b");
  const auto read = [](std::span<char>) { return absl::AbortedError("no more"); };
  EXPECT_TRUE(absl::IsAborted(writer->AddPieces("a", DataType::kFloat, {{2}}, read)));
  EXPECT_TRUE(absl::IsInvalidArgument(writer->AddPieces("s", DataType::kString, {{2}}, read)));
}

TEST(BundleTest, AMissingTensorIsReportedWithTheNearestName) {
  const auto files = io::NewLocalFileSystem();
  const auto reader = *BundleReader::Open(*files, kTensorFlowPrefix);
  const absl::Status status = ReadTensorBytes(*reader, "zeta/flaot").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(status.ToString(), HasSubstr("did you mean 'zeta/float'?"));
  std::string small(3, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(reader->Read("zeta/float", small)));
  EXPECT_TRUE(absl::IsInvalidArgument(reader->ReadStrings("zeta/float").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadTensorBytes(*reader, "strings").status()));
}

TEST(BundleTest, FlippedBitsInTheDataAreFound) {
  const auto files = io::NewMemoryFileSystem();
  const std::vector<Saved> all = {
      {"f", DataType::kFloat, {2}, Bytes<float>({1, 2}), {}},
      {"s", DataType::kString, {2}, "", {"ab", "c"}},
  };
  ASSERT_TRUE(WriteAll(*files, "b", all).ok());
  const std::string data = *io::ReadFile(*files, "b.data-00000-of-00001");
  for (size_t i = 0; i < data.size(); ++i) {
    std::string broken = data;
    broken[i] ^= 1;
    ASSERT_TRUE(io::WriteFileAtomically(*files, "b.data-00000-of-00001", broken).ok());
    const auto reader = BundleReader::Open(*files, "b");
    ASSERT_TRUE(reader.ok()) << reader.status();
    const absl::Status status =
        i < 8 ? ReadTensorBytes(**reader, "f").status() : (*reader)->ReadStrings("s").status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << i;
    EXPECT_EQ((*reader)->Verify(i < 8 ? "f" : "s"), status) << i;
    EXPECT_TRUE((*reader)->Verify(i < 8 ? "s" : "f").ok()) << i;
    EXPECT_THAT(status.ToString(),
                HasSubstr(StrCat("b.data-00000-of-00001: tensor '", i < 8 ? "f" : "s", "' at byte ",
                                 i < 8 ? 0 : 8)));
  }
  ASSERT_TRUE(io::WriteFileAtomically(*files, "b.data-00000-of-00001", data.substr(0, 10)).ok());
  const absl::Status cut = BundleReader::Open(*files, "b").status();
  EXPECT_TRUE(absl::IsDataLoss(cut)) << cut;
  EXPECT_THAT(cut.ToString(), HasSubstr("tensor 's' of 9 bytes at byte 8 reaches beyond"));
}

TEST(BundleTest, ImpossibleEntriesAreRefused) {
  const auto files = io::NewMemoryFileSystem();
  ASSERT_TRUE(io::WriteFileAtomically(*files, "b.data-00000-of-00001", "12345678").ok());
  const auto open = [&](const BundleHeader& header, const std::string& entry) {
    WriteIndex(*files, header, {{"x", entry}});
    return BundleReader::Open(*files, "b").status();
  };
  BundleEntry good;
  good.shape = {2};
  good.size = 8;
  EXPECT_TRUE(open({}, SerializeBundleEntry(good)).ok());
  const int64_t huge = int64_t{1} << 62;
  const auto broken = [&](auto&& change) {
    BundleEntry entry = good;
    change(entry);
    return open({}, SerializeBundleEntry(entry));
  };
  EXPECT_TRUE(absl::IsDataLoss(broken([&](BundleEntry& e) { e.size = huge; })));
  EXPECT_TRUE(absl::IsDataLoss(broken([&](BundleEntry& e) { e.size = -8; })));
  EXPECT_TRUE(absl::IsDataLoss(broken([&](BundleEntry& e) { e.offset = huge; })));
  EXPECT_TRUE(absl::IsDataLoss(broken([&](BundleEntry& e) { e.offset = 1; })));
  EXPECT_TRUE(absl::IsDataLoss(broken([&](BundleEntry& e) { e.offset = -1; })));
  EXPECT_TRUE(absl::IsDataLoss(broken([&](BundleEntry& e) { e.shard = 1; })));
  EXPECT_TRUE(absl::IsDataLoss(broken([&](BundleEntry& e) { e.shard = -1; })));
  EXPECT_TRUE(absl::IsDataLoss(broken([&](BundleEntry& e) { e.shape = {3}; })));
  EXPECT_TRUE(absl::IsDataLoss(broken([&](BundleEntry& e) { e.shape = {-1}; })));
  EXPECT_TRUE(absl::IsDataLoss(broken([&](BundleEntry& e) { e.shape = {huge, huge, 4}; })));
  EXPECT_TRUE(absl::IsDataLoss(open({}, "\xff\xff\xff")));
  EXPECT_TRUE(absl::IsDataLoss(open({.shards = -1}, SerializeBundleEntry(good))));
  EXPECT_TRUE(absl::IsNotFound(open({.shards = 1 << 30}, SerializeBundleEntry(good))));
  EXPECT_TRUE(absl::IsUnimplemented(open({.big_endian = true}, SerializeBundleEntry(good))));
  EXPECT_TRUE(absl::IsUnimplemented(open({.min_consumer = 2}, SerializeBundleEntry(good))));

  BundleEntry strings = good;
  strings.type = DataType::kString;
  strings.shape = {huge};
  ASSERT_TRUE(open({}, SerializeBundleEntry(strings)).ok());
  EXPECT_TRUE(absl::IsDataLoss((*BundleReader::Open(*files, "b"))->ReadStrings("x").status()));
}

TEST(BundleTest, ATensorPartitionedByColumnsIsListedAndRefused) {
  const auto files = io::NewMemoryFileSystem();
  ASSERT_TRUE(io::WriteFileAtomically(*files, "b.data-00000-of-00001", "").ok());
  BundleEntry entry;
  entry.shape = {2, 4};
  entry.slices = {{{}, {.start = 0, .length = 2}}, {{}, {.start = 2, .length = 2}}};
  WriteIndex(*files, {}, {{"p", SerializeBundleEntry(entry)}});
  const auto reader = BundleReader::Open(*files, "b");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->tensors().size(), 1u);
  const absl::Status status = ReadTensorBytes(**reader, "p").status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(status.ToString(), HasSubstr("'p' is partitioned into 2 slices"));
}

TEST(BundleTest, AnIndexWithoutAHeaderIsRefused) {
  const auto files = io::NewMemoryFileSystem();
  TableBuilder empty, headless;
  ASSERT_TRUE(io::WriteFileAtomically(*files, "b.index", empty.Finish()).ok());
  EXPECT_TRUE(absl::IsDataLoss(BundleReader::Open(*files, "b").status()));
  headless.Add("a", SerializeBundleEntry({}));
  ASSERT_TRUE(io::WriteFileAtomically(*files, "b.index", headless.Finish()).ok());
  EXPECT_TRUE(absl::IsDataLoss(BundleReader::Open(*files, "b").status()));
}

TEST(DataTypeTest, NamesAndWidths) {
  EXPECT_EQ(DataTypeName(DataType::kFloat), "float32");
  EXPECT_EQ(DataTypeBytes(DataType::kFloat), 4u);
  EXPECT_EQ(DataTypeBytes(DataType::kString), 0u);
  EXPECT_EQ(DataTypeName(DataType{20}), "type 20");
  EXPECT_EQ(ElementCount(std::vector<int64_t>{}), 1);
  EXPECT_EQ(ElementCount(std::vector<int64_t>{3, 0, 5}), 0);
  EXPECT_EQ(ElementCount(std::vector<int64_t>{int64_t{1} << 40, int64_t{1} << 40}), std::nullopt);
}

}  // namespace
}  // namespace muster::formats
