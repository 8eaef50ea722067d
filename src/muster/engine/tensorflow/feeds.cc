#include "muster/engine/tensorflow/feeds.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "muster/base/random.h"
#include "muster/engine/tensorflow/raw_columns.h"
#include "muster/engine/tensorflow/tensor_layout.h"

namespace muster::engine::tensorflow {
namespace {

using features::FeatureBatch;
using features::IdList;
using host::TensorPlace;
using Kind = KerasVariable::Kind;
using Role = KerasPort::Role;

}  // namespace

Feeds::Feeds(const KerasExport& model, host::SharedSegment& segment)
    : model_(model),
      segment_(segment),
      columns_(model.inputs.size() + model.labels.size() + 1),
      ids_(model.lookups.size()),
      tables_(model.variables.size()),
      first_id_(model.lookups.size()) {
  for (const KerasVariable& variable : model.variables) {
    variables_.push_back(MakePlace(variable.type, variable.shape));
  }
  whole_ = variables_;
  denominator_.type = static_cast<uint64_t>(formats::DataType::kFloat);
  denominator_.bytes = sizeof(float);
}

absl::Status Feeds::Begin(io::FileSystem& files) {
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (model_.variables[i].kind == Kind::kTable) continue;
    MUSTER_ASSIGN_OR_RETURN(variables_[i].offset, segment_.Allocate(variables_[i].bytes));
    std::memset(segment_.at(variables_[i].offset), 0, variables_[i].bytes);
  }
  MUSTER_ASSIGN_OR_RETURN(denominator_.offset, segment_.Allocate(denominator_.bytes));
  SetDenominator(0);
  const bool any = std::ranges::any_of(model_.variables, &KerasVariable::constant);
  return any ? ReadConstant(files) : absl::OkStatus();
}

absl::Status Feeds::ReadConstant(io::FileSystem& files) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<formats::BundleReader> bundle,
                          formats::BundleReader::Open(files, model_.weights()));
  for (size_t i = 0; i < variables_.size(); ++i) {
    const KerasVariable& variable = model_.variables[i];
    if (!variable.constant()) continue;
    const auto found = bundle->tensors().find(variable.name);
    if (found == bundle->tensors().end() || found->second.type != variable.type ||
        found->second.shape != variable.shape) {
      return absl::DataLossError(StrCat(model_.weights(), ": its ", variable.name,
                                        " is missing or differs from model.json: export the "
                                        "model again"));
    }
    char* to = reinterpret_cast<char*>(segment_.at(variables_[i].offset));
    if (variable.kind == Kind::kTable) {
      Table& table = tables_[i];
      table.frozen.resize(variables_[i].bytes / sizeof(float));
      table.view = {table.frozen.data(), variable.shape[0], variable.shape[1]};
      to = reinterpret_cast<char*>(table.frozen.data());
    }
    MUSTER_RETURN_IF_ERROR(bundle->Read(variable.name, {to, variables_[i].bytes}));
  }
  return absl::OkStatus();
}

void Feeds::SetWeights(std::span<const int> variables, std::span<const VariableView> weights) {
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto v = static_cast<size_t>(variables[i]);
    if (model_.variables[v].kind == Kind::kTable) {
      tables_[v].view = weights[i];
    } else if (variables_[v].bytes > 0) {
      std::memcpy(segment_.at(variables_[v].offset), weights[i].data, variables_[v].bytes);
    }
  }
}

void Feeds::SetSeeds(const StepContext& context) {
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (model_.variables[i].kind != Kind::kSeed) continue;
    RandomStream random(context.seed, RandomPurpose::kDropout, static_cast<uint64_t>(context.step),
                        context.replica << 12 | static_cast<uint32_t>(i));
    const int64_t seed[2] = {random.Next32() >> 1, 0};
    std::memcpy(segment_.at(variables_[i].offset), seed, sizeof seed);
  }
}

void Feeds::SetDenominator(double denominator) {
  const auto value = static_cast<float>(denominator);
  std::memcpy(segment_.at(denominator_.offset), &value, sizeof value);
}

absl::Status Feeds::CheckLookupIds(size_t lookup, const IdList& ids, int64_t bound,
                                   int rows) const {
  const KerasLookup& about = model_.lookups[lookup];
  const auto table = static_cast<size_t>(about.table);
  const auto bad = std::ranges::find_if(
      ids.ids, [bound](int32_t id) { return id < 0 || std::cmp_greater_equal(id, bound); });
  if (bad == ids.ids.end()) return absl::OkStatus();
  const size_t in_row = std::max<size_t>(ids.ids.size() / static_cast<size_t>(rows), 1);
  const std::string from =
      about.computed()   ? StrCat("computed ids ", lookup)
      : about.input >= 0 ? StrCat("input ", model_.inputs[static_cast<size_t>(about.input)].name)
                         : StrCat("label ", model_.labels[static_cast<size_t>(about.label)].name);
  return absl::InvalidArgumentError(StrCat(
      from, ", row ", static_cast<size_t>(bad - ids.ids.begin()) / in_row, " of the batch: id ",
      *bad, " is outside table ", model_.variables[table].name, " of ", bound, " rows"));
}

