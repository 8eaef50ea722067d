#include "muster/model/keras/exported_saved_model.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "muster/formats/bundle.h"
#include "muster/io/copy.h"
#include "muster/model/keras/export_folder.h"

namespace muster::model {
namespace {

using engine::tensorflow::KerasExport;
using engine::tensorflow::KerasVariable;
using formats::BundleReader;
using formats::BundleWriter;

constexpr const char* kServing = "before_training";
constexpr const char* kOldServing = "serving";  // the folder's name in older exports
constexpr const char* kVariables = "variables";
constexpr const char* kFingerprint = "fingerprint.pb";

std::string GetKey(size_t variable) {
  return StrCat("vars/", variable, "/.ATTRIBUTES/VARIABLE_VALUE");
}

std::string BundleIn(const std::string& saved_model) {
  return io::JoinPath(io::JoinPath(saved_model, kVariables), kVariables);
}

// The weights to be written, by their keys in the bundle.
using Trained = std::map<std::string, engine::VariableView, std::less<>>;

absl::StatusOr<Trained> MatchWeights(const KerasExport& model,
                                     std::span<const engine::VariableSpec> variables,
                                     std::span<const engine::VariableView> weights) {
  if (variables.size() != weights.size()) {
    return absl::InvalidArgumentError(
        StrCat(weights.size(), " weights were given for ", variables.size(), " variables"));
  }
  std::map<std::string_view, engine::VariableView> by_name;
  for (size_t i = 0; i < variables.size(); ++i) by_name[variables[i].name] = weights[i];
  Trained trained;
  for (size_t i = 0; i < model.variables.size(); ++i) {
    const KerasVariable& variable = model.variables[i];
    const auto given = by_name.extract(variable.name);
    if (given.empty()) {
      if (variable.constant() || variable.kind == KerasVariable::Kind::kSeed) continue;
      return absl::InvalidArgumentError(StrCat("there are no weights for '", variable.name,
                                               "', which ", model.folder, " trains"));
    }
    const engine::VariableView& view = given.mapped();
    if (variable.type != formats::DataType::kFloat ||
        view.rows * view.cols != formats::ElementCount(variable.shape)) {
      return absl::InvalidArgumentError(
          StrCat("the weights of '", variable.name, "' are ", view.rows, " x ", view.cols,
                 " of float32, but in ", model.folder, " it has ",
                 formats::ElementCount(variable.shape).value_or(0), " elements of ",
                 formats::DataTypeName(variable.type)));
    }
    trained.emplace(GetKey(i), view);
  }
  if (by_name.empty()) return trained;
  return absl::InvalidArgumentError(
      StrCat(model.folder, " has no variable '", by_name.begin()->first, "'"));
}

// The template must match the manifest, so that no value is written under another variable's key.
absl::Status CheckTemplate(const KerasExport& model, const BundleReader& initial,
                           const std::string& serving) {
  for (size_t i = 0; i < model.variables.size(); ++i) {
    const KerasVariable& variable = model.variables[i];
    const auto found = initial.tensors().find(GetKey(i));
    if (found != initial.tensors().end() && found->second.type == variable.type &&
        found->second.shape == variable.shape) {
      continue;
    }
    return absl::DataLossError(StrCat(
        BundleIn(serving), ": ", GetKey(i),
        found == initial.tensors().end() ? " is missing" : " has another type or shape",
        "; it belongs to '", variable.name, "' of ", model.folder, ": export the model again"));
  }
  return absl::OkStatus();
}

absl::Status CopyTensor(const BundleReader& from, const std::string& name,
                        const formats::TensorInfo& info, BundleWriter& to) {
  if (info.type == formats::DataType::kString) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> values, from.ReadStrings(name));
    return to.AddStrings(name, info.shape, values);
  }
  std::vector<char> bytes(info.bytes);
  MUSTER_RETURN_IF_ERROR(from.Read(name, bytes));
  return to.Add(name, info.type, info.shape, {bytes.data(), bytes.size()});
}

absl::Status WriteTrained(io::FileSystem& files, const BundleReader& initial,
                          const Trained& trained, std::optional<int64_t> step,
                          const std::string& prefix) {
  MUSTER_ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(files, prefix));
  for (const auto& [name, info] : initial.tensors()) {
    const auto found = trained.find(name);
    const absl::Status written =
        found == trained.end()
            ? CopyTensor(initial, name, info, *writer)
            : writer->Add(name, info.type, info.shape,
                          {reinterpret_cast<const char*>(found->second.data), info.bytes});
    MUSTER_RETURN_IF_ERROR(written);
  }
  if (step && !initial.tensors().contains("global_step")) {
    MUSTER_RETURN_IF_ERROR(writer->Add("global_step", formats::DataType::kInt64, {},
                                       {reinterpret_cast<const char*>(&*step), sizeof *step}));
  }
  return writer->Finish();
}

}  // namespace

absl::Status ExportServing(io::FileSystem& files, const KerasExport& model,
                           std::span<const engine::VariableSpec> variables,
                           std::span<const engine::VariableView> weights, const std::string& folder,
                           std::optional<int64_t> step) {
  return WriteExportFolder(files, folder, [&](const std::string& temporary) -> absl::Status {
    const std::string old = io::JoinPath(model.folder, kOldServing);
    const std::string serving = files.Stat(old).ok() ? old : io::JoinPath(model.folder, kServing);
    MUSTER_ASSIGN_OR_RETURN(const Trained trained, MatchWeights(model, variables, weights));
    MUSTER_ASSIGN_OR_RETURN(const auto initial, BundleReader::Open(files, BundleIn(serving)));
    MUSTER_RETURN_IF_ERROR(CheckTemplate(model, *initial, serving));
    MUSTER_RETURN_IF_ERROR(io::CopyFolder(files, serving, temporary, [](std::string_view path) {
      return path == kFingerprint || path.starts_with(StrCat(kVariables, "/"));
    }));
    return WriteTrained(files, *initial, trained, step, BundleIn(temporary));
  });
}

std::string ServingKey(const KerasExport& model, std::string_view variable) {
  for (size_t i = 0; i < model.variables.size(); ++i) {
    if (model.variables[i].name == variable) return GetKey(i);
  }
  return std::string(variable);
}

}  // namespace muster::model
