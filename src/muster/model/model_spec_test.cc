#include "muster/model/model_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/io/memory_file_system.h"

namespace muster::model {
namespace {

using features::ColumnKind;
using testing::HasSubstr;

constexpr std::string_view kWhole = R"(
inputs:
  age: {type: float, default: 0.5, missing: ["?", NA]}
  job: string
  rank: {type: int, truncate: true, default: -1}
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
    l2: 0.001
    optimizer: {adam: {lazy: true, beta2: 0.99}}
train: {batch_size: 40, epochs: 10, seed: 18446744073709551615, shuffle: false, precision: bf16}
)";

// The smallest file that is right; tests change one thing in it.
constexpr std::string_view kSmall = R"(inputs:
  x: float
  y: int
label: y
columns:
  x: {numeric: x}
model:
  type: linear
  linear: {columns: [x]}
)";

class ModelSpecTest : public testing::Test {
 protected:
  ModelSpecTest() : files_(io::NewMemoryFileSystem()) {
    EXPECT_TRUE(files_->MakeFolders("specs").ok());
    EXPECT_TRUE(io::WriteFileAtomically(*files_, "specs/towns.txt", "rome\r\nparis\nbonn").ok());
  }

  absl::StatusOr<ModelSpec> Parse(std::string_view yaml) {
    return ParseModelSpec(*files_, yaml, "specs/m.yaml");
  }

  // The message for kSmall with its first `from` replaced.
  std::string ErrorAfter(std::string_view from, std::string_view to) {
    std::string yaml(kSmall);
    const size_t place = yaml.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    yaml.replace(place, from.size(), to);
    const auto spec = Parse(yaml);
    EXPECT_FALSE(spec.ok()) << yaml;
    EXPECT_TRUE(absl::IsInvalidArgument(spec.status())) << spec.status();
    return std::string(spec.status().message());
  }

  using LabelForm = features::LabelSpec::Form;
  void ExpectHead(std::string_view label, std::string_view rest, const engine::HeadSpec& head,
                  LabelForm form, int width);

  std::unique_ptr<io::FileSystem> files_;
};

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
  EXPECT_EQ(spec->linear->optimizer.l1, 0.25);
  EXPECT_EQ(spec->dnn->optimizer.kind, optim::OptimizerSpec::Kind::kAdam);
  EXPECT_TRUE(spec->dnn->optimizer.lazy);
  EXPECT_EQ(spec->dnn->dropout, 0.25);
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
  const auto a = Parse(kSmall);
  ASSERT_TRUE(a.ok()) << a.status();
  ModelSpec b = *a;
  b.train.epochs = 7;
  EXPECT_EQ(DescribeDifference(*a, b), "");
  b.features.columns[0].mean = 2;
  EXPECT_THAT(DescribeDifference(*a, b), HasSubstr("mean: 2"));
}

TEST_F(ModelSpecTest, NamesLineKeyAndNearestWord) {
  EXPECT_EQ(ErrorAfter("numeric: x", "numeric: x, maen: 3"),
            "specs/m.yaml:6: columns.x: unknown key 'maen' (did you mean 'mean'?)");
  EXPECT_EQ(ErrorAfter("numeric: x", "numerik: x"),
            "specs/m.yaml:6: columns.x: unknown column kind 'numerik' (did you mean 'numeric'?)");
  EXPECT_EQ(ErrorAfter("label:", "lable:"),
            "specs/m.yaml:4: unknown key 'lable' (did you mean 'label'?)");
  EXPECT_EQ(ErrorAfter("x: float", "x: flaot"),
            "specs/m.yaml:2: inputs.x: unknown type 'flaot' (did you mean 'float'?)");
  EXPECT_THAT(ErrorAfter("type: linear", "type: liner"), HasSubstr("did you mean 'linear'?"));
}

