#include "muster/model/saved_model/saved_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "muster/formats/bundle.h"
#include "muster/formats/graph_def_test_util.h"
#include "muster/io/fault_file_system.h"
#include "muster/io/local_file_system.h"
#include "muster/io/memory_file_system.h"
#include "muster/model/model.h"

namespace muster::model {
namespace {

using formats::FirstBytes;
using formats::GetBytes;
using formats::MapEntry;
using formats::MapKeys;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// Field numbers of MetaGraphDef and NodeDef.
constexpr int kMetaGraph = 2, kMetaSignature = 5, kMetaAsset = 6;
constexpr int kNodeName = 1, kNodeOp = 2, kNodeInput = 3, kNodeAttr = 5;

// A model of testdata/every_column.yaml, all of whose weights differ.
class SavedModelTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto local = io::NewLocalFileSystem();
    auto spec = LoadModelSpec(*local, io::JoinPath(MUSTER_TESTDATA, "every_column.yaml"));
    ASSERT_TRUE(spec.ok()) << spec.status();
    auto model = BuildModel(*spec);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = std::make_unique<Model>(*std::move(model));
    for (const engine::VariableSpec& variable : Variables()) {
      std::vector<float> values(static_cast<size_t>(variable.elements()));
      for (float& value : values) value = 0.25F * static_cast<float>(++count_);
      weights_.push_back(std::move(values));
      const int64_t rows = variable.shape[0];
      views_.push_back({weights_.back().data(), rows, variable.elements() / rows});
    }
  }

  std::span<const engine::VariableSpec> Variables() const { return model_->engine->variables(); }

  absl::Status Export(io::FileSystem& files, const std::string& folder) {
    return ExportSavedModel(files, model_->spec, Variables(), views_, folder);
  }

  // Returns the MetaGraphDef of an export into memory.
  std::string ExportedGraph() {
    EXPECT_TRUE(Export(*files_, "model").ok());
    const auto bytes = io::ReadFile(*files_, "model/saved_model.pb");
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return FirstBytes(*bytes, 2);
  }

  std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
  std::unique_ptr<Model> model_;
  std::vector<std::vector<float>> weights_;
  std::vector<engine::VariableView> views_;
  int count_ = 0;
};

TEST_F(SavedModelTest, WritesGraphVariablesAndAssets) {
  const absl::Status status = Export(*files_, "exports/1");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(*files_->List("exports"), ElementsAre("1"));
  EXPECT_THAT(*files_->List("exports/1"), ElementsAre("assets", "saved_model.pb", "variables"));
  EXPECT_THAT(*files_->List("exports/1/variables"),
              ElementsAre("variables.data-00000-of-00001", "variables.index"));
  EXPECT_EQ(*io::ReadFile(*files_, "exports/1/assets/cities.txt"), "Oslo\nKöln\na\tb\nParis\n");
}

TEST_F(SavedModelTest, BundleHasEveryVariable) {
  ASSERT_TRUE(Export(*files_, "model").ok());
  const auto bundle = formats::BundleReader::Open(*files_, "model/variables/variables");
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ((*bundle)->tensors().size(), Variables().size());
  for (size_t i = 0; i < Variables().size(); ++i) {
    const engine::VariableSpec& variable = Variables()[i];
    ASSERT_TRUE((*bundle)->tensors().contains(variable.name)) << variable.name;
    EXPECT_EQ((*bundle)->tensors().at(variable.name).shape, variable.shape) << variable.name;
    std::string bytes(weights_[i].size() * sizeof(float), '\0');
    ASSERT_TRUE((*bundle)->Read(variable.name, bytes).ok()) << variable.name;
    EXPECT_EQ(std::memcmp(bytes.data(), weights_[i].data(), bytes.size()), 0) << variable.name;
  }
}

TEST_F(SavedModelTest, SignaturesHaveTheirInputsAndOutputs) {
  const std::string graph = ExportedGraph();
  EXPECT_THAT(MapKeys(graph, kMetaSignature),
              UnorderedElementsAre("serving_default", "predict", "classification", "regression"));
  const std::vector<std::string> predictions = {"logits",     "logistic", "probabilities",
                                                "class_ids",  "classes",  "all_class_ids",
                                                "all_classes"};
  const std::string serving = MapEntry(graph, kMetaSignature, "serving_default");
  EXPECT_THAT(MapKeys(serving, 2), testing::UnorderedElementsAreArray(predictions));
  // The label and the key are not among the inputs.
  EXPECT_THAT(MapKeys(serving, 1),
              UnorderedElementsAre("age", "income (€)", "visits", "city", "device", "plan", "day",
                                   "month", "zip-code", "tags", "codes", "tag (scores)",
                                   "code_counts", "share", "pixels", "levels", "track"));
  const std::string predict = MapEntry(graph, kMetaSignature, "predict");
  EXPECT_THAT(MapKeys(predict, 1), ElementsAre("examples"));
  EXPECT_THAT(MapKeys(predict, 2), testing::UnorderedElementsAreArray(predictions));
  const std::string classification = MapEntry(graph, kMetaSignature, "classification");
  EXPECT_THAT(MapKeys(classification, 1), ElementsAre("inputs"));
  EXPECT_THAT(MapKeys(classification, 2), UnorderedElementsAre("classes", "scores"));
  EXPECT_EQ(FirstBytes(classification, 3), "tensorflow/serving/classify");
  EXPECT_THAT(MapKeys(MapEntry(graph, kMetaSignature, "regression"), 2), ElementsAre("outputs"));
}

