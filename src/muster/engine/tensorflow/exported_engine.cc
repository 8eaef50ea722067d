#include "muster/engine/tensorflow/exported_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"

#include "muster/engine/step_checks.h"
#include "muster/engine/tensorflow/find_tensorflow.h"
#include "muster/engine/tensorflow/raw_columns.h"

namespace muster::engine::tensorflow {
namespace {

using features::FeatureBatch;
using features::IdList;
using host::TensorPlace;
using Kind = KerasVariable::Kind;
using Role = KerasPort::Role;

// Returns the sizes of the metrics' states if the step gives all of them, else nothing.
std::vector<size_t> GetStepMetrics(const KerasExport& model) {
  std::vector<size_t> sizes;
  for (const KerasMetric& metric : model.metrics) {
    for (const KerasMetric::State& state : metric.states) {
      sizes.push_back(static_cast<size_t>(formats::ElementCount(state.shape).value_or(0)));
    }
  }
  const KerasSignature* const step = model.Find("step");
  const auto is_metric = [](const KerasPort& port) { return port.role == Role::kMetric; };
  const bool all = step != nullptr && std::ranges::count_if(step->outputs, is_metric) ==
                                          static_cast<int64_t>(sizes.size());
  return all ? sizes : std::vector<size_t>();
}

}  // namespace

ExportedEngine::ExportedEngine(io::FileSystem& files, KerasExport model, HostSpec host,
                               std::string tensorflow, std::span<const int> groups)
    : files_(files),
      model_(std::move(model)),
      host_spec_(std::move(host)),
      tensorflow_(std::move(tensorflow)) {
  std::vector<int> spec_of(model_.variables.size(), -1);
  for (size_t i = 0; i < model_.variables.size(); ++i) {
    const KerasVariable& variable = model_.variables[i];
    if (variable.constant() || variable.kind == Kind::kSeed) continue;
    spec_of[i] = static_cast<int>(specs_.size());
    exported_.push_back(static_cast<int>(i));
    specs_.push_back({.name = variable.name,
                      .kind = variable.kind == Kind::kTable   ? VariableKind::kTable
                              : variable.kind == Kind::kState ? VariableKind::kState
                                                              : VariableKind::kDense,
                      .shape = variable.shape,
                      .initializer = {},
                      .group = i < groups.size() ? groups[i] : 0});
  }
  for (const KerasSlot& slot : model_.slots) slots_.push_back({slot.name, slot.type, slot.shape});
  for (size_t k = 0; k < model_.lookups.size(); ++k) {
    const int spec = spec_of[static_cast<size_t>(model_.lookups[k].table)];
    if (spec >= 0) table_uses_.push_back({.variable = spec, .id_list = static_cast<int>(k)});
  }
  metric_sizes_ = GetStepMetrics(model_);
  if (!model_.predictions.empty() && model_.predictions[0].type == formats::DataType::kFloat) {
    const auto width = formats::ElementCount(model_.predictions[0].shape);
    if (width && *width <= INT32_MAX) logits_dimension_ = static_cast<int>(*width);
  }
}

uint64_t ExportedEngine::GetType(const KerasPort& port) const {
  const auto i = static_cast<size_t>(port.index);
  switch (port.role) {
    case Role::kVariable:
      return static_cast<uint64_t>(model_.variables[i].type);
    case Role::kInput:
      return static_cast<uint64_t>(model_.inputs[i].type);
    case Role::kLabel:
      return static_cast<uint64_t>(model_.labels[i].type);
    case Role::kSampleWeight:
      return model_.sample_weight ? static_cast<uint64_t>(model_.sample_weight->type) : kFloatType;
    case Role::kIds:
    case Role::kRows:
      return kInt32Type;
    case Role::kStep:
      return static_cast<uint64_t>(formats::DataType::kInt64);
    case Role::kSlot:
      return static_cast<uint64_t>(model_.slots[i].type);
    case Role::kBytes:
      return host::kStringType;
    default:
      return kFloatType;
  }
}

absl::Status ExportedEngine::Define(const std::string& name, Function* function) {
  function->signature = model_.Find(name);
  if (function->signature == nullptr) return absl::OkStatus();
  FunctionSpec spec;
  for (const KerasPort& port : function->signature->inputs) {
    spec.feeds.push_back({.tensor = port.tensor, .type = GetType(port)});
  }
  for (const KerasPort& port : function->signature->outputs) spec.fetches.push_back(port.tensor);
  absl::StatusOr<uint64_t> number = host_->Define(spec);
  if (!number.ok()) return Annotate(number.status(), StrCat("signature ", name));
  function->number = *number;
  return absl::OkStatus();
}

absl::Status ExportedEngine::Begin() {
  if (feeds_ != nullptr) return absl::OkStatus();
  HostSpec spec = host_spec_;
  MUSTER_ASSIGN_OR_RETURN(copy_, LocalCopy::MakeIfElsewhere(files_, spec.saved_model));
  if (copy_ != nullptr) spec.saved_model = copy_->path();
  if (spec.library_folder.empty()) {
    MUSTER_ASSIGN_OR_RETURN(spec.library_folder, FindTensorFlow(tensorflow_, spec.environment));
  }
  absl::StatusOr<std::unique_ptr<HostProcess>> host = HostProcess::Start(std::move(spec));
  if (!host.ok() && absl::StrContains(host.status().message(), "Op type not registered")) {
    return absl::FailedPreconditionError(
        StrCat(host.status().message(), " The model was exported with TensorFlow ",
               model_.tensorflow_version, ": compute it with that version or a newer one"));
  }
  MUSTER_RETURN_IF_ERROR(host.status());
  host_ = *std::move(host);
  MUSTER_RETURN_IF_ERROR(Define("step", &step_));
  MUSTER_RETURN_IF_ERROR(Define("predict", &predict_));
  MUSTER_RETURN_IF_ERROR(Define("evaluate", &evaluate_));
  MUSTER_RETURN_IF_ERROR(Define("ids", &ids_));
  MUSTER_RETURN_IF_ERROR(Define("apply", &apply_));
  MUSTER_RETURN_IF_ERROR(Define("learning_rate", &learning_rate_));
  decoders_.resize(model_.inputs.size());
  for (size_t i = 0; i < decoders_.size(); ++i) {
    if (!model_.inputs[i].is_image()) continue;
    MUSTER_RETURN_IF_ERROR(Define(StrCat("decode_", model_.inputs[i].name), &decoders_[i]));
  }
  results_.resize(model_.metrics.size());
  for (size_t i = 0; i < results_.size(); ++i) {
    MUSTER_RETURN_IF_ERROR(Define(model_.metrics[i].result, &results_[i]));
  }
  auto feeds = std::make_unique<Feeds>(model_, host_->segment());
  MUSTER_RETURN_IF_ERROR(feeds->Begin(files_));
  feeds_ = std::move(feeds);
  return absl::OkStatus();
}

absl::StatusOr<ExportedEngine::Places> ExportedEngine::Run(const Function& function) {
  return host_->Run(function.number, feeds_->Of(*function.signature));
}

// `results` are those of the signature `ids`, if the export has it.
absl::Status ExportedEngine::ReadLookup(size_t lookup, const FeatureBatch& batch, Places results,
                                        IdList* list) const {
  const KerasLookup& about = model_.lookups[lookup];
  const auto given = static_cast<size_t>(std::max(about.input, about.label));
  const size_t place_in_batch = about.input >= 0 ? given : model_.inputs.size() + given;
  if (!about.computed() && place_in_batch >= batch.raw.size()) {
    list->ids.clear();
    list->shape.assign(1, 0);
    for (const int64_t size : about.shape) list->shape.push_back(std::max<int64_t>(size, 0));
  } else if (!about.computed()) {
    const features::RawColumn& column = batch.raw[place_in_batch];
    const std::string from = about.input >= 0 ? StrCat("input ", model_.inputs[given].name)
                                              : StrCat("label ", model_.labels[given].name);
    MUSTER_ASSIGN_OR_RETURN(list->ids, ReadIds(column.type, column.bytes, from));
    list->shape = column.shape;
    list->shape.insert(list->shape.begin(), batch.rows);
  } else {
    const auto& outputs = ids_.signature->outputs;
    const auto port = std::ranges::find(outputs, static_cast<int>(lookup), &KerasPort::index);
    const TensorPlace& place = results[static_cast<size_t>(port - outputs.begin())];
    MUSTER_ASSIGN_OR_RETURN(list->ids, ReadIds(static_cast<formats::DataType>(place.type),
                                               {host_->segment().at(place.offset), place.bytes},
                                               StrCat("computed ids ", lookup)));
    list->shape.assign(place.dims, place.dims + place.rank);
  }
  const auto rows = static_cast<size_t>(batch.rows);
  const size_t count = list->ids.size();
  // Ids that belong to no row count as ids of the first row.
  const bool by_row = !list->shape.empty() && std::cmp_equal(list->shape[0], rows);
  list->offsets.clear();
  if (by_row && count == rows) return absl::OkStatus();
  for (size_t row = 0; row <= rows; ++row) {
    list->offsets.push_back(
        static_cast<uint32_t>(by_row ? count / rows * row : (row == 0 ? 0 : count)));
  }
  return absl::OkStatus();
}

absl::Status ExportedEngine::Decode(size_t input, int rows, features::RawColumn* column) {
  const KerasColumn& wanted = model_.inputs[input];
  const std::string name = StrCat("input ", wanted.name, " (feature ", wanted.feature, ")");
  if (decoders_[input].signature == nullptr) {
    return absl::FailedPreconditionError(StrCat(name, ": ", model_.folder, " has no signature ",
                                                "that decodes it: export the model again"));
  }
  features::RawColumn values{.type = wanted.type};
  for (int row = 0; row < rows; ++row) {
    const uint64_t begin = column->offsets[static_cast<size_t>(row)];
    const uint64_t end = column->offsets[static_cast<size_t>(row) + 1];
    MUSTER_RETURN_IF_ERROR(feeds_->SetBytes(std::span(column->bytes).subspan(begin, end - begin)));
    absl::StatusOr<Places> results = Run(decoders_[input]);
    if (!results.ok()) {
      return Annotate(results.status(),
                      StrCat(name, ", row ", row, " of the batch: decode ", wanted.decode));
    }
    const TensorPlace& place = (*results)[0];
    const std::vector<int64_t> shape(place.dims, place.dims + place.rank);
    if (row == 0) values.shape = shape;
    if (shape != values.shape || static_cast<formats::DataType>(place.type) != wanted.type) {
      return absl::InvalidArgumentError(
          StrCat(name, ", row ", row, " of the batch: the image is ", features::ShapeText(shape),
                 ", the first one of the batch ", features::ShapeText(values.shape)));
    }
    const std::byte* const from = host_->segment().at(place.offset);
    values.bytes.insert(values.bytes.end(), from, from + place.bytes);
  }
  *column = std::move(values);
  return absl::OkStatus();
}

absl::StatusOr<const FeatureBatch*> ExportedEngine::Decoded(const FeatureBatch& batch) {
  const auto is_encoded = [&](size_t input) {
    return input < batch.raw.size() && model_.inputs[input].is_image() &&
           batch.raw[input].type == formats::DataType::kString &&
           batch.raw[input].offsets.size() == static_cast<size_t>(batch.rows) + 1;
  };
  const FeatureBatch* found = &batch;
  for (size_t i = 0; i < model_.inputs.size(); ++i) {
    if (!is_encoded(i)) continue;
    if (found == &batch) decoded_ = batch;
    found = &decoded_;
    MUSTER_RETURN_IF_ERROR(Decode(i, batch.rows, &decoded_.raw[i]));
  }
  return found;
}

absl::StatusOr<std::vector<double>> ExportedEngine::MetricValues(
    std::span<const std::vector<float>> states) {
  std::vector<double> values;
  if (results_.empty() && model_.metrics.empty()) return values;
  MUSTER_RETURN_IF_ERROR(Begin());
  MUSTER_RETURN_IF_ERROR(feeds_->SetMetricStates(states));
  for (size_t i = 0; i < results_.size(); ++i) {
    const std::string& name = model_.metrics[i].name;
    if (results_[i].signature == nullptr) {
      return absl::FailedPreconditionError(StrCat("metric ", name, ": ", model_.folder,
                                                  " has no signature \"", model_.metrics[i].result,
                                                  "\": export the model again"));
    }
    absl::StatusOr<Places> results = Run(results_[i]);
    if (!results.ok()) return Annotate(results.status(), StrCat("metric ", name));
    const TensorPlace& place = (*results)[0];
    if (place.type != kFloatType || place.bytes != sizeof(float)) {
      return absl::DataLossError(StrCat("metric ", name, " is not one number of float32"));
    }
    values.push_back(double{Floats(place)[0]});
  }
  return values;
}

absl::StatusOr<const std::vector<IdList>*> ExportedEngine::GetIds(const FeatureBatch& batch) {
  if (!batch.id_lists.empty()) return &batch.id_lists;
  Places results;
  if (ids_.signature != nullptr) {
    MUSTER_RETURN_IF_ERROR(feeds_->SetBatch(batch, nullptr));
    absl::StatusOr<Places> run = Run(ids_);
    if (!run.ok()) return Annotate(run.status(), "compute ids");
    results = *run;
  }
  found_ids_.resize(model_.lookups.size());
  for (size_t k = 0; k < found_ids_.size(); ++k) {
    MUSTER_RETURN_IF_ERROR(ReadLookup(k, batch, results, &found_ids_[k]));
  }
  return &found_ids_;
}

absl::Status ExportedEngine::FindIds(FeatureBatch* batch) {
  MUSTER_RETURN_IF_ERROR(Begin());
  MUSTER_ASSIGN_OR_RETURN(const FeatureBatch* const decoded, Decoded(*batch));
  if (decoded != batch) std::swap(*batch, decoded_);
  MUSTER_RETURN_IF_ERROR(CheckRawColumns(model_, *batch, false));
  batch->id_lists.clear();
  MUSTER_RETURN_IF_ERROR(GetIds(*batch).status());
  for (size_t k = 0; k < found_ids_.size(); ++k) {
    const KerasVariable& table = model_.variables[static_cast<size_t>(model_.lookups[k].table)];
    MUSTER_RETURN_IF_ERROR(feeds_->CheckLookupIds(k, found_ids_[k], table.shape[0], batch->rows));
  }
  batch->id_lists = std::move(found_ids_);
  return absl::OkStatus();
}

absl::Status ExportedEngine::Prepare(std::span<const VariableView> weights,
                                     const FeatureBatch& batch, bool training) {
  MUSTER_RETURN_IF_ERROR(Begin());
  MUSTER_RETURN_IF_ERROR(CheckWeights(specs_, weights));
  MUSTER_ASSIGN_OR_RETURN(const FeatureBatch* const decoded, Decoded(batch));
  MUSTER_RETURN_IF_ERROR(CheckRawColumns(model_, *decoded, training));
  feeds_->SetWeights(exported_, weights);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<IdList>* const ids, GetIds(*decoded));
  return feeds_->SetBatch(*decoded, ids);
}