absl::StatusOr<TensorPlace> Feeds::PlaceOfIds(size_t lookup, const IdList& ids) const {
  const std::vector<int64_t>& wanted = model_.lookups[lookup].shape;
  TensorPlace place{.type = static_cast<uint64_t>(formats::DataType::kInt32),
                    .bytes = ids.ids.size() * sizeof(int32_t),
                    .rank = ids.shape.size()};
  bool fits = ids.shape.size() == wanted.size() + 1;
  for (size_t i = 0; fits && i < ids.shape.size(); ++i) {
    fits = i == 0 || wanted[i - 1] == kAnySize || wanted[i - 1] == ids.shape[i];
    place.dims[i] = static_cast<uint64_t>(ids.shape[i]);
  }
  uint64_t elements = 0;
  if (fits && place.Elements(&elements) && elements == ids.ids.size()) return place;
  return absl::InvalidArgumentError(StrCat("the ", ids.ids.size(), " ids of lookup ", lookup,
                                           " do not have the shape that the export gives them"));
}

absl::Status Feeds::FindRows(const FeatureBatch& batch, const std::vector<IdList>& ids) {
  if (ids.size() != model_.lookups.size()) {
    return absl::InvalidArgumentError(StrCat("the batch has ", ids.size(),
                                             " id lists, but the model ", model_.lookups.size(),
                                             " lookups"));
  }
  for (Table& table : tables_) table.block.Clear();
  for (size_t k = 0; k < ids.size(); ++k) {
    MUSTER_ASSIGN_OR_RETURN(ids_[k], PlaceOfIds(k, ids[k]));
    Table& table = tables_[static_cast<size_t>(model_.lookups[k].table)];
    MUSTER_RETURN_IF_ERROR(CheckLookupIds(k, ids[k], table.view.rows, batch.rows));
    first_id_[k] = table.block.Add(ids[k].ids);
  }
  for (size_t v = 0; v < tables_.size(); ++v) {
    if (model_.variables[v].kind != Kind::kTable) continue;
    Table& table = tables_[v];
    table.block.Find(table.view.rows);
    variables_[v].dims[0] = table.block.rows().size();
    variables_[v].bytes = variables_[v].dims[0] * variables_[v].dims[1] * sizeof(float);
  }
  return absl::OkStatus();
}

absl::Status Feeds::SetBatch(const FeatureBatch& batch, const std::vector<IdList>* ids) {
  if (ids != nullptr) MUSTER_RETURN_IF_ERROR(FindRows(batch, *ids));
  // Everything that comes with the batch lies in one block.
  uint64_t total = 0;
  const auto lay = [&](TensorPlace* place) {
    place->offset = total;
    total += Aligned(place->bytes);
  };
  for (size_t i = 0; i < batch.raw.size(); ++i) {
    columns_[i] = GetPlace(batch.raw[i], batch.rows);
    lay(&columns_[i]);
  }
  if (!model_.sample_weight) {
    columns_.back() = {.type = static_cast<uint64_t>(formats::DataType::kFloat),
                       .bytes = static_cast<uint64_t>(batch.rows) * sizeof(float),
                       .rank = 1};
    columns_.back().dims[0] = static_cast<uint64_t>(batch.rows);
    lay(&columns_.back());
  }
  for (size_t k = 0; ids != nullptr && k < ids_.size(); ++k) lay(&ids_[k]);
  for (size_t v = 0; ids != nullptr && v < variables_.size(); ++v) {
    if (model_.variables[v].kind == Kind::kTable) lay(&variables_[v]);
  }
  MUSTER_ASSIGN_OR_RETURN(const uint64_t begin, batch_block_.Reserve(segment_, total));
  for (size_t i = 0; i < batch.raw.size(); ++i) {
    columns_[i].offset += begin;
    WriteRaw(batch.raw[i], segment_.at(columns_[i].offset));
  }
  if (!model_.sample_weight) {
    columns_.back().offset += begin;
    auto* const weights = reinterpret_cast<float*>(segment_.at(columns_.back().offset));
    if (batch.weights.empty()) {
      std::fill_n(weights, batch.rows, 1.0F);
    } else {
      std::ranges::copy(batch.weights, weights);
    }
  }
  if (ids == nullptr) return absl::OkStatus();
  for (size_t k = 0; k < ids_.size(); ++k) {
    ids_[k].offset += begin;
    const std::span<const int32_t> positions =
        block(model_.lookups[k].table).positions().subspan(first_id_[k], (*ids)[k].ids.size());
    std::memcpy(segment_.at(ids_[k].offset), positions.data(), positions.size_bytes());
  }
  for (size_t v = 0; v < variables_.size(); ++v) {
    if (model_.variables[v].kind != Kind::kTable) continue;
    variables_[v].offset += begin;
    const Table& table = tables_[v];
    table.block.GatherTo(table.view, reinterpret_cast<float*>(segment_.at(variables_[v].offset)));
  }
  return absl::OkStatus();
}