TEST_F(SavedModelTest, EveryInputOfANodeIsANode) {
  const std::vector<std::string> nodes = GetBytes(FirstBytes(ExportedGraph(), kMetaGraph), 1);
  std::map<std::string, std::string> ops;
  for (const std::string& node : nodes) {
    EXPECT_TRUE(ops.emplace(FirstBytes(node, kNodeName), FirstBytes(node, kNodeOp)).second)
        << FirstBytes(node, kNodeName);
  }
  for (const std::string& node : nodes) {
    for (std::string input : GetBytes(node, kNodeInput)) {
      if (input.starts_with('^')) input.erase(0, 1);
      EXPECT_TRUE(ops.contains(input.substr(0, input.find(':'))))
          << FirstBytes(node, kNodeName) << " has the unknown input " << input;
    }
  }
}

TEST_F(SavedModelTest, EveryVariableHasAHandleUnderItsName) {
  std::vector<std::string> handles;
  for (const std::string& node : GetBytes(FirstBytes(ExportedGraph(), kMetaGraph), 1)) {
    if (FirstBytes(node, kNodeOp) != "VarHandleOp") continue;
    handles.push_back(FirstBytes(MapEntry(node, kNodeAttr, "shared_name"), 2));
  }
  std::vector<std::string> names;
  for (const engine::VariableSpec& variable : Variables()) names.push_back(variable.name);
  EXPECT_THAT(handles, testing::UnorderedElementsAreArray(names));
}

TEST_F(SavedModelTest, VocabularyFilesAreSharedAssets) {
  const std::string graph = ExportedGraph();
  std::vector<std::string> filenames;
  for (const std::string& asset : GetBytes(graph, kMetaAsset)) {
    filenames.push_back(FirstBytes(asset, 2));
  }
  EXPECT_THAT(filenames, ElementsAre("cities.txt", "cities.txt"));
}

TEST_F(SavedModelTest, FilesOfOneNameWithDifferentWordsAreTwoAssets) {
  for (features::ColumnSpec& column : model_->spec.features.columns) {
    if (column.name == "city_file_oov") column.words[0] = "Bergen";
  }
  ASSERT_TRUE(Export(*files_, "model").ok());
  EXPECT_THAT(*files_->List("model/assets"), ElementsAre("1_cities.txt", "cities.txt"));
}

TEST_F(SavedModelTest, CrossesHaveTheirHashKey) {
  for (const std::string& node : GetBytes(FirstBytes(ExportedGraph(), kMetaGraph), 1)) {
    if (FirstBytes(node, kNodeName) != "columns/tags_x_codes/SparseCross") continue;
    const auto attr = [&](std::string_view name) {
      return formats::GetInt(MapEntry(node, kNodeAttr, name), 3);
    };
    EXPECT_EQ(attr("num_buckets"), 25);
    EXPECT_EQ(attr("hash_key"), 12345);
    EXPECT_EQ(attr("N"), 3);
    return;
  }
  FAIL() << "no such node";
}

TEST_F(SavedModelTest, ExportsOfOneModelAreTheSameBytes) {
  ASSERT_TRUE(Export(*files_, "a").ok());
  ASSERT_TRUE(Export(*files_, "b").ok());
  EXPECT_EQ(*io::ReadFile(*files_, "a/saved_model.pb"), *io::ReadFile(*files_, "b/saved_model.pb"));
}

TEST_F(SavedModelTest, RefusesAFolderThatExists) {
  ASSERT_TRUE(files_->MakeFolders("there").ok());
  const absl::Status status = Export(*files_, "there/");
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("there"));
  EXPECT_THAT(*files_->List("there"), ElementsAre());
}

TEST_F(SavedModelTest, RefusesVariablesOfAnotherModel) {
  std::vector<engine::VariableSpec> variables(Variables().begin(), Variables().end());
  variables.back().name = "other";
  absl::Status status = ExportSavedModel(*files_, model_->spec, variables, views_, "model");
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(Variables().back().name));

  variables.back() = Variables().back();
  variables.back().shape.insert(variables.back().shape.begin(), 1);
  status = ExportSavedModel(*files_, model_->spec, variables, views_, "model");
  EXPECT_THAT(status.message(), HasSubstr("shape"));

  views_.pop_back();
  status = Export(*files_, "model");
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::IsNotFound(files_->Stat("model").status()));
}

// Whatever fails, the folder is either complete or absent, and nothing else is left.
TEST_F(SavedModelTest, AFailureAtAnyChangeLeavesNothing) {
  io::FaultFileSystem counting(*files_);
  ASSERT_TRUE(Export(counting, "exports/0").ok());
  const absl::Status full = absl::ResourceExhaustedError("disk full");
  using enum io::FileOperation;
  int failures = 0;
  for (const auto operation : {kMakeFolders, kCreate, kWrite, kFlush, kSync, kClose, kRename}) {
    for (int64_t n = 1; n <= counting.count(operation); ++n) {
      const auto memory = io::NewMemoryFileSystem();
      io::FaultFileSystem faulty(*memory);
      faulty.FailNth(operation, n, full);
      const absl::Status status = Export(faulty, "exports/1");
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
      EXPECT_THAT(status.message(), HasSubstr("exports/1"));
      if (const auto names = memory->List("exports"); names.ok()) {
        EXPECT_THAT(*names, ElementsAre()) << static_cast<int>(operation) << " number " << n;
      }
      ++failures;
    }
  }
  EXPECT_GE(failures, 10);
}

}  // namespace
}  // namespace muster::model
