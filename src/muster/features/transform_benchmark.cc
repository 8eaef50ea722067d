// Measures FeatureTransform on rows like those of the census table ("Adult"): 8 categorical
// columns, 2 crosses of strings (one with a bucketized age), the age bucket itself, 5 numbers, the
// label.
#include <benchmark/benchmark.h>

#include <random>

#include "muster/features/transform.h"

namespace muster::features {
namespace {

using formats::ValueType;

struct Vocabulary {
  const char* field;
  std::vector<std::string> words;
};

const std::vector<Vocabulary>& Vocabularies() {
  static const auto* const kVocabularies = new std::vector<Vocabulary>{
      {"workclass",
       {"Federal-gov", "Local-gov", "Never-worked", "Private", "Self-emp-inc", "Self-emp-not-inc",
        "State-gov", "Without-pay"}},
      {"education",
       {"10th", "11th", "12th", "1st-4th", "5th-6th", "7th-8th", "9th", "Assoc-acdm", "Assoc-voc",
        "Bachelors", "Doctorate", "HS-grad", "Masters", "Preschool", "Prof-school",
        "Some-college"}},
      {"marital_status",
       {"Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent",
        "Never-married", "Separated", "Widowed"}},
      {"relationship",
       {"Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife"}},
      {"race", {"Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"}},
      {"sex", {"Female", "Male"}},
      {"occupation",
       {"", "Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial", "Farming-fishing",
        "Handlers-cleaners", "Machine-op-inspct", "Other-service", "Prof-specialty", "Sales",
        "Tech-support", "Transport-moving"}},
      {"country", {"", "United-States", "United-States", "Mexico", "Cuba", "Philippines"}},
      {"label", {"<=50K", ">50K"}},
  };
  return *kVocabularies;
}

constexpr const char* kNumbers[] = {"age", "education_num", "hours", "gain", "loss"};

ColumnSpec NewColumn(std::string name, ColumnKind kind, std::string input) {
  ColumnSpec column;
  column.name = std::move(name);
  column.kind = kind;
  column.input = std::move(input);
  return column;
}

FeatureSpec CensusSpec() {
  FeatureSpec spec;
  const auto add_field = [&](std::string name, ValueType type) {
    formats::Field field;
    field.name = std::move(name);
    field.type = type;
    spec.schema.fields.push_back(field);
  };
  for (const char* number : kNumbers) {
    add_field(number, ValueType::kFloat);
    ColumnSpec column = NewColumn(StrCat(number, "_number"), ColumnKind::kNumeric, number);
    column.log1p = column.name == "gain_number" || column.name == "loss_number";
    if (!column.log1p) column.stddev = 13.7;
    spec.columns.push_back(column);
  }
  for (const Vocabulary& vocabulary : Vocabularies()) {
    add_field(vocabulary.field, ValueType::kString);
    const bool hashed = vocabulary.words[0].empty();
    ColumnSpec column =
        NewColumn(StrCat(vocabulary.field, "_ids"),
                  hashed ? ColumnKind::kHash : ColumnKind::kVocabulary, vocabulary.field);
    column.buckets = 1000;
    if (!hashed) column.words = vocabulary.words;
    spec.columns.push_back(column);
  }
  spec.columns.pop_back();  // not the label's column
  ColumnSpec bucket = NewColumn("age_bucket", ColumnKind::kBucketized, "age");
  bucket.boundaries = {18, 25, 30, 35, 40, 45, 50, 55, 60, 65};
  ColumnSpec cross = NewColumn("cross", ColumnKind::kCross, "");
  cross.buckets = 1000;
  cross.keys = {"education", "occupation"};
  ColumnSpec age_cross = cross;
  age_cross.name = "age_cross";
  age_cross.keys.insert(age_cross.keys.begin(), "age_bucket");
  spec.columns.insert(spec.columns.end(), {bucket, cross, age_cross});
  spec.label = {"label", Vocabularies().back().words};
  return spec;
}

// Puts every value into separate memory, as a decoder does.
void FillRows(int count, uint32_t seed, formats::Columns* rows) {
  std::mt19937 random(seed);
  for (int row = 0; row < count; ++row) {
    int field = 0;
    rows->mutable_column(field++).floats.push_back(static_cast<float>(17 + random() % 70));
    rows->mutable_column(field++).floats.push_back(static_cast<float>(1 + random() % 16));
    rows->mutable_column(field++).floats.push_back(static_cast<float>(1 + random() % 99));
    const bool gains = random() % 12 == 0;
    rows->mutable_column(field++).floats.push_back(gains ? 2174.0F + random() % 9999 : 0.0F);
    rows->mutable_column(field++).floats.push_back(random() % 20 == 0 ? 1902.0F : 0.0F);
    for (const Vocabulary& vocabulary : Vocabularies()) {
      const std::string& word = vocabulary.words[random() % vocabulary.words.size()];
      rows->mutable_column(field++).strings.push_back(rows->Store(word));
    }
    rows->AddRow();
  }
}

void BM_Census(benchmark::State& state) {
  const FeatureSpec spec = CensusSpec();
  FeatureRequest request;
  for (const ColumnSpec& column : spec.columns) {
    (column.is_categorical() ? request.categorical : request.dense).push_back(column.name);
  }
  auto transform = FeatureTransform::Create(spec, request);
  if (!transform.ok()) return state.SkipWithError(transform.status().ToString().c_str());
  // There are many batches, so that the processor does not learn the branches of one.
  std::vector<formats::Columns> batches;
  for (int i = 0; i < 8192 / state.range(0); ++i) {
    FillRows(static_cast<int>(state.range(0)), i, &batches.emplace_back(spec.schema));
  }
  FeatureBatch batch;
  size_t next = 0;
  for (auto _ : state) {
    const absl::Status status = (*transform)->Apply(batches[next], true, &batch, nullptr);
    if (!status.ok()) return state.SkipWithError(status.ToString().c_str());
    benchmark::DoNotOptimize(batch.id_lists.data());
    next = next + 1 == batches.size() ? 0 : next + 1;
  }
  state.counters["per_row"] =
      benchmark::Counter(static_cast<double>(state.iterations() * state.range(0)),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_Census)->Arg(40)->Arg(512);

}  // namespace
}  // namespace muster::features