TEST_F(ModelSpecTest, RefusesWhatCannotBe) {
  EXPECT_THAT(ErrorAfter("numeric: x", "numeric: x, stddev: 0"), HasSubstr("stddev: 0 is not"));
  EXPECT_THAT(ErrorAfter("numeric: x", "numeric: x, mean: nan"), HasSubstr("is not a number"));
  EXPECT_THAT(ErrorAfter("numeric: x", "hash: x, buckets: 99999999999"),
              HasSubstr("is not between 1 and 2147483647"));
  EXPECT_THAT(ErrorAfter("columns: [x]", "columns: [xx]"), HasSubstr("did you mean 'x'?"));
  EXPECT_THAT(ErrorAfter("columns: [x]", "columns: [x, x]"), HasSubstr("listed twice"));
  EXPECT_THAT(ErrorAfter("columns: [x]", "columns: []"), HasSubstr("has no columns"));
  EXPECT_THAT(ErrorAfter("  y: int\n", "  y: int\n  y: int\n"), HasSubstr("given twice"));
  EXPECT_THAT(ErrorAfter("label: y", "label: {input: y, words: [0, 1, 2]}"),
              HasSubstr("wants 2 words"));
  EXPECT_THAT(ErrorAfter("type: linear", "type: dnn"), HasSubstr("no 'linear' part"));
  EXPECT_THAT(ErrorAfter("type: linear", "type: linear\n  optimizer: ftrl"),
              HasSubstr("'optimizer' goes into the 'linear' or 'dnn' part"));
  EXPECT_THAT(ErrorAfter("label: y", "label: y: z"), HasSubstr("not YAML"));
  EXPECT_THAT(ErrorAfter("inputs:", "- a"), HasSubstr("not YAML"));
  EXPECT_THAT(ErrorAfter("columns: [x]", "columns: [x], optimizer: {sgdd: {}}"),
              HasSubstr("unknown optimizer 'sgdd' (did you mean 'sgd'?)"));
}

// kSmall with a head and another label, as it is read and as it is after printing.
void ModelSpecTest::ExpectHead(std::string_view label, std::string_view rest,
                               const engine::HeadSpec& head, LabelForm form, int width) {
  SCOPED_TRACE(rest);
  std::string yaml(kSmall);
  yaml.replace(yaml.find("  y: int\nlabel: y\n"), 18, label);
  auto spec = Parse(StrCat(yaml, rest));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->head, head);
  EXPECT_EQ(spec->features.label.form, form);
  EXPECT_EQ(spec->features.label.width, width);
  auto again = Parse(PrintModelSpec(*spec));
  ASSERT_TRUE(again.ok()) << again.status() << PrintModelSpec(*spec);
  EXPECT_EQ(*again, *spec) << PrintModelSpec(*spec);
}

TEST_F(ModelSpecTest, Heads) {
  using engine::HeadKind;
  using engine::RegressionLoss;
  const std::string_view one = "  y: int\nlabel: y\n";
  const std::string_view words = "  y: string\nlabel: {input: y, words: [a, b, c]}\n";
  const std::string_view list = "  y: {type: float, list: true}\nlabel: y\n";
  const std::string_view set =
      "  y: {type: string, list: true}\nlabel: {input: y, words: [a, b, c]}\n";
  const std::string_view ids = "  y: {type: int, list: true}\nlabel: {input: y, ids: true}\n";
  ExpectHead(one, "", {}, LabelForm::kOne, 1);
  ExpectHead(one, "head: binary\n", {}, LabelForm::kOne, 1);
  const engine::HeadSpec three{.kind = HeadKind::kMultiClass, .classes = 3};
  ExpectHead(one, "head: {multi_class: {classes: 3}}\n", three, LabelForm::kOne, 1);
  ExpectHead(one, "head: {multi_class: 3}\n", three, LabelForm::kOne, 1);
  ExpectHead(words, "head: multi_class\n", three, LabelForm::kOne, 1);
  const engine::HeadSpec labels{.kind = HeadKind::kMultiLabel, .classes = 3};
  ExpectHead(list, "head: {multi_label: {classes: 3}}\n", labels, LabelForm::kVector, 3);
  ExpectHead(set, "head: multi_label\n", labels, LabelForm::kSet, 3);
  ExpectHead(ids, "head: {multi_label: 3}\n", labels, LabelForm::kSet, 3);
  const engine::HeadSpec regression{.kind = HeadKind::kRegression};
  ExpectHead(one, "head: regression\n", regression, LabelForm::kOne, 1);
  ExpectHead(list, "head: regression\n", regression, LabelForm::kVector, 1);
  ExpectHead(one, "head: {regression: poisson}\n",
             {.kind = HeadKind::kRegression, .loss = RegressionLoss::kPoisson}, LabelForm::kOne, 1);
  ExpectHead(
      list, "head: {regression: {loss: log_normal, label_dimension: 2}}\n",
      {.kind = HeadKind::kRegression, .loss = RegressionLoss::kLogNormal, .label_dimension = 2},
      LabelForm::kVector, 2);
}