absl::Status ExportedEngine::Freeze(std::span<const VariableView> weights) {
  return CheckWeights(specs_, weights);
}

absl::Status ExportedEngine::Predict(std::span<const VariableView> weights,
                                     const FeatureBatch& batch, Forward* out) {
  MUSTER_RETURN_IF_ERROR(Begin());
  // The loss of a model without labels depends on its inputs alone.
  const bool has_labels =
      HasLabels(model_, batch) || (model_.labels.empty() && !model_.sample_weight);
  const bool labelled = has_labels && evaluate_.signature != nullptr;
  const Function& function = labelled ? evaluate_ : predict_;
  if (function.signature == nullptr) {
    return absl::FailedPreconditionError(
        StrCat(model_.folder, " has no signature \"predict\": export the model again"));
  }
  MUSTER_RETURN_IF_ERROR(Prepare(weights, batch, labelled));
  feeds_->SetDenominator(0);
  MUSTER_RETURN_IF_ERROR(feeds_->SetWholeTables(*function.signature));
  absl::StatusOr<Places> results = Run(function);
  if (!results.ok()) return Annotate(results.status(), "predict");
  *out = {};
  out->predictions.resize(model_.predictions.size());
  for (size_t i = 0; i < results->size(); ++i) {
    const KerasPort& port = function.signature->outputs[i];
    const TensorPlace& place = (*results)[i];
    const std::byte* const from = host_->segment().at(place.offset);
    if (port.role == Role::kPrediction) {
      if (place.rank == 0 || std::cmp_not_equal(place.dims[0], batch.rows)) {
        return absl::DataLossError(StrCat("prediction ",
                                          model_.predictions[static_cast<size_t>(port.index)].name,
                                          " has not ", batch.rows, " rows"));
      }
      out->predictions[static_cast<size_t>(port.index)] = ReadRaw(place, from);
      if (port.index == 0 && place.type == kFloatType) {
        out->logits.assign(Floats(place).begin(), Floats(place).end());
      }
    } else if (place.type == kFloatType && port.role == Role::kLossSum && place.bytes > 0) {
      out->loss_sum = double{Floats(place)[0]};
    } else if (place.type == kFloatType && port.role == Role::kMetric) {
      const auto state = static_cast<size_t>(port.index);
      if (out->metric_states.size() <= state) out->metric_states.resize(state + 1);
      out->metric_states[state].assign(Floats(place).begin(), Floats(place).end());
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::engine::tensorflow
