#include <map>

#include "muster/features/measure.h"
#include "muster/model/model.h"
#include "muster/model/spec/model_spec_test_util.h"

namespace muster::model {
namespace {

using features::ColumnKind;
using testing::HasSubstr;

constexpr std::string_view kWhole = R"(
inputs:
  age: {type: float, default: 0.5, missing: ["?", NA]}
  job: string
  rank: {type: int, truncate: true, date: day_first, default: -1}
  tags: {type: string, list: true, separator: ";"}
  user: int
  clicked: int
  scores: {type: float, list: true}
label: {input: clicked}
key: user
columns:
  age: {numeric: age, log1p: true, mean: 38.641982, stddev: 13.697271}
  age_bucket: {bucketized: age, boundaries: [18, 30.5]}
  job: {vocabulary: job, words: [clerk, "a b", "\"quoted\""], oov_buckets: 3}
  town: {vocabulary: job, file: towns.txt, default: 1}
  rank: {identity: rank, buckets: 8, default: 0}
  tags: {hash: tags, buckets: 100}
  both: {cross: [job, age_bucket], buckets: 1000, hash_key: 18446744073709551615}
  job_indicator: {indicator: job}
  tags_embedding: {embedding: tags, dimension: 8, combiner: sqrtn}
  pair: {numeric: scores, shape: 2, mean: 1}
  pair_bucket: {bucketized: scores, shape: 2, boundaries: [1]}
  scored: {weighted: tags, weights: scores}
  scored_shared: {embedding: scored, dimension: 4, combiner: sum, shared: topics, max_norm: 0.5}
  tags_last: {embedding: tags, dimension: 4, pooling: last, shared: topics, max_norm: 0.5}
  track: {sequence_numeric: scores, pooling: max, shape: 2, log1p: true, stddev: 2}
model:
  type: wide_deep
  linear: {columns: [job, town, both, age], optimizer: {ftrl: {l1: 0.25, learning_rate: 0.1}}}
  dnn:
    columns: [age, job_indicator, tags_embedding, pair, scored_shared, tags_last, track]
    hidden_units: [16, 8]
    activation: tanh
    dropout: 0.25
    batch_norm: true
    input_batch_norm: true
    synchronized_batch_norm: true
    l2: 0.001
    embedding_l1: 0.002
    embedding_l2: 0.003
    optimizer: {adam: {lazy: true, beta2: 0.99}}
train: {batch_size: 40, epochs: 10, seed: 18446744073709551615, shuffle: false, precision: bf16}
)";

constexpr std::string_view kDynamic = R"(
inputs: {user: int, items: {type: string, list: true}, shown: string, y: int}
label: y
columns:
  user: {keys: user, admit_after: 3, expire_after: 10000, capacity: 1000000}
  items: {keys: items}
  shown: {keys: shown}
  u: {embedding: user, dimension: 8}
  i: {embedding: items, dimension: 4, shared: all}
  s: {embedding: shown, dimension: 4, shared: all}
model: {type: wide_deep, linear: {columns: [user]}, dnn: {columns: [u, i, s], hidden_units: [4]}}
)";

constexpr std::string_view kNumeric = R"(
inputs:
  income: {type: float, missing: ["?"]}
  visits: int
  rate: {type: float, default: 0.5}
  steps: {type: float, list: true}
  y: int
label: y
columns:
  income: {numeric: income, normalize: auto, clip: [0, 1e6], log1p: true, impute: median, missing_flag: true}
  visits: {numeric: visits, impute: 3, missing_flag: true}
  visits_bucket: {bucketized: visits, boundaries: [2]}
  rate: {numeric: rate, missing_flag: true, normalize: auto, mean: 0.25, stddev: 2}
  longest: {sequence_numeric: steps, pooling: max, normalize: auto, clip: [-1, 1]}
model: {type: dnn, dnn: {columns: [income, visits, rate, longest], hidden_units: [4]}}
)";

