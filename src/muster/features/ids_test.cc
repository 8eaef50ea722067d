// Compares ids with all of testdata/ids.tsv, which TensorFlow wrote (make_test_vectors.py describes
// the format).
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "muster/features/transform.h"

namespace muster::features {
namespace {

using formats::Columns;
using formats::ValueType;

std::string Unescape(std::string_view text) {
  if (text == "%") return "";
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    bytes +=
        static_cast<char>(std::strtol(std::string(text.substr(i + 1, 2)).c_str(), nullptr, 16));
    i += 2;
  }
  return bytes;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  return absl::StrSplit(text, separator);
}

int64_t ToInt(const std::string& text) {
  int64_t value = 0;
  EXPECT_TRUE(absl::SimpleAtoi(text, &value)) << text;
  return value;
}

struct Vectors {
  FeatureSpec spec;
  std::vector<std::vector<std::string>> rows;           // escaped values by field
  std::map<std::string, std::vector<std::string>> ids;  // by column, one element per row
};

formats::Field ParseField(const std::vector<std::string>& words) {
  formats::Field field;
  field.name = words[1];
  field.type = words[2] == "int"     ? ValueType::kInt
               : words[2] == "float" ? ValueType::kFloat
                                     : ValueType::kString;
  field.list = words[3] == "list";
  return field;
}

ColumnSpec ParseColumn(const std::vector<std::string>& words) {
  static const std::map<std::string, ColumnKind> kKinds = {
      {"hash", ColumnKind::kHash},         {"vocabulary", ColumnKind::kVocabulary},
      {"identity", ColumnKind::kIdentity}, {"bucketized", ColumnKind::kBucketized},
      {"cross", ColumnKind::kCross},
  };
  ColumnSpec column;
  column.name = words[1];
  column.kind = kKinds.at(words[2]);
  if (words[3] != "-") column.input = words[3];
  for (size_t i = 4; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const std::string key = words[i].substr(0, equals);
    const std::vector<std::string> values = Split(words[i].substr(equals + 1), '|');
    if (key == "buckets") column.buckets = ToInt(values[0]);
    if (key == "oov_buckets") column.oov_buckets = ToInt(values[0]);
    if (key == "default") column.default_id = ToInt(values[0]);
    if (key == "shape") column.shape = static_cast<int>(ToInt(values[0]));
    if (key == "hash_key") column.hash_key = static_cast<uint64_t>(ToInt(values[0]));
    for (const std::string& value : values) {
      if (key == "words") column.words.push_back(Unescape(value));
      if (key == "keys") column.keys.push_back(value);
      if (key == "boundaries") column.boundaries.push_back(std::strtof(value.c_str(), nullptr));
    }
  }
  return column;
}

Vectors ReadVectors() {
  const std::string path = StrCat(MUSTER_TESTDATA, "/ids.tsv");
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  Vectors vectors;
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> words = Split(line, '\t');
    if (words[0] == "field") vectors.spec.schema.fields.push_back(ParseField(words));
    if (words[0] == "column") vectors.spec.columns.push_back(ParseColumn(words));
    const std::vector<std::string> rest(words.begin() + 1, words.end());
    if (words[0] == "row") vectors.rows.push_back(rest);
    if (words[0] == "ids") {
      vectors.ids[rest[0]] = std::vector<std::string>(rest.begin() + 1, rest.end());
    }
  }
  return vectors;
}

void AppendRow(const formats::Schema& schema, const std::vector<std::string>& row, Columns* out) {
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const formats::Field& field = schema.fields[i];
    formats::Column& column = out->mutable_column(static_cast<int>(i));
    if (field.list && row[i] == "-") continue;
    for (const std::string& text : field.list ? Split(row[i], '|') : std::vector{row[i]}) {
      if (field.type == ValueType::kInt) column.ints.push_back(ToInt(text));
      if (field.type == ValueType::kFloat) {
        column.floats.push_back(std::strtof(text.c_str(), nullptr));
      }
      if (field.type == ValueType::kString) column.strings.push_back(out->Store(Unescape(text)));
    }
  }
  out->AddRow();
}

std::string RowIds(const IdList& list, int row) {
  std::string text;
  for (size_t i = list.begin(row); i < list.end(row); ++i) {
    if (list.ids[i] == -1) continue;
    text += StrCat(text.empty() ? "" : ",", list.ids[i]);
  }
  return text.empty() ? "-" : text;
}

TEST(Ids, EqualThoseOfTensorFlow) {
  const Vectors vectors = ReadVectors();
  ASSERT_GT(vectors.rows.size(), 200U);
  ASSERT_EQ(vectors.ids.size(), vectors.spec.columns.size());
  FeatureRequest request;
  for (const ColumnSpec& column : vectors.spec.columns) request.categorical.push_back(column.name);
  auto transform = FeatureTransform::Create(vectors.spec, request);
  ASSERT_TRUE(transform.ok()) << transform.status();

  Columns rows(vectors.spec.schema);
  // Adds all rows twice, so that there is more than one block.
  for (int pass = 0; pass < 2; ++pass) {
    for (const auto& row : vectors.rows) AppendRow(vectors.spec.schema, row, &rows);
  }
  FeatureBatch batch;
  int bad_row = 0;
  const absl::Status status = (*transform)->Apply(rows, false, &batch, &bad_row);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(bad_row, -1);
  for (size_t c = 0; c < request.categorical.size(); ++c) {
    const std::vector<std::string>& expected = vectors.ids.at(request.categorical[c]);
    ASSERT_EQ(expected.size(), vectors.rows.size());
    for (int row = 0; row < rows.rows(); ++row) {
      EXPECT_EQ(RowIds(batch.id_lists[c], row), expected[row % expected.size()])
          << "column " << request.categorical[c] << ", row " << row;
    }
  }
}

TEST(Ids, EqualThoseOfTensorFlowOneRowAtATime) {
  const Vectors vectors = ReadVectors();
  FeatureRequest request;
  for (const ColumnSpec& column : vectors.spec.columns) request.categorical.push_back(column.name);
  auto transform = FeatureTransform::Create(vectors.spec, request);
  ASSERT_TRUE(transform.ok()) << transform.status();
  Columns rows(vectors.spec.schema);
  FeatureBatch batch;
  for (size_t row = 0; row < vectors.rows.size(); ++row) {
    rows.Clear();
    AppendRow(vectors.spec.schema, vectors.rows[row], &rows);
    const absl::Status status = (*transform)->Apply(rows, false, &batch, nullptr);
    ASSERT_TRUE(status.ok()) << status;
    for (size_t c = 0; c < request.categorical.size(); ++c) {
      EXPECT_EQ(RowIds(batch.id_lists[c], 0), vectors.ids.at(request.categorical[c])[row])
          << "column " << request.categorical[c] << ", row " << row;
    }
  }
}

}  // namespace
}  // namespace muster::features
