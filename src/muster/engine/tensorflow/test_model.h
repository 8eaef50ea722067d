// Shared by the tests of this layer: folders with exports that the fake TensorFlow understands.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "muster/engine/engine.h"
#include "muster/engine/tensorflow/tensorflow_engine.h"
#include "muster/io/local_file_system.h"

namespace muster::engine::tensorflow {

// A temporary folder, which is removed with the object.
class ModelFolder {
 public:
  ModelFolder() {
    std::string path = testing::TempDir() + "/muster_tensorflow_XXXXXX";
    path_ = mkdtemp(path.data());
    std::filesystem::create_directory(path_ + "/step");
  }
  ~ModelFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(File(name)) << text;
  }
  void WriteGraph(const std::string& text) const { Write("step/saved_model.pb", text); }

 private:
  std::string path_;
};

// Makes a spec that uses the fake TensorFlow.
inline HostSpec FakeHost(const ModelFolder& folder) {
  return {.library_folder = MUSTER_FAKE_TENSORFLOW,
          .saved_model = folder.File("step"),
          .config = SessionConfig(1, Executor::kSingleThreaded),
          .environment = process::CurrentEnvironment()};
}

// A model with a kernel, a table looked up twice by the input `ids`, and a state that is the seed.
// Gradients are the weights themselves, the loss is their sum.
inline const char* TestGraph() {
  return "feed kernel 1\nfeed table 1\nfeed mean 1\nfeed seed 9\nfeed x 1\nfeed ids_0 3\n"
         "feed denominator 1\nfeed label 1\nfeed names 7\n"
         "fetch loss sum kernel\nfetch data_loss sum denominator\nfetch kernel_gradient copy "
         "kernel\n"
         "fetch table_rows flat ids_0\nfetch table_gradient picked table ids_0\n"
         "fetch new_mean floats seed\nfetch prediction copy x\nfetch loss_sum sum label\n"
         "fetch read_names copy names\nfetch many zeros 100000\n"
         "fetch table_sum sum table\nfetch x_sum sum x\n";
}

inline std::string TestManifest() {
  return R"({"format": "muster.keras", "version": 1, "tensorflow": "2.21.0", "keras": "3.15.1",
 "model": {"name": "toy", "class": "Model"}, "config": null,
 "inputs": [{"name": "x", "feature": "fx", "dtype": "float32", "shape": [2], "decode": null},
            {"name": "ids", "feature": "fids", "dtype": "int64", "shape": [null], "decode": null}],
 "labels": [{"name": "y", "feature": "fy", "dtype": "float32", "shape": [], "decode": null}],
 "sample_weight": null,
 "variables": [
  {"name": "kernel", "kind": "dense", "dtype": "float32", "shape": [2, 2], "trainable": true},
  {"name": "table", "kind": "table", "dtype": "float32", "shape": [5, 2], "trainable": true},
  {"name": "mean", "kind": "state", "dtype": "float32", "shape": [2], "trainable": false},
  {"name": "seed", "kind": "seed", "dtype": "int64", "shape": [2], "trainable": false}],
 "lookups": [{"table": 1, "argument": "ids_0", "shape": [null], "source": {"input": "ids"}}],
 "predictions": [{"name": "p", "dtype": "float32", "shape": [2]}],
 "signatures": {
  "step": {"inputs": {"var_000": "kernel:0", "var_001": "table:0", "var_003": "seed:0",
                      "ids_0": "ids_0:0", "denominator": "denominator:0", "label_y": "label:0"},
           "outputs": {"loss": "loss:0", "data_loss": "data_loss:0", "grad_000": "kernel_gradient:0",
                       "rows_001": "table_rows:0", "grad_001": "table_gradient:0",
                       "new_002": "new_mean:0"}},
  "predict": {"inputs": {"input_x": "x:0"}, "outputs": {"output_p": "prediction:0"}},
  "evaluate": {"inputs": {"input_x": "x:0", "label_y": "label:0"},
               "outputs": {"output_p": "prediction:0", "loss_sum": "loss_sum:0"}}},
 "optimizer": {"name": "SGD", "rule": "keras", "learning_rate": 0.1, "momentum": 0.0,
               "nesterov": false, "clip": null, "weight_decay": null},
 "loss": {"name": "custom", "separable": true}, "metrics": []})";
}