TEST_F(ModelSpecTest, NumericColumnsGetNumbersFromTheData) {
  const auto spec = Parse(kNumeric);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const features::FeatureSpec& features = spec->features;
  EXPECT_TRUE(features.Find("income")->to_measure);
  EXPECT_EQ(features.Find("income")->clip_high, 1e6F);
  EXPECT_TRUE(features.schema.fields[0].mark_missing);
  EXPECT_FALSE(features.Find("visits")->to_measure) << "the number is known";
  EXPECT_EQ(std::get<int64_t>(features.schema.fields[1].default_value), 3)
      << "all columns of the input read it";
  EXPECT_FALSE(features.Find("rate")->to_measure) << "the numbers are known";
  EXPECT_EQ(features.Find("rate")->mean, 0.25);
  EXPECT_TRUE(features.Find("longest")->to_measure);
  EXPECT_EQ(features.Width(*features.Find("income")), 2);
  const auto again = Parse(PrintModelSpec(*spec));
  ASSERT_TRUE(again.ok()) << again.status() << PrintModelSpec(*spec);
  EXPECT_EQ(*again, *spec);
  // The spec as the model folder keeps it.
  model::ModelSpec measured = *spec;
  for (features::ColumnSpec& column : measured.features.columns) {
    if (!column.to_measure) continue;
    column.to_measure = false;
    column.mean = 0.1;
    column.stddev = 1e-3;
    if (column.impute == features::Impute::kMedian) column.imputed = 1.0 / 3;
  }
  features::ApplyImputes(&measured.features);
  const auto kept = Parse(PrintModelSpec(measured));
  ASSERT_TRUE(kept.ok()) << kept.status() << PrintModelSpec(measured);
  EXPECT_EQ(*kept, measured);
}

TEST_F(ModelSpecTest, ADateIsTrueFalseOrAnOrder) {
  for (const bool date : {true, false}) {
    const auto spec = Parse(WithText(kWhole, "day_first", date ? "true" : "false"));
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->features.schema.fields[2].date, date);
    EXPECT_EQ(spec->features.schema.fields[2].date_order, formats::DateOrder::kUnknown);
  }
  EXPECT_THAT(std::string(Parse(WithText(kWhole, "day_first", "european")).status().message()),
              HasSubstr("inputs.rank.date: must be true or false or, for dates such as"));
}

TEST_F(ModelSpecTest, InvalidNumericColumnsAreRefused) {
  const auto error = [&](std::string_view old, std::string_view text) {
    return std::string(Parse(WithText(kNumeric, old, text)).status().message());
  };
  EXPECT_THAT(error("impute: 3", "impute: most"),
              HasSubstr("columns.visits.impute: is 'most'; give mean, median or a number"));
  EXPECT_THAT(error("impute: 3", "impute: 3.5"), HasSubstr("give a whole number"));
  EXPECT_THAT(error("impute: 3, missing_flag", "missing_flag"), HasSubstr("give impute"));
  EXPECT_THAT(error("missing_flag: true, normalize: auto, mean", "impute: mean, mean"),
              HasSubstr("has a default"));
  EXPECT_THAT(error("clip: [0, 1e6]", "clip: [1, 1]"), HasSubstr("needs two numbers"));
  EXPECT_THAT(error("clip: [0, 1e6]", "clip: 3"), HasSubstr("needs two numbers"));
  EXPECT_THAT(error("normalize: auto, clip: [0", "normalize: true, clip: [0"),
              HasSubstr("give auto"));
  EXPECT_THAT(error("mean: 0.25, stddev: 2", "mean: 0.25"), HasSubstr("or neither"));
  EXPECT_THAT(error("bucketized: visits, boundaries: [2]", "numeric: visits, impute: mean"),
              HasSubstr("impute differs from that of 'visits'"));
  EXPECT_THAT(error("sequence_numeric: steps, pooling: max", "numeric: steps, impute: 0"),
              HasSubstr("is a list"));
  EXPECT_THAT(error("impute: 3", "imputed: 3"), HasSubstr("'imputed' is the number"));
}

