#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "muster/base/random.h"
#include "muster/features/fingerprint.h"
#include "muster/features/ids.h"
#include "muster/features/transform.h"

namespace muster::features {
namespace {

formats::Schema OneString() {
  formats::Schema schema;
  schema.fields.emplace_back();
  schema.fields[0].name = "word";
  schema.fields[0].type = formats::ValueType::kString;
  return schema;
}

std::vector<int64_t> GetIds(const ColumnSpec& column, const std::vector<std::string>& values) {
  const formats::Schema schema = OneString();
  const auto lookup = MakeVocabularyLookup(schema, column);
  formats::Columns rows(schema);
  Scratch scratch;
  scratch.fingerprints.resize(1);
  for (const std::string& value : values) {
    rows.mutable_column(0).strings.push_back(value);
    rows.AddRow();
    if (lookup->needs_fingerprints()) scratch.fingerprints[0].push_back(Fingerprint64(value));
  }
  std::vector<int64_t> ids(values.size());
  size_t bad_value = 0;
  const absl::Status status =
      lookup->Lookup(rows, scratch, 0, static_cast<int>(values.size()), ids.data(), &bad_value);
  EXPECT_TRUE(status.ok()) << status;
  return ids;
}

ColumnSpec Words(std::vector<std::string> words) {
  ColumnSpec column;
  column.kind = ColumnKind::kVocabulary;
  column.input = "word";
  column.words = std::move(words);
  return column;
}

TEST(VocabularyTest, ValuesThatAreNoWordsAreCountedWithoutMissingOnes) {
  for (const int64_t buckets : {0, 3}) {
    FeatureSpec spec;
    spec.schema = OneString();
    spec.columns = {Words({"Rome", "Oslo"})};
    spec.columns[0].name = "city";
    spec.columns[0].oov_buckets = buckets;
    const auto transform = FeatureTransform::Create(spec, {.dense = {}, .categorical = {"city"}});
    ASSERT_TRUE(transform.ok()) << transform.status();
    EXPECT_TRUE((*transform)->CountWords().empty());
    formats::Columns rows(spec.schema);
    const std::vector<std::string> values = {"Rome", "", "Par\nis", "Bern", "", "Oslo", "Bern"};
    for (const std::string& value : values) {
      rows.mutable_column(0).strings.push_back(value);
      rows.AddRow();
    }
    formats::Columns one(spec.schema);
    one.mutable_column(0).strings.emplace_back("Rome");
    one.AddRow();
    FeatureBatch batch;
    int bad_row = 0;
    ASSERT_TRUE((*transform)->Apply(rows, false, &batch, &bad_row).ok());
    const std::vector<WordCount> counts = (*transform)->CountWords();
    ASSERT_EQ(counts.size(), 1u);
    EXPECT_EQ(counts[0].values, 5u);
    EXPECT_EQ(counts[0].unknown, 3u);
    EXPECT_EQ(counts[0].example, "'Par\\nis'");
    EXPECT_EQ(
        WarnOfUnknownWords(spec, counts),
        std::vector<std::string>{
            "column 'city' does not know 60 % of its values, such as 'Par\\nis': its words are "
            "'Rome', 'Oslo' (compared byte by byte); write the values as in the training, "
            "or train again with these words"});
    ASSERT_TRUE((*transform)->Apply(one, false, &batch, &bad_row).ok());
    EXPECT_TRUE(WarnOfUnknownWords(spec, (*transform)->CountWords()).empty()) << "half is not more";
  }
}

TEST(VocabularyTest, WordsThatDifferInOneByteAreDifferent) {
  // Words of every length that differ at every position: at the ends and in the middle.
  std::vector<std::string> words, unknown;
  for (size_t size = 1; size <= 40; ++size) {
    const std::string word(size, 'a');
    words.push_back(word);
    for (size_t at = 0; at < size; ++at) {
      std::string other = word;
      other[at] = 'b';
      (at % 2 == 0 ? words : unknown).push_back(other);
    }
  }
  const std::vector<int64_t> ids = GetIds(Words(words), words);
  for (size_t i = 0; i < words.size(); ++i) EXPECT_EQ(ids[i], i) << words[i];
  for (const int64_t id : GetIds(Words(words), unknown)) EXPECT_EQ(id, -1);
}

TEST(VocabularyTest, WordsOfAnyBytesAreFound) {
  RandomStream random(3, RandomPurpose::kSampleData, 0);
  std::set<std::string> distinct;
  while (distinct.size() < 3000) {
    std::string word(1 + random.Below(24), '\0');
    // few values, so that words often have the same bytes
    for (char& c : word) c = static_cast<char>(random.Below(4));
    distinct.insert(word);
  }
  const std::vector<std::string> all(distinct.begin(), distinct.end());
  std::vector<std::string> words;
  for (size_t i = 0; i < all.size(); i += 2) words.push_back(all[i]);
  const std::vector<int64_t> ids = GetIds(Words(words), all);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(ids[i], i % 2 == 0 ? static_cast<int64_t>(i / 2) : -1);
  }
}

TEST(VocabularyTest, UnknownWordsGoToTheirFingerprintsBucket) {
  ColumnSpec column = Words({"red", "green"});
  column.oov_buckets = 5;
  const std::vector<int64_t> ids = GetIds(column, {"green", "blue", "", "a word of many letters"});
  EXPECT_EQ(ids[0], 1);
  EXPECT_EQ(ids[1], 2 + static_cast<int64_t>(Fingerprint64(std::string_view("blue")) % 5));
  EXPECT_EQ(ids[2], kMissing);
  EXPECT_EQ(ids[3], 2 + static_cast<int64_t>(
                            Fingerprint64(std::string_view("a word of many letters")) % 5));
}

}  // namespace
}  // namespace muster::features