absl::Status Feeds::SetWholeTables(const KerasSignature& signature) {
  uint64_t total = 0;
  for (const KerasPort& port : signature.inputs) {
    if (port.role != Role::kWholeTable) continue;
    const auto v = static_cast<size_t>(port.index);
    const KerasVariable& table = model_.variables[v];
    if (tables_[v].view.rows != table.shape[0]) {
      return absl::FailedPreconditionError(StrCat("table ", table.name, " is read whole, of its ",
                                                  table.shape[0], " rows ", tables_[v].view.rows,
                                                  " are here"));
    }
    whole_[v].offset = total;
    total += Aligned(whole_[v].bytes);
  }
  if (total == 0) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const uint64_t begin, whole_block_.Reserve(segment_, total));
  for (const KerasPort& port : signature.inputs) {
    if (port.role != Role::kWholeTable) continue;
    host::TensorPlace& place = whole_[static_cast<size_t>(port.index)];
    place.offset += begin;
    const float* const from = tables_[static_cast<size_t>(port.index)].view.data;
    if (place.bytes > 0) std::memcpy(segment_.at(place.offset), from, place.bytes);
  }
  return absl::OkStatus();
}

absl::Status Feeds::SetMetricStates(std::span<const std::vector<float>> states) {
  states_.clear();
  uint64_t total = 0;
  for (const KerasMetric& metric : model_.metrics) {
    for (const KerasMetric::State& state : metric.states) {
      TensorPlace& place = states_.emplace_back();
      place.type = static_cast<uint64_t>(formats::DataType::kFloat);
      place.rank = state.shape.size();
      uint64_t elements = 1;
      for (size_t i = 0; i < state.shape.size(); ++i) {
        place.dims[i] = static_cast<uint64_t>(state.shape[i]);
        elements *= place.dims[i];
      }
      place.bytes = elements * sizeof(float);
      place.offset = total;
      total += Aligned(place.bytes);
      if (states_.size() <= states.size() && states[states_.size() - 1].size() == elements)
        continue;
      return absl::InvalidArgumentError(StrCat("metric ", metric.name,
                                               ": its state does not have the ", elements,
                                               " numbers that the export gives it"));
    }
  }
  MUSTER_ASSIGN_OR_RETURN(const uint64_t begin, other_block_.Reserve(segment_, total));
  for (size_t i = 0; i < states_.size(); ++i) {
    states_[i].offset += begin;
    std::ranges::copy(std::as_bytes(std::span(states[i])), segment_.at(states_[i].offset));
  }
  return absl::OkStatus();
}

absl::Status Feeds::SetBytes(std::span<const std::byte> bytes) {
  const uint64_t offsets[2] = {0, bytes.size()};
  bytes_ = {.type = host::kStringType, .bytes = sizeof offsets + bytes.size()};
  MUSTER_ASSIGN_OR_RETURN(bytes_.offset, other_block_.Reserve(segment_, bytes_.bytes));
  std::memcpy(segment_.at(bytes_.offset), offsets, sizeof offsets);
  std::ranges::copy(bytes, segment_.at(bytes_.offset) + sizeof offsets);
  return absl::OkStatus();
}

std::span<const TensorPlace> Feeds::Of(const KerasSignature& signature) {
  feeds_.clear();
  for (const KerasPort& port : signature.inputs) {
    const auto i = static_cast<size_t>(port.index);
    switch (port.role) {
      case Role::kVariable:
        feeds_.push_back(variables_[i]);
        break;
      case Role::kWholeTable:
        feeds_.push_back(whole_[i]);
        break;
      case Role::kInput:
        feeds_.push_back(columns_[i]);
        break;
      case Role::kLabel:
        feeds_.push_back(columns_[model_.inputs.size() + i]);
        break;
      case Role::kSampleWeight:
        feeds_.push_back(columns_[model_.inputs.size() + model_.labels.size()]);
        break;
      case Role::kIds:
        feeds_.push_back(ids_[i]);
        break;
      case Role::kMetric:
        feeds_.push_back(states_[i]);
        break;
      case Role::kBytes:
        feeds_.push_back(bytes_);
        break;
      default:
        feeds_.push_back(denominator_);
    }
  }
  return feeds_;
}

}  // namespace muster::engine::tensorflow