// The same graph with an optimizer that is a function: the kernel becomes its gradient, the table
// stays, slot 0 becomes the step, slot 1 the four rows of the table's gradient. The learning rate
// is the step too.
inline std::string FunctionGraph() {
  return std::string(TestGraph()) +
         "feed given 1\nfeed rows 3\nfeed count 9\nfeed time 9\nfetch next_kernel copy given\n"
         "fetch next_table copy table\nfetch next_count copy time\nfetch seen flat rows\n"
         "fetch rate floats time\n";
}

inline std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// The label has the ids of the table.
inline std::string LabelLookupManifest() {
  const std::string manifest =
      Replaced(TestManifest(),
               R"({"name": "y", "feature": "fy", "dtype": "float32", "shape": [], "decode": null})",
               R"({"name": "y", "feature": "fy", "dtype": "int64", "shape": [], "decode": null})");
  return Replaced(
      Replaced(Replaced(manifest, R"("ids_0", "shape": [null], "source": {"input": "ids"})",
                        R"("ids_0", "shape": [], "source": {"label": "y"})"),
               R"("denominator": "denominator:0", "label_y": "label:0"},)",
               R"("denominator": "denominator:0"},)"),
      R"("evaluate": {"inputs": {"input_x": "x:0", "label_y": "label:0"},)",
      R"("evaluate": {"inputs": {"input_x": "x:0"},)");
}

// `predict` reads the whole table, and `evaluate` returns its sum as the loss.
inline std::string WholeTableManifest() {
  const std::string predicts =
      Replaced(TestManifest(), R"("predict": {"inputs": {"input_x": "x:0"}, "outputs")",
               R"("predict": {"inputs": {"input_x": "x:0", "whole_001": "table:0"}, "outputs")");
  return Replaced(Replaced(predicts, R"("label_y": "label:0"},
               "outputs": {"output_p")",
                           R"("label_y": "label:0", "whole_001": "table:0"},
               "outputs": {"output_p")"),
                  "loss_sum:0", "table_sum:0");
}

// `evaluate` returns the sum of x as the loss.
inline std::string ManifestWithoutLabels() {
  const std::string without = Replaced(
      TestManifest(),
      R"({"name": "y", "feature": "fy", "dtype": "float32", "shape": [], "decode": null})", "");
  return Replaced(Replaced(Replaced(without, R"(, "label_y": "label:0"},
           "outputs": {"loss")",
                                    R"(},
           "outputs": {"loss")"),
                           R"("input_x": "x:0", "label_y": "label:0")", R"("input_x": "x:0")"),
                  "loss_sum:0", "x_sum:0");
}

inline std::string FunctionManifest() {
  const std::string with_optimizer =
      Replaced(TestManifest(), R"("rule": "keras", "learning_rate": 0.1, "momentum": 0.0,)",
               R"("apply": true, "learning_rate": {"signature": "learning_rate"},
                  "slots": [{"name": "slot_000", "dtype": "int64", "shape": []},
                            {"name": "slot_001", "dtype": "int32", "shape": [4]}],)");
  return Replaced(with_optimizer, R"("predict": {)",
                  R"("apply": {"inputs": {"grad_000": "given:0", "rows_001": "rows:0",
                                          "var_001": "table:0", "slot_000": "count:0",
                                          "step": "time:0"},
                               "outputs": {"new_var_000": "next_kernel:0",
                                           "new_var_001": "next_table:0",
                                           "new_slot_000": "next_count:0",
                                           "new_slot_001": "seen:0"}},
                     "learning_rate": {"inputs": {"step": "time:0"},
                                       "outputs": {"learning_rate": "rate:0"}},
                     "predict": {)");
}

template <typename Number>
features::RawColumn GetNumbers(formats::DataType type, std::vector<int64_t> shape,
                               const std::vector<Number>& numbers) {
  features::RawColumn column{.type = type, .shape = std::move(shape)};
  const auto bytes = std::as_bytes(std::span(numbers));
  column.bytes.assign(bytes.begin(), bytes.end());
  return column;
}

// Makes a batch of two rows, each with half of `ids`.
inline features::FeatureBatch TestBatch(const std::vector<int64_t>& ids) {
  features::FeatureBatch batch;
  batch.rows = 2;
  batch.raw.push_back(GetNumbers<float>(formats::DataType::kFloat, {2}, {1, 2, 3, 4}));
  batch.raw.push_back(
      GetNumbers(formats::DataType::kInt64, {static_cast<int64_t>(ids.size()) / 2}, ids));
  batch.raw.push_back(GetNumbers<float>(formats::DataType::kFloat, {}, {1, 0.5f}));
  return batch;
}

}  // namespace muster::engine::tensorflow