TEST_F(ModelSpecTest, KeysColumnsHaveNoSize) {
  const auto spec = Parse(kDynamic);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(
      spec->features.Find("user")->growth,
      (features::GrowthSpec{.admit_after = 3, .expire_after = 10'000, .capacity = 1'000'000}));
  EXPECT_EQ(spec->features.Find("items")->growth, features::GrowthSpec());
  const auto again = Parse(PrintModelSpec(*spec));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->features, spec->features);
  const auto model = BuildModel(*spec);
  ASSERT_TRUE(model.ok()) << model.status();
  for (const engine::VariableSpec& variable : model->engine->variables()) {
    if (variable.kind == engine::VariableKind::kTable) {
      EXPECT_TRUE(variable.growth.has_value()) << variable.name;
      EXPECT_EQ(variable.shape[0], 0) << variable.name;
    }
  }
}

TEST_F(ModelSpecTest, InvalidUsesOfKeysColumnsAreRefused) {
  const auto error = [&](std::string_view old, std::string_view text) {
    return std::string(Parse(WithText(kDynamic, old, text)).status().message());
  };
  EXPECT_THAT(error("admit_after: 3", "admit_after: 0"), HasSubstr("admit_after"));
  EXPECT_THAT(error("u: {embedding: user, dimension: 8}", "u: {indicator: user}"),
              HasSubstr("column 'u': the number of keys of 'user' is not known"));
  EXPECT_THAT(error("shown: {keys: shown}", "shown: {keys: shown, admit_after: 2}"),
              HasSubstr("must both be keys columns with the same admit_after"));
  EXPECT_THAT(error("shown: {keys: shown}", "shown: {hash: shown, buckets: 9}"),
              HasSubstr("shared 'all'"));
  EXPECT_THAT(error("hidden_units: [4]", "hidden_units: [4], embedding_l2: 0.1"),
              HasSubstr("model.dnn.columns: 'u' has a table that grows"));
}

TEST_F(ModelSpecTest, ReadsEveryKey) {
  const auto spec = Parse(kWhole);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto& fields = spec->features.schema.fields;
  ASSERT_EQ(fields.size(), 7u);
  EXPECT_EQ(fields[0].type, formats::ValueType::kFloat);
  EXPECT_EQ(std::get<float>(fields[0].default_value), 0.5f);
  EXPECT_THAT(fields[0].missing, testing::ElementsAre("?", "NA"));
  EXPECT_TRUE(fields[1].has_default);
  EXPECT_TRUE(fields[2].truncate);
  EXPECT_TRUE(fields[2].date);
  EXPECT_EQ(fields[2].date_order, formats::DateOrder::kDayFirst);
  EXPECT_TRUE(fields[3].list);
  EXPECT_EQ(fields[3].separator, ';');
  EXPECT_FALSE(fields[3].has_default);
  EXPECT_FALSE(fields[4].has_default);
  const features::ColumnSpec* town = spec->features.Find("town");
  ASSERT_NE(town, nullptr);
  EXPECT_THAT(town->words, testing::ElementsAre("rome", "paris", "bonn"));
  EXPECT_EQ(town->default_id, 1);
  EXPECT_EQ(spec->features.Find("both")->hash_key, ~uint64_t{0});
  EXPECT_EQ(spec->features.Find("tags_embedding")->combiner, features::Combiner::kSqrtN);
  EXPECT_EQ(spec->features.Find("pair")->shape, 2);
  EXPECT_EQ(spec->features.Find("pair_bucket")->shape, 2);
  EXPECT_EQ(spec->features.Find("scored")->kind, ColumnKind::kWeighted);
  EXPECT_EQ(spec->features.Find("scored")->weights, "scores");
  EXPECT_EQ(spec->features.Find("scored_shared")->shared, "topics");
  EXPECT_EQ(spec->features.Find("scored_shared")->max_norm, 0.5);
  EXPECT_EQ(spec->features.Find("tags_last")->pooling, features::Pooling::kLast);
  EXPECT_EQ(spec->features.Find("track")->kind, ColumnKind::kSequenceNumeric);
  EXPECT_EQ(spec->features.Find("track")->pooling, features::Pooling::kMax);
  EXPECT_EQ(spec->linear->optimizer.Get("l1"), 0.25);
  EXPECT_EQ(spec->dnn->optimizer.kind, "adam");
  EXPECT_TRUE(spec->dnn->optimizer.lazy);
  EXPECT_EQ(spec->dnn->dropout, 0.25);
  EXPECT_EQ(spec->dnn->l2, 0.001);
  EXPECT_EQ(spec->dnn->embedding_l1, 0.002);
  EXPECT_EQ(spec->dnn->embedding_l2, 0.003);
  EXPECT_EQ(spec->train.seed, ~uint64_t{0});
  EXPECT_FALSE(spec->train.shuffle);
  EXPECT_EQ(spec->train.precision, engine::Precision::kBfloat16);
}

TEST_F(ModelSpecTest, PrintsBackToItself) {
  const auto spec = Parse(kWhole);
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_TRUE(files_->MakeFolders("model").ok());
  ASSERT_TRUE(SaveModelSpec(*files_, *spec, "model").ok());
  auto again = LoadModelSpec(*files_, "model/model.yaml");
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << PrintModelSpec(*spec);
  EXPECT_EQ(again->features.Find("town")->words_file, "model/town.vocabulary.txt");
  EXPECT_EQ(DescribeDifference(*spec, *again), "");
  EXPECT_EQ(again->train, spec->train);
}

TEST_F(ModelSpecTest, DescribesTheFirstDifference) {
  const auto a = Parse(kSmallSpec);
  ASSERT_TRUE(a.ok()) << a.status();
  ModelSpec b = *a;
  b.train.epochs = 7;
  EXPECT_EQ(DescribeDifference(*a, b), "");
  b.features.columns[0].mean = 2;
  EXPECT_THAT(DescribeDifference(*a, b), HasSubstr("mean: 2"));
}

TEST_F(ModelSpecTest, ErrorsHaveLineKeyAndNearestWord) {
  EXPECT_EQ(ErrorAfter("numeric: x", "numeric: x, maen: 3"),
            "specs/m.yaml:6: columns.x: unknown key 'maen' (did you mean 'mean'?)");
  EXPECT_EQ(ErrorAfter("numeric: x", "numerik: x"),
            "specs/m.yaml:6: columns.x: unknown column kind 'numerik' (did you mean 'numeric'?)");
  EXPECT_EQ(ErrorAfter("numeric: x", "vocab: x"),
            "specs/m.yaml:6: columns.x: unknown column kind 'vocab' (did you mean 'vocabulary'?)");
  EXPECT_EQ(ErrorAfter("label:", "lable:"),
            "specs/m.yaml:4: unknown key 'lable' (did you mean 'label'?)");
  EXPECT_EQ(ErrorAfter("x: float", "x: flaot"),
            "specs/m.yaml:2: inputs.x: unknown type 'flaot' (did you mean 'float'?)");
  EXPECT_THAT(ErrorAfter("type: linear", "type: liner"), HasSubstr("did you mean 'linear'?"));
}

TEST_F(ModelSpecTest, RefusesInvalidModels) {
  EXPECT_THAT(ErrorAfter("numeric: x", "numeric: x, stddev: 0"), HasSubstr("stddev: 0 is not"));
  EXPECT_THAT(ErrorAfter("numeric: x", "numeric: x, mean: nan"), HasSubstr("is not a number"));
  EXPECT_THAT(ErrorAfter("numeric: x", "hash: x, buckets: 99999999999"),
              HasSubstr("is not between 1 and 2147483647"));
  EXPECT_THAT(ErrorAfter("columns: [x]", "columns: [xx]"), HasSubstr("did you mean 'x'?"));
  EXPECT_THAT(ErrorAfter("columns: [x]", "columns: [x, x]"), HasSubstr("listed twice"));
  EXPECT_THAT(ErrorAfter("columns: [x]", "columns: []"), HasSubstr("has no columns"));
  EXPECT_THAT(ErrorAfter("  y: int\n", "  y: int\n  y: int\n"), HasSubstr("given twice"));
  EXPECT_THAT(ErrorAfter("label: y", "label: {input: y, words: [0, 1, 2]}"),
              HasSubstr("needs 2 words"));
  EXPECT_THAT(ErrorAfter("type: linear", "type: dnn"), HasSubstr("no 'linear' part"));
  EXPECT_THAT(ErrorAfter("type: linear", "type: linear\n  optimizer: ftrl"),
              HasSubstr("'optimizer' belongs in the 'linear' part of a linear model"));
  EXPECT_THAT(ErrorAfter("type: linear\n  linear: {",
                         "type: dnn\n  dnn: {hidden_units: [2], "
                         "synchronized_batch_norm: true, "),
              HasSubstr("give batch_norm or input_batch_norm"));
  EXPECT_THAT(ErrorAfter("label: y", "label: y: z"), HasSubstr("not YAML"));
  EXPECT_THAT(ErrorAfter("inputs:", "- a"), HasSubstr("not YAML"));
  EXPECT_THAT(ErrorAfter("columns: [x]", "columns: [x], optimizer: {sgdd: {}}"),
              HasSubstr("unknown optimizer 'sgdd' (did you mean 'sgd'?)"));
}

TEST_F(ModelSpecTest, RefusesInvalidColumns) {
  EXPECT_THAT(ErrorAfter("numeric: x", "sequence_numeric: x"), HasSubstr("needs 'pooling'"));
  EXPECT_THAT(ErrorAfter("numeric: x", "sequence_numeric: x, pooling: lost"),
              HasSubstr("unknown pooling 'lost' (did you mean 'last'?)"));
  EXPECT_THAT(ErrorAfter("numeric: x", "sequence_numeric: x, pooling: last"),
              HasSubstr("column 'x': a sequence needs a list; 'x' is not one"));
  EXPECT_THAT(ErrorAfter("numeric: x", "embedding: x, dimension: 2, pooling: sum, combiner: sum"),
              HasSubstr("give either 'combiner' or 'pooling', not both"));
  EXPECT_THAT(ErrorAfter("numeric: x", "embedding: x, dimension: 2, max_norm: -1"),
              HasSubstr("max_norm: -1 is not"));
  EXPECT_THAT(ErrorAfter("numeric: x", "weighted: x"), HasSubstr("needs 'weights'"));
  EXPECT_THAT(ErrorAfter("numeric: x", "weighted: x, weight: y"),
              HasSubstr("unknown key 'weight' (did you mean 'weights'?)"));
  EXPECT_THAT(ErrorAfter("numeric: x", "numeric: x, shape: 0"), HasSubstr("shape: 0 is not"));
  EXPECT_THAT(ErrorAfter("numeric: x", "numeric: x, shape: 2"),
              HasSubstr("shape is 2 and 'x' has one value per row"));
}

TEST_F(ModelSpecTest, RefusesHostileInput) {
  EXPECT_THAT(std::string(Parse(std::string(kMaxSpecBytes + 1, 'a')).status().message()),
              HasSubstr(StrCat("at most ", kMaxSpecBytes)));
  for (const char* deep : {"[", "{a: ", "- "}) {
    std::string yaml;
    for (int i = 0; i < 5000; ++i) yaml += deep;
    EXPECT_THAT(std::string(Parse(yaml).status().message()), HasSubstr("nests deeper"));
  }
  EXPECT_FALSE(Parse("").ok());
  EXPECT_FALSE(Parse("hello").ok());
  EXPECT_FALSE(Parse("a: &x [*x, *x]").ok());
}

TEST_F(ModelSpecTest, ReportsAMissingVocabularyFile) {
  EXPECT_THAT(ErrorAfter("numeric: x", "vocabulary: x, file: none.txt"),
              testing::AllOf(HasSubstr("columns.x"), HasSubstr("specs/none.txt")));
}

TEST(LoadModelSpecTest, AFileOfKerasMustBeExported) {
  const auto files = io::NewMemoryFileSystem();
  ASSERT_TRUE(io::WriteFileAtomically(*files, "model.keras", "PK\x03\x04").ok());
  const auto spec = LoadModelSpec(*files, "model.keras");
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(spec.status().message()),
              testing::HasSubstr("muster.keras.export(keras.models.load_model(...)"));
}

TEST_F(ModelSpecTest, TheFormatOfTheDataIsPrintedBackAndIsNoDifference) {
  const std::string yaml = StrCat(kSmallSpec, R"(format:
  type: csv
  delimiter: tab
  columns: [x, y]
  trim: true
  quote: none
  missing: ["?", NA]
  encoding_errors: latin1
)");
  const auto spec = Parse(yaml);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const formats::DataFormat expected = {.type = formats::FileFormat::kCsv,
                                        .delimiter = '\t',
                                        .columns = {"x", "y"},
                                        .trim = true,
                                        .quote = '\0',
                                        .encoding_errors = formats::EncodingErrors::kLatin1,
                                        .missing = {{"?", "NA"}}};
  EXPECT_EQ(spec->format, expected);
  ExpectPrintsBack(*spec);
  EXPECT_EQ(DescribeDifference(*spec, *Parse(kSmallSpec)), "");
  EXPECT_THAT(ErrorAfter("label: y", "label: y\nformat: {delimiter: ';;'}"),
              HasSubstr("format.delimiter: ';;' is not a delimiter"));
  EXPECT_THAT(ErrorAfter("label: y", "label: y\nformat: {seperator: ';'}"),
              HasSubstr("format: unknown key 'seperator'"));
}

}  // namespace
}  // namespace muster::model
