#include "muster/formats/graph_def.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "muster/formats/graph_def_test_util.h"

namespace muster::formats {
namespace {

using testing::ElementsAre;
using testing::SizeIs;
using testing::UnorderedElementsAre;

// Field numbers as TensorFlow's .proto files give them.
constexpr int kGraphNode = 1, kGraphVersions = 4;
constexpr int kNodeName = 1, kNodeOp = 2, kNodeInput = 3, kNodeAttr = 5;
constexpr int kAttrList = 1, kAttrInt = 3, kAttrBool = 5, kAttrType = 6, kAttrShape = 7;
constexpr int kAttrTensor = 8;

std::string OnlyNode(const GraphDefBuilder& graph) {
  const std::vector<std::string> nodes = GetBytes(graph.Encode(), kGraphNode);
  EXPECT_THAT(nodes, SizeIs(1));
  return nodes.empty() ? "" : nodes[0];
}

TEST(GraphDefTest, NodeHasNameOpInputsAndAttrs) {
  GraphDefBuilder graph;
  EXPECT_EQ(graph.Node("sum", "AddV2", {"a", "b:1", "^c"}, {TypeAttr("T", DataType::kInt64)}),
            "sum");
  const std::string node = OnlyNode(graph);
  EXPECT_EQ(FirstBytes(node, kNodeName), "sum");
  EXPECT_EQ(FirstBytes(node, kNodeOp), "AddV2");
  EXPECT_THAT(GetBytes(node, kNodeInput), ElementsAre("a", "b:1", "^c"));
  EXPECT_EQ(GetInt(MapEntry(node, kNodeAttr, "T"), kAttrType), 9);
}

TEST(GraphDefTest, NamesAreLegalAndUnique) {
  GraphDefBuilder graph;
  EXPECT_EQ(graph.Node("a b/ü-1", "NoOp", {}), "a_b/__-1");
  EXPECT_EQ(graph.Node("_hidden", "NoOp", {}), ".hidden");
  EXPECT_EQ(graph.Node("", "NoOp", {}), ".");
  EXPECT_EQ(graph.Node("x", "NoOp", {}), "x");
  EXPECT_EQ(graph.Node("x", "NoOp", {}), "x_1");
  EXPECT_EQ(graph.Node("x_1", "NoOp", {}), "x_1_1");
  EXPECT_EQ(graph.Node("x", "NoOp", {}), "x_2");
}

TEST(GraphDefTest, VersionsAreWritten) {
  const std::string versions = FirstBytes(GraphDefBuilder().Encode(), kGraphVersions);
  EXPECT_GE(GetInt(versions, 1), 1000);  // producer
  EXPECT_EQ(GetInt(versions, 2), 12);    // min_consumer
}

TEST(GraphDefTest, AttrsOfEveryKind) {
  EXPECT_EQ(GetInt(IntAttr("n", -7).value, kAttrInt), -7);
  EXPECT_EQ(GetInt(BoolAttr("b", true).value, kAttrBool), 1);
  EXPECT_EQ(GetInt(BoolAttr("b", false).value, kAttrBool), 0);
  EXPECT_EQ(FirstBytes(StringAttr("s", "text").value, 2), "text");

  const std::vector<std::string> dimensions =
      GetBytes(FirstBytes(ShapeAttr("shape", {-1, 3}).value, kAttrShape), 2);
  ASSERT_THAT(dimensions, SizeIs(2));
  EXPECT_EQ(GetInt(dimensions[0], 1), -1);
  EXPECT_EQ(GetInt(dimensions[1], 1), 3);

  const std::vector<DataType> types = {DataType::kString, DataType::kFloat};
  EXPECT_EQ(FirstBytes(FirstBytes(TypesAttr("t", types).value, kAttrList), 6), "\x07\x01");
  const std::vector<GraphShape> shapes = {{}, {2}};
  EXPECT_THAT(GetBytes(FirstBytes(ShapesAttr("s", shapes).value, kAttrList), 7), SizeIs(2));
  const std::vector<float> floats = {0.5F, -1.0F};
  EXPECT_EQ(FirstBytes(FirstBytes(FloatsAttr("f", floats).value, kAttrList), 4),
            std::string(reinterpret_cast<const char*>(floats.data()), 8));
}

// TensorFlow requires the `list` of a list attribute even if it is empty.
TEST(GraphDefTest, EmptyListAttrsAreWritten) {
  EXPECT_THAT(GetBytes(TypesAttr("t", {}).value, kAttrList), ElementsAre(""));
  EXPECT_THAT(GetBytes(ShapesAttr("t", {}).value, kAttrList), ElementsAre(""));
}

TEST(GraphDefTest, ConstsOfNumbersAndStrings) {
  GraphDefBuilder graph;
  const std::vector<int64_t> numbers = {1, -2};
  const std::vector<std::string> words = {"a", "", "c"};
  EXPECT_EQ(graph.Int64s("numbers", numbers, {2}), "numbers");
  EXPECT_EQ(graph.Strings("words", words, {3}), "words");
  EXPECT_EQ(graph.Bool("flag", true), "flag");
  const std::vector<std::string> nodes = GetBytes(graph.Encode(), kGraphNode);
  ASSERT_THAT(nodes, SizeIs(3));

  const auto tensor = [&](int i) {
    const std::string value = MapEntry(nodes[i], kNodeAttr, "value");
    return FirstBytes(value, kAttrTensor);
  };
  EXPECT_EQ(FirstBytes(nodes[0], kNodeOp), "Const");
  EXPECT_EQ(GetInt(MapEntry(nodes[0], kNodeAttr, "dtype"), kAttrType), 9);
  EXPECT_EQ(GetInt(tensor(0), 1), 9);
  const std::string content = FirstBytes(tensor(0), 4);
  ASSERT_THAT(content, SizeIs(16));
  EXPECT_EQ(std::memcmp(content.data(), numbers.data(), 16), 0);
  EXPECT_EQ(GetInt(tensor(1), 1), 7);
  EXPECT_THAT(GetBytes(tensor(1), 8), ElementsAre("a", "", "c"));
  EXPECT_EQ(GetInt(tensor(2), 1), 10);
  EXPECT_EQ(FirstBytes(tensor(2), 4), std::string(1, '\x01'));
}

TEST(GraphDefTest, SavedModelHasGraphSaverCollectionsSignatures) {
  MetaGraph meta;
  meta.tags = {"serve"};
  meta.graph = GraphDefBuilder().Encode();
  meta.saver_filename_tensor = "save/Const";
  meta.saver_save_tensor = "save/control_dependency:0";
  meta.saver_restore_op = "save/restore_all";
  meta.init_op = "init";
  meta.variables = {{"w", "w/Assign", "w/Read", "w/zeros", true},
                    {"mean", "mean/Assign", "mean/Read", "mean/zeros", false}};
  meta.signatures = {{"predict",
                      "tensorflow/serving/predict",
                      {{"x", "in", DataType::kString, {-1}}},
                      {{"y", "out:2", DataType::kFloat, {-1, 1}}}}};

  const std::string saved_model = EncodeSavedModel(meta);
  EXPECT_EQ(GetInt(saved_model, 1), 1);
  const std::string graph = FirstBytes(saved_model, 2);
  EXPECT_THAT(GetBytes(FirstBytes(graph, 1), 4), ElementsAre("serve"));
  EXPECT_EQ(FirstBytes(graph, 2), meta.graph);
  const std::string saver = FirstBytes(graph, 3);
  EXPECT_EQ(FirstBytes(saver, 1), "save/Const:0");
  EXPECT_EQ(FirstBytes(saver, 2), "save/control_dependency:0");
  EXPECT_EQ(FirstBytes(saver, 3), "save/restore_all");
  EXPECT_EQ(GetInt(saver, 7), 2);  // V2

  EXPECT_THAT(MapKeys(graph, 4), UnorderedElementsAre("variables", "trainable_variables",
                                                      "table_initializer", "saved_model_main_op"));
  const auto variables = GetBytes(FirstBytes(MapEntry(graph, 4, "variables"), 2), 1);
  ASSERT_THAT(variables, SizeIs(2));
  EXPECT_EQ(FirstBytes(variables[0], 1), "w:0");
  EXPECT_EQ(FirstBytes(variables[0], 2), "w/Assign");
  EXPECT_EQ(FirstBytes(variables[0], 3), "w/Read:0");
  EXPECT_EQ(GetInt(variables[0], 5), 1);
  EXPECT_THAT(GetBytes(FirstBytes(MapEntry(graph, 4, "trainable_variables"), 2), 1), SizeIs(1));
  EXPECT_THAT(GetBytes(FirstBytes(MapEntry(graph, 4, "saved_model_main_op"), 1), 1),
              ElementsAre("init"));

  const std::string signature = MapEntry(graph, 5, "predict");
  EXPECT_EQ(FirstBytes(signature, 3), "tensorflow/serving/predict");
  EXPECT_EQ(FirstBytes(MapEntry(signature, 1, "x"), 1), "in:0");
  const std::string output = MapEntry(signature, 2, "y");
  EXPECT_EQ(FirstBytes(output, 1), "out:2");
  EXPECT_EQ(GetInt(output, 2), 1);
  EXPECT_THAT(GetBytes(FirstBytes(output, 3), 2), SizeIs(2));
}

TEST(GraphDefTest, AssetsAreNamedWithTheirTensors) {
  MetaGraph meta;
  meta.init_op = "init";
  meta.assets = {{"path", "words.txt"}};
  const std::string graph = FirstBytes(EncodeSavedModel(meta), 2);
  EXPECT_THAT(GetBytes(FirstBytes(MapEntry(graph, 4, "asset_filepaths"), 1), 1),
              ElementsAre("path:0"));
  const std::string asset = FirstBytes(graph, 6);
  EXPECT_EQ(FirstBytes(FirstBytes(asset, 1), 1), "path:0");
  EXPECT_EQ(FirstBytes(asset, 2), "words.txt");
}

}  // namespace
}  // namespace muster::formats
