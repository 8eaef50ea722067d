#include "muster/engine/tensorflow/keras_export.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/engine/tensorflow/test_model.h"

namespace muster::engine::tensorflow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(KerasExportTest, ReadsAManifest) {
  const auto model = ParseKerasExport(TestManifest(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->tensorflow_version, "2.21.0");
  EXPECT_EQ(model->model_name, "toy");
  ASSERT_EQ(model->inputs.size(), 2u);
  EXPECT_EQ(model->inputs[1].type, formats::DataType::kInt64);
  EXPECT_THAT(model->inputs[1].shape, ElementsAre(kAnySize));
  EXPECT_EQ(model->labels[0].feature, "fy");
  EXPECT_FALSE(model->sample_weight);
  ASSERT_EQ(model->variables.size(), 4u);
  EXPECT_EQ(model->variables[1].kind, KerasVariable::Kind::kTable);
  EXPECT_EQ(model->variables[3].kind, KerasVariable::Kind::kSeed);
  EXPECT_FALSE(model->variables[2].constant());
  ASSERT_EQ(model->lookups.size(), 1u);
  EXPECT_EQ(model->lookups[0].input, 1);
  const KerasSignature* const step = model->Find("step");
  ASSERT_NE(step, nullptr);
  ASSERT_EQ(step->inputs.size(), 6u);
  EXPECT_EQ(step->inputs[3].role, KerasPort::Role::kIds);
  EXPECT_EQ(step->outputs[2].role, KerasPort::Role::kGradient);
  EXPECT_EQ(step->outputs[5].role, KerasPort::Role::kState);
  EXPECT_EQ(step->outputs[5].index, 2);
  EXPECT_EQ(model->Find("ids"), nullptr);
  EXPECT_EQ(model->optimizer["name"], "SGD");
  EXPECT_EQ(model->clip_value, 0);
}

TEST(KerasExportTest, ALookupByALabelIsNotComputed) {
  const auto model = ParseKerasExport(LabelLookupManifest(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->lookups[0].label, 0);
  EXPECT_EQ(model->lookups[0].input, -1);
  EXPECT_FALSE(model->lookups[0].computed());
  const auto wrong = ParseKerasExport(
      Replaced(LabelLookupManifest(), R"({"label": "y"})", R"({"label": "z"})"), "m");
  EXPECT_THAT(wrong.status().message(), HasSubstr("there is no label z"));
}

TEST(KerasExportTest, OnlyPredictionsMayReadWholeTables) {
  const auto model = ParseKerasExport(WholeTableManifest(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->Find("predict")->inputs[1].role, KerasPort::Role::kWholeTable);
  EXPECT_EQ(model->Find("predict")->inputs[1].index, 1);
  const auto step = ParseKerasExport(
      Replaced(TestManifest(), R"("var_001": "table:0")", R"("whole_001": "table:0")"), "m");
  EXPECT_THAT(step.status().message(),
              HasSubstr("only predict and evaluate may read whole tables"));
  const auto dense = ParseKerasExport(
      Replaced(WholeTableManifest(), R"("whole_001": "table:0"}, "outputs": {"output_p")",
               R"("whole_000": "table:0"}, "outputs": {"output_p")"),
      "m");
  EXPECT_THAT(dense.status().message(),
              HasSubstr("\"whole_000\" refers to something that the manifest"));
}

// For a loss that is a sum or no mean over rows, `evaluate` agrees with Keras only for batches of
// the same size, whether the export says so or is older than that field.
TEST(KerasExportTest, SaysWhetherAnEvaluationDependsOnBatches) {
  const std::string separable = R"("separable": true)";
  EXPECT_FALSE(ParseKerasExport(TestManifest(), "m")->evaluates_by_batch);
  EXPECT_TRUE(ParseKerasExport(Replaced(TestManifest(), separable, R"("separable": false)"), "m")
                  ->evaluates_by_batch);
  EXPECT_TRUE(
      ParseKerasExport(Replaced(TestManifest(), R"("denominator": "denominator:0", )", ""), "m")
          ->evaluates_by_batch);
  EXPECT_TRUE(ParseKerasExport(Replaced(TestManifest(), R"("metrics": [])",
                                        R"("metrics": [], "evaluates_by_batch": true)"),
                               "m")
                  ->evaluates_by_batch);
}

TEST(KerasExportTest, ReadsAnOptimizerThatIsAFunction) {
  using Role = KerasPort::Role;
  const auto model = ParseKerasExport(FunctionManifest(), "m");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(model->applies);
  EXPECT_TRUE(model->rate_is_function);
  EXPECT_EQ(model->optimizer_name, "SGD");
  ASSERT_EQ(model->slots.size(), 2u);
  EXPECT_EQ(model->slots[0].type, formats::DataType::kInt64);
  EXPECT_THAT(model->slots[1].shape, ElementsAre(4));
  const KerasSignature* const apply = model->Find("apply");
  ASSERT_NE(apply, nullptr);
  std::vector<Role> roles;
  for (const KerasPort& port : apply->inputs) roles.push_back(port.role);
  EXPECT_THAT(roles,
              ElementsAre(Role::kGradient, Role::kRows, Role::kVariable, Role::kSlot, Role::kStep));
  EXPECT_EQ(apply->outputs[1].role, Role::kNewVariable);
  EXPECT_EQ(apply->outputs[3].index, 1);
  const auto plain = ParseKerasExport(TestManifest(), "m");
  EXPECT_FALSE(plain->applies);
  EXPECT_FALSE(plain->rate_is_function);
}

TEST(KerasExportTest, AFunctionMustComputeAllThatItReplaces) {
  const struct {
    const char *from, *to, *error;
  } cases[] = {
      {"\"apply\": {", "\"applied\": {", "apply: nothing computes the new value of variable 0"},
      {"\"new_var_001\": \"next_table:0\",", "", "the new value of variable 1, table"},
      {"\"new_slot_000\": \"next_count:0\",", "", "the new value of slot slot_000"},
      {"\"learning_rate\": \"rate:0\"", "", "learning_rate: nothing computes the learning rate"},
      {"\"grad_000\": \"given", "\"grad_002\": \"given",
       "\"grad_002\" refers to something that the manifest"},
      {"\"rows_001\": \"rows:0\"", "\"rows_000\": \"rows:0\"", "\"rows_000\" refers to something"},
      {"\"new_slot_001\"", "\"new_slot_002\"", "\"new_slot_002\" refers to something"},
      {"\"grad_000\": \"given", "\"input_x\": \"given", "\"input_x\" is unknown to"},
      {"\"new_002\"", "\"new_var_000\"", "\"new_var_000\" refers to something"},
      {"\"slot_001\", \"dtype\"", "\"slot_002\", \"dtype\"", "\"name\" must be \"slot_001\""},
      {"\"dtype\": \"int32\"", "\"dtype\": \"string\"",
       "slots[1]: \"dtype\" is string: a slot of an optimizer must hold numbers"},
  };
  for (const auto& one : cases) {
    const auto model = ParseKerasExport(Replaced(FunctionManifest(), one.from, one.to), "m");
    EXPECT_THAT(model.status().message(), HasSubstr(one.error)) << one.from;
  }
}

struct BadManifest {
  const char* from;
  const char* to;
  const char* error;
};

class BadManifestTest : public testing::TestWithParam<BadManifest> {};

TEST_P(BadManifestTest, NamesFileAndField) {
  std::string text = TestManifest();
  const size_t at = text.find(GetParam().from);
  ASSERT_NE(at, std::string::npos) << GetParam().from;
  text.replace(at, std::string(GetParam().from).size(), GetParam().to);
  const auto model = ParseKerasExport(text, "model.json");
  EXPECT_THAT(model.status().message(), HasSubstr(GetParam().error));
  EXPECT_THAT(model.status().message(), HasSubstr("model.json"));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadManifestTest,
    testing::Values(
        BadManifest{"\"muster.keras\"", "\"other\"", "no export of muster.keras.export"},
        BadManifest{"\"version\": 1", "\"version\": 2", "version 2, but this muster knows 1"},
        BadManifest{"\"version\": 1", "\"version\": 0", "\"version\" must be a whole number"},
        BadManifest{"\"metrics\": []}", "\"metrics\": [", "is not JSON"},
        BadManifest{"\"float32\", \"shape\": [2]", "\"float33\", \"shape\": [2]",
                    "inputs[0]: \"dtype\" is \"float33\""},
        BadManifest{"\"shape\": [2]", "\"shape\": [-2]", "inputs[0]: \"shape\" must be up to 16"},
        BadManifest{"\"shape\": [2]", "\"shape\": [18446744073709551615]", "inputs[0]: \"shape\""},
        BadManifest{"\"shape\": [2]", "\"shape\": [1099511627776, 1099511627776]",
                    "inputs[0]: \"shape\" has too many elements"},
        BadManifest{"\"shape\": [2]", "\"size\": [2]", "inputs[0]: \"shape\" is missing"},
        BadManifest{"\"name\": \"ids\"", "\"name\": \"x\"", "two with the name x"},
        BadManifest{"\"kind\": \"dense\"", "\"kind\": \"sparse\"",
                    "variables[0]: \"kind\" is \"sparse\""},
        BadManifest{"\"shape\": [2, 2]", "\"shape\": [null, 2]", "variables[0]: \"shape\""},
        BadManifest{"\"dtype\": \"float32\", \"shape\": [2, 2]",
                    "\"dtype\": \"float16\", \"shape\": [2, 2]", "must be float32"},
        BadManifest{"\"shape\": [5, 2]", "\"shape\": [10]", "must be rows and columns"},
        BadManifest{"\"shape\": [5, 2]", "\"shape\": [3000000000, 2]", "at most 2^31 - 1"},
        BadManifest{"\"kind\": \"seed\", \"dtype\": \"int64\", \"shape\": [2]",
                    "\"kind\": \"seed\", \"dtype\": \"int64\", \"shape\": [3]",
                    "variables[3]: a seed must be two numbers of int64"},
        BadManifest{"\"shape\": [2], \"trainable\": false", "\"shape\": [2], \"trainable\": true",
                    "a state is not trainable"},
        BadManifest{"\"table\": 1", "\"table\": 9", "lookups[0]: \"table\""},
        BadManifest{"\"table\": 1", "\"table\": 0", "variable that is a table"},
        BadManifest{"\"argument\": \"ids_0\"", "\"argument\": \"ids_1\"", "must be \"ids_0\""},
        BadManifest{"\"input\": \"ids\"", "\"input\": \"idx\"", "there is no input idx"},
        BadManifest{"\"input\": \"ids\"", "\"computed\": \"ids_0\"",
                    "nothing computes the ids of lookup 0"},
        BadManifest{"\"int64\", \"shape\": [null]", "\"string\", \"shape\": [null]",
                    "has strings, which cannot be ids"},
        BadManifest{"\"step\": {", "\"stop\": {", "there is no signature \"step\""},
        BadManifest{"\"var_003\"", "\"var_004\"",
                    "\"var_004\" refers to something that the manifest does not"},
        BadManifest{"\"var_003\"", "\"vax_003\"", "\"vax_003\" is unknown to this version"},
        BadManifest{"\"label_y\"", "\"label_z\"", "\"label_z\" refers to something"},
        BadManifest{"\"kernel:0\"", "7", "must be the name of a tensor"},
        BadManifest{"\"var_001\": \"table:0\"", "\"var_0000\": \"table:0\"", "is there twice"},
        BadManifest{"\"clip\": null", "\"clip\": {\"clipvalue\": -1}",
                    "optimizer.clip: \"clipvalue\" must be above 0"},
        BadManifest{"\"sample_weight\": null",
                    "\"key\": {\"name\": \"key\", \"feature\": \"id\", \"dtype\": \"int64\", "
                    "\"shape\": [2], \"decode\": null}",
                    "model.json.key: a key must be one value per row"},
        BadManifest{"\"clip\": null", "\"clip\": 1", "\"clip\" must be an object"},
        BadManifest{"\"loss\": \"loss:0\", ", "", "there is no \"loss\""},
        BadManifest{"\"grad_000\": \"kernel_gradient:0\",", "",
                    "there is no gradient of variable 0, kernel"},
        BadManifest{"\"rows_001\": \"table_rows:0\", ", "", "there is no \"rows\" of table 1"},
        BadManifest{"\"new_002\": \"new_mean:0\"", "\"data_loss\": \"new_mean:0\"",
                    "no new value of state 2, mean"}));

TEST(KerasExportTest, AFolderWithoutAnExportIsReported) {
  const ModelFolder folder;
  const auto files = io::NewLocalFileSystem();
  const auto model = OpenKerasExport(*files, folder.path());
  EXPECT_EQ(model.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(model.status().message(), HasSubstr("muster.keras.export(model, ...)"));
}

}  // namespace
}  // namespace muster::engine::tensorflow
