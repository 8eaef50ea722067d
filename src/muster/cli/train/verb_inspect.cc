#include <charconv>
#include <cstdio>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

#include "CLI/CLI.hpp"
#include "muster/checkpoint/checkpoint.h"
#include "muster/cli/common/format_flags.h"
#include "muster/cli/common/row_progress.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/train/feature_printer.h"
#include "muster/cli/train/model_flags.h"
#include "muster/cli/train/verbs.h"
#include "muster/engine/updater.h"
#include "muster/files/file_systems.h"
#include "muster/formats/schema_json.h"
#include "muster/model/model.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

struct InspectFlags {
  std::string path;
  FeaturePrinterOptions features;
  bool verify = false;
  bool inputs = false;
  bool json = false;
};

// A line or an object about one tensor or variable.
struct TensorLine {
  std::string name;
  std::string type;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
};

void PrintTensors(const std::vector<TensorLine>& lines, bool json) {
  size_t width = 0, shape_width = 0;
  for (const TensorLine& line : lines) {
    width = std::max(width, line.name.size());
    shape_width = std::max(shape_width, absl::StrJoin(line.shape, ", ").size());
  }
  for (const TensorLine& line : lines) {
    const std::string shape = absl::StrJoin(line.shape, ", ");
    if (json) {
      const nlohmann::ordered_json object = {
          {"name", line.name}, {"type", line.type}, {"shape", line.shape}, {"bytes", line.bytes}};
      // The names in a checkpoint may be any bytes.
      std::printf("%s\n",
                  object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    } else {
      std::printf("%-*s  %-7s  %-*s %12llu\n", static_cast<int>(width), line.name.c_str(),
                  line.type.c_str(), static_cast<int>(shape_width) + 2,
                  StrCat("[", shape, "]").c_str(), static_cast<unsigned long long>(line.bytes));
    }
  }
}

// Checks every checksum, and reports all that are wrong.
absl::Status VerifyCheckpoint(const formats::BundleReader& bundle, const std::string& prefix,
                              bool json) {
  std::vector<std::string> broken;
  size_t skipped = 0;
  RowProgress progress("verify", "tensors", json);
  uint64_t done = 0;
  for (const auto& [name, info] : bundle.tensors()) {
    progress.Update(done++, bundle.tensors().size());
    const absl::Status status = bundle.Verify(name);
    if (absl::IsUnimplemented(status)) {
      ++skipped;
    } else if (absl::IsDataLoss(status)) {
      broken.emplace_back(status.message());
    } else {
      MUSTER_RETURN_IF_ERROR(status);
    }
  }
  if (!broken.empty()) {
    return absl::DataLossError(StrCat("checkpoint ", prefix, ": ", broken.size(), " of ",
                                      bundle.tensors().size(),
                                      " tensors are broken: ", absl::StrJoin(broken, "; ")));
  }
  const size_t sound = bundle.tensors().size() - skipped;
  if (json) {
    const nlohmann::ordered_json object = {
        {"event", "verified"}, {"sound", sound}, {"skipped", skipped}};
    std::printf("%s\n", object.dump().c_str());
  } else {
    std::printf("all checksums are right: %zu tensors%s\n", sound,
                skipped > 0 ? StrCat(", ", skipped, " partitioned ones not checked").c_str() : "");
  }
  return absl::OkStatus();
}

absl::Status InspectCheckpoint(io::FileSystem& files, const std::string& prefix,
                               const InspectFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto bundle, formats::BundleReader::Open(files, prefix));
  std::vector<TensorLine> lines;
  uint64_t bytes = 0;
  for (const auto& [name, info] : bundle->tensors()) {
    lines.push_back({name, formats::DataTypeName(info.type), info.shape, info.bytes});
    bytes += info.bytes;
  }
  if (!flags.json) {
    std::printf("%s: %zu tensors, %llu bytes\n", prefix.c_str(), lines.size(),
                static_cast<unsigned long long>(bytes));
  }
  PrintTensors(lines, flags.json);
  return flags.verify ? VerifyCheckpoint(*bundle, prefix, flags.json) : absl::OkStatus();
}

absl::Status InspectSpec(const model::ModelSpec& spec, bool json) {
  MUSTER_ASSIGN_OR_RETURN(const model::Model model, model::BuildModel(spec));
  std::vector<TensorLine> lines;
  int64_t parameters = 0;
  for (const engine::VariableSpec& variable : model.engine->variables()) {
    lines.push_back({variable.name, "float32", variable.shape,
                     static_cast<uint64_t>(variable.elements()) * sizeof(float)});
    if (variable.kind != engine::VariableKind::kState) parameters += variable.elements();
  }
  if (!json) {
    std::printf("%zu inputs, %zu columns, %zu variables, %lld parameters\n",
                spec.features.schema.fields.size(), spec.features.columns.size(), lines.size(),
                static_cast<long long>(parameters));
    if (model.applies) {
      const engine::Updater& updater = *model.engine->updater();
      std::printf("optimizer %s, a function with %zu slots\n", updater.name().c_str(),
                  updater.slots().size());
    }
  }
  PrintTensors(lines, json);
  return absl::OkStatus();
}