TEST_F(ModelSpecTest, RefusesHeadsThatCannotBe) {
  const auto with_head = [&](const std::string& head) {
    return ErrorAfter("model:", StrCat("head: ", head, "\nmodel:"));
  };
  EXPECT_THAT(with_head("binry"), HasSubstr("unknown head 'binry' (did you mean 'binary'?)"));
  EXPECT_THAT(with_head("{binary: 3}"), HasSubstr("has no options"));
  EXPECT_THAT(with_head("{}"), HasSubstr("has one entry"));
  EXPECT_THAT(with_head("multi_class"), HasSubstr("needs its number of classes"));
  EXPECT_THAT(with_head("{multi_class: 2}"), HasSubstr("it must be 3 to"));
  EXPECT_THAT(with_head("{multi_class: {clases: 3}}"), HasSubstr("did you mean 'classes'?"));
  EXPECT_THAT(with_head("{multi_label: 3}"), HasSubstr("needs to be a list"));
  EXPECT_THAT(with_head("{regression: mean_square}"), HasSubstr("did you mean 'mean_squared'?"));
  EXPECT_THAT(with_head("{regression: {label_dimension: 2}}"), HasSubstr("needs to be a list"));
  EXPECT_THAT(ErrorAfter("label: y", "label: {input: y, words: [1, 2]}\nhead: regression"),
              HasSubstr("learns numbers, not words"));
  EXPECT_THAT(ErrorAfter("label: y", "label: {input: y, words: [1, 2, 3]}\nhead: {multi_class: 4}"),
              HasSubstr("wants 4 words, this has 3"));
  EXPECT_THAT(ErrorAfter("label: y", "label: {input: y, ids: true}"),
              HasSubstr("'ids' is for 'head: multi_label'"));
  EXPECT_THAT(ErrorAfter("label: y", "label: y\nweight: z"),
              HasSubstr("weight 'z': unknown input"));
}

TEST_F(ModelSpecTest, WeightAndMetrics) {
  std::string yaml(kSmall);
  yaml += "weight: x\nmetrics: {thresholds: [0.3, 0.75], calibration_buckets: 10}\n";
  auto spec = Parse(yaml);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->features.weight, "x");
  EXPECT_THAT(spec->metrics.thresholds, testing::ElementsAre(0.3, 0.75));
  EXPECT_EQ(spec->metrics.calibration_buckets, 10);
  auto again = Parse(PrintModelSpec(*spec));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *spec);
  again->metrics = {};
  EXPECT_EQ(DescribeDifference(*spec, *again), "");
  again->features.weight = "";
  EXPECT_THAT(DescribeDifference(*spec, *again), HasSubstr("weight"));

  const auto with_metrics = [&](const std::string& metrics) {
    return ErrorAfter("model:", StrCat("metrics: ", metrics, "\nmodel:"));
  };
  EXPECT_THAT(with_metrics("{top_k: [2]}"), HasSubstr("top_k: a binary head has none"));
  EXPECT_THAT(with_metrics("{per_class: true}"),
              HasSubstr("it is for multi_class and multi_label"));
  EXPECT_THAT(with_metrics("{thresholds: [1]}"), HasSubstr("1 is not between 0 and 1"));
  EXPECT_THAT(with_metrics("{thresholds: [a]}"), HasSubstr("'a' is not a number"));
  EXPECT_THAT(with_metrics("{treshold: [0.5]}"), HasSubstr("did you mean 'thresholds'?"));
  EXPECT_THAT(with_metrics("{top_k: [9]}\nhead: {multi_class: 3}"),
              HasSubstr("9 is not 1 to the number of classes, 3"));
}

TEST_F(ModelSpecTest, PartsWithoutAnOptimizerHaveTfEstimators) {
  const auto linear = Parse(kSmall);
  ASSERT_TRUE(linear.ok()) << linear.status();
  EXPECT_EQ(linear->linear->optimizer.kind, optim::OptimizerSpec::Kind::kFtrl);
  EXPECT_EQ(linear->linear->optimizer.learning_rate, 0.2);  // min(0.2, 1 / sqrt(1))
  std::string wide_deep(kSmall);
  wide_deep.replace(wide_deep.find("type: linear"), 12, "type: wide_deep");
  wide_deep += "  dnn: {columns: [x], hidden_units: [2]}\n";
  const auto both = Parse(wide_deep);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->linear->optimizer.learning_rate, 0.005);
  EXPECT_EQ(both->dnn->optimizer.kind, optim::OptimizerSpec::Kind::kAdagrad);
  EXPECT_EQ(both->dnn->optimizer.learning_rate, 0.001);
  auto again = Parse(PrintModelSpec(*both));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *both);
}

