// usage: muster-tensorflow-serving EXPORT WEIGHTS FOLDER
//
// Writes an exported Keras model with the weights of the bundle WEIGHTS (keys: the names of the
// variables) as a SavedModel to FOLDER.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "muster/engine/tensorflow/keras_export.h"
#include "muster/formats/bundle.h"
#include "muster/io/local_file_system.h"
#include "muster/model/keras/exported_saved_model.h"

namespace {

using muster::engine::VariableSpec;
using muster::engine::VariableView;
using muster::engine::tensorflow::KerasVariable;
using muster::formats::BundleReader;

absl::Status Serve(const std::string& folder, const std::string& weights, const std::string& out) {
  const auto files = muster::io::NewLocalFileSystem();
  MUSTER_ASSIGN_OR_RETURN(const auto model,
                          muster::engine::tensorflow::OpenKerasExport(*files, folder));
  MUSTER_ASSIGN_OR_RETURN(const auto bundle, BundleReader::Open(*files, weights));
  std::vector<VariableSpec> specs;
  std::vector<std::vector<float>> memory;
  std::vector<VariableView> views;
  for (const KerasVariable& variable : model.variables) {
    if (variable.constant() || variable.kind == KerasVariable::Kind::kSeed) continue;
    const VariableSpec& spec = specs.emplace_back(
        VariableSpec{.name = variable.name, .shape = variable.shape, .initializer = {}});
    std::vector<float>& values = memory.emplace_back(static_cast<size_t>(spec.elements()));
    MUSTER_RETURN_IF_ERROR(
        bundle->Read(spec.name, {reinterpret_cast<char*>(values.data()), values.size() * 4}));
    views.push_back({values.data(), std::ssize(values), 1});
  }
  return muster::model::ExportServing(*files, model, specs, views, out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: muster-tensorflow-serving EXPORT WEIGHTS FOLDER\n", stderr);
    return 2;
  }
  const absl::Status status = Serve(argv[1], argv[2], argv[3]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}
