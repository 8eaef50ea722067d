#include "muster/engine/tensorflow/keras_export.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"

#include "muster/base/crc32c.h"
#include "muster/engine/tensorflow/keras_signature.h"

namespace muster::engine::tensorflow {
namespace {

using formats::Json;
using formats::JsonFields;
using Kind = KerasVariable::Kind;

constexpr const char* kManifestName = "model.json";
constexpr const char* kFormat = "muster.keras";
constexpr int64_t kManifestVersion = 1;
constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;
constexpr int64_t kMaxSize = int64_t{1} << 40;
constexpr size_t kMaxRank = 16;
constexpr size_t kMaxParts = 100'000;  // variables, lookups, inputs...
constexpr int kLastType = 23;          // the last of TensorFlow's type numbers that can be fed

std::optional<formats::DataType> TypeNamed(std::string_view name) {
  for (int i = 1; i <= kLastType; ++i) {
    const auto type = static_cast<formats::DataType>(i);
    const bool known = type == formats::DataType::kString || formats::DataTypeBytes(type) > 0;
    if (known && formats::DataTypeName(type) == name) return type;
  }
  return std::nullopt;
}

formats::DataType ReadType(JsonFields& fields) {
  const std::string name = fields.Text("dtype");
  const std::optional<formats::DataType> type = TypeNamed(name);
  if (!type) fields.Fail(StrCat("\"dtype\" is \"", name, "\", which is no TensorFlow type"));
  return type.value_or(formats::DataType::kFloat);
}

std::vector<int64_t> ReadShape(JsonFields& fields, bool any_size) {
  std::vector<int64_t> shape;
  if (!fields.Has("shape")) fields.Fail("\"shape\" is missing");
  for (const Json& size : fields.List("shape")) {
    if (any_size && size.is_null()) {
      shape.push_back(kAnySize);
      continue;
    }
    const bool good = size.is_number_integer() &&
                      (!size.is_number_unsigned() || size.get<uint64_t>() <= uint64_t{kMaxSize});
    if (!good || size.get<int64_t>() < 0 || size.get<int64_t>() > kMaxSize ||
        shape.size() == kMaxRank) {
      fields.Fail(StrCat("\"shape\" must be up to ", kMaxRank, " sizes from 0 to ", kMaxSize,
                         any_size ? " or null" : ""));
      return {};
    }
    shape.push_back(size.get<int64_t>());
  }
  std::vector<int64_t> known = shape;
  std::replace(known.begin(), known.end(), kAnySize, int64_t{1});
  const std::optional<int64_t> elements = formats::ElementCount(known);
  if (!elements || *elements > kMaxSize) fields.Fail("\"shape\" has too many elements");
  return shape;
}

KerasColumn ReadColumn(JsonFields& fields) {
  KerasColumn column;
  column.name = fields.Text("name");
  column.feature = fields.Text("feature");
  column.type = ReadType(fields);
  column.shape = ReadShape(fields, true);
  column.decode = fields.Text("decode");
  if (column.name.empty()) fields.Fail("\"name\" is missing");
  return column;
}

KerasVariable ReadVariable(JsonFields& fields) {
  static constexpr std::pair<std::string_view, Kind> kKinds[] = {{"dense", Kind::kDense},
                                                                 {"table", Kind::kTable},
                                                                 {"state", Kind::kState},
                                                                 {"seed", Kind::kSeed}};
  KerasVariable variable;
  variable.name = fields.Text("name");
  variable.type = ReadType(fields);
  variable.shape = ReadShape(fields, false);
  variable.trainable = fields.Bool("trainable", false);
  const std::string kind = fields.Text("kind");
  const auto* const found =
      std::ranges::find(kKinds, kind, &std::pair<std::string_view, Kind>::first);
  if (found == std::end(kKinds)) {
    fields.Fail(StrCat("\"kind\" is \"", kind, "\": must be dense, table, state or seed"));
    return variable;
  }
  variable.kind = found->second;
  const bool floats = variable.type == formats::DataType::kFloat;
  if (variable.name.empty()) fields.Fail("\"name\" is missing");
  if (variable.trainable && (variable.kind == Kind::kState || variable.kind == Kind::kSeed)) {
    fields.Fail(StrCat("a ", kind, " is not trainable"));
  }
  if (!floats &&
      (variable.trainable || variable.kind == Kind::kTable || variable.kind == Kind::kState)) {
    fields.Fail(StrCat("\"dtype\" is ", formats::DataTypeName(variable.type),
                       ": trained variables, tables and states must be float32"));
  }
  if (variable.kind == Kind::kTable && variable.shape.size() != 2) {
    fields.Fail("\"shape\" of a table must be rows and columns");
  }
  if (variable.kind == Kind::kTable && fields.status().ok() && variable.shape[0] > INT32_MAX) {
    fields.Fail(StrCat("a table of ", variable.shape[0],
                       " rows is too large: at most 2^31 - 1 can be trained"));
  }
  const bool seed_fits =
      variable.type == formats::DataType::kInt64 && variable.shape == std::vector<int64_t>{2};
  if (variable.kind == Kind::kSeed && !seed_fits) {
    fields.Fail("a seed must be two numbers of int64");
  }
  return variable;
}

// Calls read(fields) for each object of a list, whose names must differ.
template <typename Read>
void ReadList(JsonFields& parent, const char* name, const Read& read) {
  const Json& list = parent.List(name);
  if (list.size() > kMaxParts) parent.Fail(StrCat("\"", name, "\" has more than ", kMaxParts));
  std::set<std::string, std::less<>> names;
  for (size_t i = 0; i < list.size() && parent.status().ok(); ++i) {
    JsonFields fields(list[i], StrCat(parent.where(), ".", name, "[", i, "]"));
    const std::string called = read(fields);
    if (!called.empty() && !names.insert(called).second) {
      fields.Fail(StrCat("there are two with the name ", called));
    }
    parent.Update(fields.status());
  }
}

void ReadColumns(JsonFields& parent, const char* name, std::vector<KerasColumn>* columns) {
  ReadList(parent, name,
           [&](JsonFields& fields) { return columns->emplace_back(ReadColumn(fields)).name; });
}

void ReadLookup(JsonFields& fields, size_t number, KerasExport* model) {
  KerasLookup lookup;
  lookup.table = static_cast<int>(
      fields.Int("table", -1, 0, static_cast<int64_t>(model->variables.size()) - 1));
  if (!fields.status().ok()) return;
  if (lookup.table < 0 ||
      model->variables[static_cast<size_t>(lookup.table)].kind != Kind::kTable) {
    fields.Fail("\"table\" must be the index of a variable that is a table");
    return;
  }
  lookup.shape = ReadShape(fields, true);
  const std::string argument = fields.Text("argument", StrCat("ids_", number));
  if (argument != StrCat("ids_", number)) {
    fields.Fail(StrCat("\"argument\" must be \"ids_", number, "\""));
  }
  JsonFields source(fields.Object("source"), StrCat(fields.where(), ".source"));
  const std::string input = source.Text("input"), label = source.Text("label");
  if (!label.empty()) {
    const auto found = std::ranges::find(model->labels, label, &KerasColumn::name);
    if (found == model->labels.end()) {
      source.Fail(StrCat("there is no label ", label));
    } else if (found->type == formats::DataType::kString) {
      source.Fail(StrCat("label ", label, " has strings, which cannot be ids"));
    }
    lookup.label = static_cast<int>(found - model->labels.begin());
  } else if (!input.empty()) {
    const auto found = std::ranges::find(model->inputs, input, &KerasColumn::name);
    if (found == model->inputs.end()) {
      source.Fail(StrCat("there is no input ", input));
    } else if (found->type == formats::DataType::kString) {
      source.Fail(StrCat("input ", input, " has strings, which cannot be ids"));
    }
    lookup.input = static_cast<int>(found - model->inputs.begin());
  } else if (source.Text("computed").empty()) {
    source.Fail("must have \"input\", \"label\" or \"computed\"");
  }
  fields.Update(source.status());
  model->lookups.push_back(std::move(lookup));
}

void ReadMetrics(JsonFields& parent, KerasExport* model) {
  ReadList(parent, "metrics", [&](JsonFields& fields) {
    KerasMetric& metric = model->metrics.emplace_back();
    metric.name = fields.Text("name");
    metric.result = fields.Text("result");
    ReadList(fields, "states", [&](JsonFields& state) {
      metric.states.push_back({state.Text("name"), ReadShape(state, false)});
      return metric.states.back().name;
    });
    return metric.name;
  });
}

// The slots must be named slot_000, slot_001 and so on, in this order.
void ReadSlots(JsonFields& optimizer, KerasExport* model) {
  ReadList(optimizer, "slots", [&](JsonFields& fields) {
    const size_t number = model->slots.size();
    KerasSlot& slot = model->slots.emplace_back();
    slot.name = fields.Text("name");
    slot.type = ReadType(fields);
    slot.shape = ReadShape(fields, false);
    if (slot.name != SlotName(number)) {
      fields.Fail(StrCat("\"name\" must be \"", SlotName(number), "\""));
    }
    if (formats::DataTypeBytes(slot.type) == 0) {
      fields.Fail(StrCat("\"dtype\" is ", formats::DataTypeName(slot.type),
                         ": a slot of an optimizer must hold numbers"));
    }
    return slot.name;
  });
}

void ReadOptimizer(JsonFields& parent, KerasExport* model) {
  model->optimizer = parent.Object("optimizer");
  const std::string where = StrCat(parent.where(), ".optimizer");
  JsonFields optimizer(model->optimizer, where);
  JsonFields clip(optimizer.Object("clip"), StrCat(where, ".clip"));
  model->clip_value = clip.Number("clipvalue", 0);
  if (clip.Has("clipvalue") && model->clip_value <= 0) {
    clip.Fail("\"clipvalue\" must be above 0");
  }
  model->optimizer_name = optimizer.Text("name");
  model->applies = optimizer.Bool("apply", false);
  if (model->applies) ReadSlots(optimizer, model);
  const auto rate = model->optimizer.find("learning_rate");
  model->rate_is_function =
      rate != model->optimizer.end() && rate->is_object() && rate->contains("signature");
  parent.Update(optimizer.status());
  parent.Update(clip.status());
}

}  // namespace

std::string SlotName(size_t number) { return absl::StrFormat("slot_%03d", number); }

const KerasSignature* KerasExport::Find(std::string_view signature) const {
  const auto found = signatures.find(signature);
  return found == signatures.end() ? nullptr : &found->second;
}

absl::StatusOr<KerasExport> ParseKerasExport(std::string_view text, const std::string& where) {
  MUSTER_ASSIGN_OR_RETURN(const Json json, formats::ParseJsonObject(text, where));
  JsonFields fields(json, where);
  if (fields.Text("format") != kFormat) {
    fields.Fail(StrCat("\"format\" is not \"", kFormat,
                       "\": this is no export of "
                       "muster.keras.export"));
  }
  const int64_t version = fields.Int("version", 0, 1, INT32_MAX);
  MUSTER_RETURN_IF_ERROR(fields.status());
  if (version > kManifestVersion) {
    return absl::FailedPreconditionError(
        StrCat(where, ": it has version ", version, ", but this muster knows ", kManifestVersion,
               ": use the muster that it was exported with, or a newer one"));
  }
  KerasExport model;
  model.tensorflow_version = fields.Text("tensorflow");
  model.keras_version = fields.Text("keras");
  JsonFields about(fields.Object("model"), StrCat(where, ".model"));
  model.model_name = about.Text("name");
  ReadColumns(fields, "inputs", &model.inputs);
  ReadColumns(fields, "labels", &model.labels);
  ReadColumns(fields, "predictions", &model.predictions);
  if (fields.Has("sample_weight")) {
    JsonFields weight(fields.Object("sample_weight"), StrCat(where, ".sample_weight"));
    model.sample_weight = ReadColumn(weight);
    fields.Update(weight.status());
  }
  if (fields.Has("key")) {
    JsonFields key(fields.Object("key"), StrCat(where, ".key"));
    model.key = ReadColumn(key);
    if (!model.key->shape.empty() || !model.key->decode.empty()) {
      key.Fail("a key must be one value per row and must not be decoded");
    }
    fields.Update(key.status());
  }
  ReadList(fields, "variables",
           [&](JsonFields& each) { return model.variables.emplace_back(ReadVariable(each)).name; });
  ReadList(fields, "lookups", [&](JsonFields& each) {
    ReadLookup(each, model.lookups.size(), &model);
    return std::string();
  });
  ReadMetrics(fields, &model);
  JsonFields loss(fields.Object("loss"), StrCat(where, ".loss"));
  model.loss = loss.Text("name");
  model.loss_is_separable = loss.Bool("separable", true);
  ReadOptimizer(fields, &model);
  for (const absl::Status& status : {about.status(), loss.status(), fields.status()}) {
    MUSTER_RETURN_IF_ERROR(status);
  }
  const Json& signatures = fields.Object("signatures");
  MUSTER_RETURN_IF_ERROR(fields.status());
  MUSTER_RETURN_IF_ERROR(ReadSignatures(signatures, StrCat(where, ".signatures"), &model));
  // In older exports, which do not say so, a loss that is a sum takes no denominator.
  const auto& inputs = model.Find("step")->inputs;
  const bool is_mean = std::ranges::any_of(
      inputs, [](const KerasPort& port) { return port.role == KerasPort::Role::kDenominator; });
  model.evaluates_by_batch =
      fields.Bool("evaluates_by_batch", !model.loss_is_separable || !is_mean);
  MUSTER_RETURN_IF_ERROR(fields.status());
  return model;
}

absl::StatusOr<KerasExport> OpenKerasExport(io::FileSystem& files, const std::string& folder) {
  const std::string path = io::JoinPath(folder, kManifestName);
  const absl::StatusOr<std::string> text = io::ReadFile(files, path, kMaxManifestBytes);
  if (absl::IsNotFound(text.status()) && files.Stat(io::JoinPath(folder, "saved_model.pb")).ok()) {
    return absl::NotFoundError(
        StrCat(folder, " is a SavedModel, which can predict but has no function for a ",
               "training step: export the Keras model in Python with muster.keras.export(model, "
               "optimizer, loss, path)"));
  }
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(StrCat(folder, " has no ", kManifestName,
                                      ": it is no exported Keras model; give a model file, as "
                                      "muster init writes one, or the folder that "
                                      "muster.keras.export(model, ...) has made in Python"));
  }
  MUSTER_RETURN_IF_ERROR(text.status());
  MUSTER_ASSIGN_OR_RETURN(KerasExport model, ParseKerasExport(*text, path));
  model.folder = folder;
  model.checksum = Crc32c(*text);
  return model;
}

}  // namespace muster::engine::tensorflow