TEST_F(ModelSpecTest, Baseline) {
  std::string yaml(kSmall);
  yaml.resize(yaml.find("columns:"));
  const auto spec = Parse(StrCat(yaml, "model: {type: baseline}\n"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_TRUE(spec->baseline.has_value());
  EXPECT_EQ(spec->baseline->optimizer.learning_rate, 0.3);
  EXPECT_FALSE(spec->linear.has_value());
  auto again = Parse(PrintModelSpec(*spec));
  ASSERT_TRUE(again.ok()) << again.status() << PrintModelSpec(*spec);
  EXPECT_EQ(*again, *spec);
  EXPECT_THAT(ErrorAfter("type: linear", "type: baseline"), HasSubstr("no 'linear' part"));
}

TEST_F(ModelSpecTest, RefusesColumnsThatCannotBe) {
  EXPECT_THAT(ErrorAfter("numeric: x", "sequence_numeric: x"), HasSubstr("needs 'pooling'"));
  EXPECT_THAT(ErrorAfter("numeric: x", "sequence_numeric: x, pooling: lost"),
              HasSubstr("unknown pooling 'lost' (did you mean 'last'?)"));
  EXPECT_THAT(ErrorAfter("numeric: x", "sequence_numeric: x, pooling: last"),
              HasSubstr("column 'x': a sequence needs a list; 'x' is none"));
  EXPECT_THAT(ErrorAfter("numeric: x", "embedding: x, dimension: 2, pooling: sum, combiner: sum"),
              HasSubstr("'combiner' and 'pooling' exclude each other"));
  EXPECT_THAT(ErrorAfter("numeric: x", "embedding: x, dimension: 2, max_norm: -1"),
              HasSubstr("max_norm: -1 is not"));
  EXPECT_THAT(ErrorAfter("numeric: x", "weighted: x"), HasSubstr("needs 'weights'"));
  EXPECT_THAT(ErrorAfter("numeric: x", "weighted: x, weight: y"),
              HasSubstr("unknown key 'weight' (did you mean 'weights'?)"));
  EXPECT_THAT(ErrorAfter("numeric: x", "numeric: x, shape: 0"), HasSubstr("shape: 0 is not"));
  EXPECT_THAT(ErrorAfter("numeric: x", "numeric: x, shape: 2"),
              HasSubstr("shape is 2 and 'x' has one value a row"));
}

// Each prints back to what it was parsed from.
TEST_F(ModelSpecTest, ReadsOptimizersSchedulesAndClipping) {
  const char* const models[] = {
      "optimizer: sgd",
      "optimizer: {sgd: {learning_rate: 0.5, momentum: 0.9, nesterov: true}}",
      "optimizer: {rmsprop: {rho: 0.8, momentum: 0.5, epsilon: 0.001, centered: true}}",
      "optimizer: {rmsprop: {lazy: true}}",
      "optimizer: {adam: {learning_rate: {exponential: {initial: 0.1, decay_steps: 1000, "
      "decay_rate: 0.96, staircase: true}}}}",
      "optimizer: {adam: {learning_rate: {inverse_time: {initial: 0.1, decay_steps: 10, "
      "decay_rate: 0.5}}}}",
      "optimizer: {adam: {learning_rate: {polynomial: {initial: 0.1, decay_steps: 10, end: 0.01, "
      "power: 0.5, cycle: true}}}}",
      "optimizer: {adagrad: {learning_rate: {cosine: {initial: 0.1, decay_steps: 10}, "
      "warm_up_steps: 5, warm_up_from: 0.01}}}",
      "optimizer: {adagrad: {learning_rate: {cosine_restarts: {initial: 0.1, decay_steps: 10, "
      "t_mul: 3, m_mul: 0.5, alpha: 0.1}}}}",
      "optimizer: {sgd: {learning_rate: {piecewise: {boundaries: [10, 200], "
      "values: [0.1, 0.01, 0.001]}}}}",
      "optimizer: {sgd: {learning_rate: {constant: 0.1, warm_up_steps: 100}}}",
  };
  std::vector<ModelSpec> specs;
  for (const char* const optimizer : models) {
    for (const char* const clip :
         {"", "  clip_gradients: {value: 0.5}\n", "  clip_gradients: {norm: 1}\n",
          "  clip_gradients: {global_norm: 5}\n"}) {
      const std::string yaml =
          StrCat(kSmall.substr(0, kSmall.find("[x]}")), "[x], ", optimizer, "}\n", clip);
      const auto spec = Parse(yaml);
      ASSERT_TRUE(spec.ok()) << spec.status() << "\n" << yaml;
      const auto again = Parse(PrintModelSpec(*spec));
      ASSERT_TRUE(again.ok()) << again.status() << "\n" << PrintModelSpec(*spec);
      EXPECT_EQ(*spec, *again) << PrintModelSpec(*spec);
      for (const ModelSpec& other : specs) EXPECT_NE(DescribeDifference(*spec, other), "") << yaml;
      specs.push_back(*spec);
    }
  }
  const optim::OptimizerSpec& warm = specs[28].linear->optimizer;
  EXPECT_EQ(warm.schedule.kind, optim::ScheduleSpec::Kind::kCosine);
  EXPECT_EQ(warm.learning_rate, 0.1);
  EXPECT_EQ(warm.schedule.warm_up_steps, 5);
}

TEST_F(ModelSpecTest, RefusesWrongRatesAndClipping) {
  const auto error = [&](std::string_view rate) {
    return ErrorAfter("columns: [x]",
                      StrCat("columns: [x], optimizer: {ftrl: {learning_rate: ", rate, "}}"));
  };
  EXPECT_THAT(error("0"), HasSubstr("learning_rate: 0 is not"));
  EXPECT_THAT(error("{cosin: {}}"), HasSubstr("did you mean 'cosine'?"));
  EXPECT_THAT(error("{warm_up_steps: 5}"), HasSubstr("has one schedule"));
  EXPECT_THAT(error("{constant: 1, cosine: {initial: 1, decay_steps: 5}}"),
              HasSubstr("has one schedule"));
  EXPECT_THAT(error("{constant: 1, warm_up_from: 0.1}"), HasSubstr("needs 'warm_up_steps'"));
  EXPECT_THAT(error("{cosine: {initial: 1}}"), HasSubstr("decay_steps"));
  EXPECT_THAT(error("{cosine: {initial: 1, decay_steps: 5}}"), HasSubstr("reaches 0"));
  EXPECT_THAT(error("{exponential: {initial: 1, decay_steps: 5, decay_rate: 1, power: 2}}"),
              HasSubstr("unknown key 'power'"));
  EXPECT_THAT(error("{piecewise: {boundaries: [5], values: [1]}}"), HasSubstr("one value more"));
  EXPECT_THAT(error("{piecewise: {boundaries: [5, 1], values: [1, 1, 1]}}"),
              HasSubstr("must ascend"));
  EXPECT_THAT(ErrorAfter("columns: [x]", "columns: [x], optimizer: {sgd: {nesterov: true}}"),
              HasSubstr("momentum over 0"));
  EXPECT_THAT(ErrorAfter("columns: [x]", "columns: [x], optimizer: {sgd: 3}"),
              HasSubstr("optimizer"));
  EXPECT_THAT(ErrorAfter("type: linear", "type: linear\n  clip_gradients: {value: 1, norm: 1}"),
              HasSubstr("has one of"));
  EXPECT_THAT(ErrorAfter("type: linear", "type: linear\n  clip_gradients: {norm: 0}"),
              HasSubstr("norm: 0 is not"));
}

TEST_F(ModelSpecTest, RefusesHostileInput) {
  EXPECT_THAT(std::string(Parse(std::string(2 << 20, 'a')).status().message()),
              HasSubstr("at most 1048576"));
  for (const char* deep : {"[", "{a: ", "- "}) {
    std::string yaml;
    for (int i = 0; i < 5000; ++i) yaml += deep;
    EXPECT_THAT(std::string(Parse(yaml).status().message()), HasSubstr("nests deeper"));
  }
  EXPECT_FALSE(Parse("").ok());
  EXPECT_FALSE(Parse("hello").ok());
  EXPECT_FALSE(Parse("a: &x [*x, *x]").ok());
}

TEST_F(ModelSpecTest, NamesAMissingVocabularyFile) {
  EXPECT_THAT(ErrorAfter("numeric: x", "vocabulary: x, file: none.txt"),
              testing::AllOf(HasSubstr("columns.x"), HasSubstr("specs/none.txt")));
}

}  // namespace
}  // namespace muster::model