// What a program must know to give a model its rows.
void PrintInputs(const features::FeatureSpec& features, bool json) {
  using formats::Json;
  Json inputs = Json::array();
  for (const formats::Field& field : features.schema.fields) {
    inputs.push_back(formats::DescribeField(field));
  }
  if (json) {
    const Json object = {{"inputs", inputs},
                         {"label", features.label.input},
                         {"weight", features.weight},
                         {"key", features.key}};
    std::printf("%s\n", formats::PrintJson(object).c_str());
    return;
  }
  for (const Json& input : inputs) {
    const std::string name = input["name"], type = input["type"];
    const std::string fallback =
        input.contains("default") ? ", default " + formats::PrintJson(input["default"]) : "";
    std::printf("%s  %s%s%s\n", name.c_str(), type.c_str(), input["list"] ? " list" : "",
                fallback.c_str());
  }
}

absl::Status RunInspect(const InspectFlags& flags) {
  const auto files = files::OpenFileSystems();
  const auto info = files->Stat(flags.path);
  const bool folder = info.ok() && info->is_folder;
  const std::string spec_path = folder ? io::JoinPath(flags.path, "model.yaml") : flags.path;
  const bool exported = folder && files->Stat(io::JoinPath(flags.path, "model.json")).ok();
  if (flags.inputs) {
    const bool saved = folder && !exported;
    MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec,
                            saved ? model::LoadSavedSpec(*files, flags.path)
                                  : model::LoadModelSpec(*files, flags.path));
    PrintInputs(spec.features, flags.json);
    return absl::OkStatus();
  }
  if (!flags.features.patterns.empty()) {
    if (exported) {
      return absl::InvalidArgumentError(
          StrCat("--features shows the columns of a model file; ", flags.path,
                 " is an exported model, which has none: see its model.json for its inputs"));
    }
    MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::LoadModelSpec(*files, spec_path));
    return PrintFeatures(*files, spec, flags.features);
  }
  if (exported) {
    MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::LoadModelSpec(*files, flags.path));
    return InspectSpec(spec, flags.json);
  }
  if (folder) {
    MUSTER_ASSIGN_OR_RETURN(const checkpoint::Found found,
                            checkpoint::FindLatest(*files, flags.path));
    if (!found.broken.empty()) {
      if (flags.verify) {
        return absl::DataLossError(
            StrCat("the newest checkpoint is broken: ", absl::StrJoin(found.broken, "; "),
                   "; put back a copy of it, or check the next older one: "
                   "muster inspect --verify ",
                   found.prefix));
      }
      std::fprintf(stderr, "warning: %s\n", checkpoint::DescribePassedOver(found).c_str());
    }
    return InspectCheckpoint(*files, found.prefix, flags);
  }
  if (files->Stat(flags.path + ".index").ok()) {
    return InspectCheckpoint(*files, flags.path, flags);
  }
  if (absl::EndsWith(flags.path, ".index")) {
    return InspectCheckpoint(*files, flags.path.substr(0, flags.path.size() - 6), flags);
  }
  if (flags.verify) {
    return absl::InvalidArgumentError(
        StrCat(flags.path, " is not a checkpoint: --verify needs a model folder or a prefix"));
  }
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::LoadModelSpec(*files, spec_path));
  return InspectSpec(spec, flags.json);
}

}  // namespace

void AddInspect(CLI::App& app) {
  const auto flags = std::make_shared<InspectFlags>();
  CLI::App* verb =
      app.add_subcommand("inspect", "Inspect a model file, a model folder or a checkpoint");
  verb->footer(
      "Examples:\n"
      "  muster inspect examples/titanic/titanic.yaml    # the variables it makes\n"
      "  muster inspect model                            # what its checkpoint holds\n"
      "  muster inspect model/model.ckpt-200 --verify    # and whether it is sound\n"
      "  muster inspect examples/titanic/titanic.yaml --features train.csv --limit 3");
  verb->add_option("path,--model-dir", flags->path,
                   "SPEC.yaml, a model folder, or a checkpoint prefix")
      ->required()
      ->type_name("PATH");
  verb->add_option("--features", flags->features.patterns,
                   "Show the floats and ids that the columns make of these rows")
      ->type_name("GLOB");
  AddFormatFlags(*verb, &flags->features.format);
  verb->add_option("--limit", flags->features.limit, "Rows of --features (default: all)")
      ->check(CLI::PositiveNumber);
  verb->add_flag("--inputs", flags->inputs,
                 "The inputs of a model file or model: names, types, defaults");
  verb->add_flag("--verify", flags->verify, "Check every checksum of a checkpoint");
  verb->add_flag("--json", flags->json, "One JSON object per line");
  verb->callback([flags] {
    flags->features.json = flags->json;
    FailUnlessOk(RunInspect(*flags));
  });
}

}  // namespace muster::cli
