#include "muster/engine/tensorflow/keras_signature.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

namespace muster::engine::tensorflow {
namespace {

using Kind = KerasVariable::Kind;
using Role = KerasPort::Role;

// Whether the signature belongs to the optimizer.
bool IsUpdate(std::string_view name) { return name == "apply" || name == "learning_rate"; }

bool IsRead(std::string_view name) {
  return name == "step" || name == "predict" || name == "evaluate" || name == "ids" ||
         IsUpdate(name) || name.starts_with("decode_") || name.starts_with("result_");
}
constexpr const char* kExportAgain = "export the model with muster.keras.export";

// Returns the number that `digits` are if it is below `count`, else -1.
int ParseNumber(std::string_view digits, size_t count) {
  int number = -1;
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, number);
  const bool good = error == std::errc() && at == end && number >= 0;
  return good && std::cmp_less(number, count) ? number : -1;
}

template <typename Named>
int GetPlace(const std::vector<Named>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Named::name);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

// Returns the index of a metric's state; the states of all metrics are numbered together, from 0.
int FindMetricState(const KerasExport& model, std::string_view name) {
  int number = 0;
  for (const KerasMetric& metric : model.metrics) {
    for (const KerasMetric::State& state : metric.states) {
      if (state.name == name) return number;
      ++number;
    }
  }
  return -1;
}

struct Match {
  Role role;
  int index;  // -1: the manifest has nothing of that number or name
};

// Returns what follows the prefix in the name, or nothing if the name does not begin with it.
std::optional<std::string_view> ConsumePrefix(std::string_view prefix, std::string_view name) {
  return name.starts_with(prefix) ? std::optional(name.substr(prefix.size())) : std::nullopt;
}

// Finds the meaning of a name in a signature of the optimizer, whose variables are the trained
// ones.
std::optional<Match> MatchUpdate(const KerasExport& model, std::string_view name, bool input) {
  const auto match = [&](Role role, std::string_view digits) {
    return Match{role, ParseNumber(digits, role == Role::kSlot ? model.slots.size()
                                                               : model.variables.size())};
  };
  const auto trained = [&](Role role, std::string_view digits) {
    Match found = match(role, digits);
    if (found.index < 0) return found;
    const KerasVariable& variable = model.variables[static_cast<size_t>(found.index)];
    const bool fits = role != Role::kRows || variable.kind == Kind::kTable;
    if (!variable.trainable || !fits) found.index = -1;
    return found;
  };
  if (!input) {
    if (name == "learning_rate") return Match{Role::kLearningRate, 0};
    if (const auto rest = ConsumePrefix("new_var_", name))
      return trained(Role::kNewVariable, *rest);
    if (const auto rest = ConsumePrefix("new_slot_", name)) return match(Role::kSlot, *rest);
    return std::nullopt;
  }
  if (name == "step") return Match{Role::kStep, 0};
  if (const auto rest = ConsumePrefix("slot_", name)) return match(Role::kSlot, *rest);
  if (const auto rest = ConsumePrefix("var_", name)) return trained(Role::kVariable, *rest);
  if (const auto rest = ConsumePrefix("grad_", name)) return trained(Role::kGradient, *rest);
  if (const auto rest = ConsumePrefix("rows_", name)) return trained(Role::kRows, *rest);
  return std::nullopt;
}

std::optional<Match> MatchName(const KerasExport& model, std::string_view name, bool input) {
  const auto consume = [&](std::string_view prefix) { return ConsumePrefix(prefix, name); };
  const size_t variables = model.variables.size();
  if (const auto rest = consume("ids_")) {
    return Match{Role::kIds, ParseNumber(*rest, model.lookups.size())};
  }
  if (input) {
    if (name == "sample_weight") return Match{Role::kSampleWeight, 0};
    if (name == "denominator") return Match{Role::kDenominator, 0};
    if (name == "bytes") return Match{Role::kBytes, 0};
    if (const int state = FindMetricState(model, name); state >= 0)
      return Match{Role::kMetric, state};
    if (const auto rest = consume("var_"))
      return Match{Role::kVariable, ParseNumber(*rest, variables)};
    if (const auto rest = consume("whole_")) {
      const int number = ParseNumber(*rest, variables);
      const bool table =
          number >= 0 && model.variables[static_cast<size_t>(number)].kind == Kind::kTable;
      return Match{Role::kWholeTable, table ? number : -1};
    }
    if (const auto rest = consume("input_"))
      return Match{Role::kInput, GetPlace(model.inputs, *rest)};
    if (const auto rest = consume("label_"))
      return Match{Role::kLabel, GetPlace(model.labels, *rest)};
    return std::nullopt;
  }
  if (const int state = FindMetricState(model, name); state >= 0)
    return Match{Role::kMetric, state};
  if (name == "value") return Match{Role::kValue, 0};
  if (name == "loss") return Match{Role::kLoss, 0};
  if (name == "data_loss") return Match{Role::kDataLoss, 0};
  if (name == "loss_sum") return Match{Role::kLossSum, 0};
  if (const auto rest = consume("grad_"))
    return Match{Role::kGradient, ParseNumber(*rest, variables)};
  if (const auto rest = consume("rows_")) return Match{Role::kRows, ParseNumber(*rest, variables)};
  if (const auto rest = consume("new_")) return Match{Role::kState, ParseNumber(*rest, variables)};
  if (const auto rest = consume("output_")) {
    return Match{Role::kPrediction, GetPlace(model.predictions, *rest)};
  }
  return std::nullopt;
}

absl::Status ReadPorts(const formats::Json& object, const std::string& where,
                       const KerasExport& model, bool update, bool input,
                       std::vector<KerasPort>* ports) {
  const auto refuse = [&](std::string_view name, std::string_view why) {
    return absl::InvalidArgumentError(StrCat(where, ": \"", name, "\" ", why));
  };
  std::set<std::pair<Role, int>> seen;
  for (const auto& [name, tensor] : object.items()) {
    const std::optional<Match> match =
        update ? MatchUpdate(model, name, input) : MatchName(model, name, input);
    if (!match) return refuse(name, "is unknown to this version of muster");
    if (match->index < 0)
      return refuse(name, "refers to something that the manifest does not have");
    if (!tensor.is_string() || tensor.get<std::string>().empty()) {
      return refuse(name, "must be the name of a tensor of the graph");
    }
    if (!seen.emplace(match->role, match->index).second) return refuse(name, "is there twice");
    ports->push_back({match->role, match->index, tensor.get<std::string>()});
  }
  return absl::OkStatus();
}

bool Gives(const KerasSignature& signature, Role role, size_t index) {
  return std::ranges::any_of(signature.outputs, [&](const KerasPort& port) {
    return port.role == role && std::cmp_equal(port.index, index);
  });
}

absl::Status CheckStep(const KerasExport& model, const std::string& where) {
  const KerasSignature* const step = model.Find("step");
  if (step == nullptr) {
    return absl::InvalidArgumentError(StrCat(
        where, ": there is no signature \"step\": this model cannot be trained; ", kExportAgain));
  }
  const auto refuse = [&](std::string_view what) {
    return absl::InvalidArgumentError(
        StrCat(where, ".step.outputs: there is no ", what, "; ", kExportAgain));
  };
  if (!Gives(*step, Role::kLoss, 0)) return refuse("\"loss\"");
  for (size_t i = 0; i < model.variables.size(); ++i) {
    const KerasVariable& variable = model.variables[i];
    const bool table = variable.kind == Kind::kTable;
    if (variable.trainable && !Gives(*step, Role::kGradient, i)) {
      return refuse(StrCat("gradient of variable ", i, ", ", variable.name));
    }
    if (variable.trainable && table && !Gives(*step, Role::kRows, i)) {
      return refuse(StrCat("\"rows\" of table ", i, ", ", variable.name));
    }
    if (variable.kind == Kind::kState && !Gives(*step, Role::kState, i)) {
      return refuse(StrCat("new value of state ", i, ", ", variable.name));
    }
  }
  const bool computed = std::ranges::any_of(
      model.lookups, [](const KerasLookup& lookup) { return lookup.computed(); });
  const KerasSignature* const ids = model.Find("ids");
  for (size_t k = 0; computed && k < model.lookups.size(); ++k) {
    if (!model.lookups[k].computed()) continue;
    if (ids == nullptr || !Gives(*ids, Role::kIds, k)) {
      return absl::InvalidArgumentError(
          StrCat(where, ".ids: nothing computes the ids of lookup ", k, "; ", kExportAgain));
    }
  }
  return absl::OkStatus();
}

// Checks that the signature has all that the manifest says about the optimizer.
absl::Status CheckUpdate(const KerasExport& model, const std::string& where) {
  const auto refuse = [&](std::string_view signature, std::string_view what) {
    return absl::InvalidArgumentError(
        StrCat(where, ".", signature, ": nothing computes ", what, "; ", kExportAgain));
  };
  const KerasSignature* const rate = model.Find("learning_rate");
  if (model.rate_is_function && (rate == nullptr || !Gives(*rate, Role::kLearningRate, 0))) {
    return refuse("learning_rate", "the learning rate");
  }
  if (!model.applies) return absl::OkStatus();
  const KerasSignature* const apply = model.Find("apply");
  for (size_t i = 0; i < model.variables.size(); ++i) {
    const KerasVariable& variable = model.variables[i];
    if (!variable.trainable) continue;
    if (apply == nullptr || !Gives(*apply, Role::kNewVariable, i)) {
      return refuse("apply", StrCat("the new value of variable ", i, ", ", variable.name));
    }
  }
  for (size_t i = 0; i < model.slots.size(); ++i) {
    if (apply == nullptr || !Gives(*apply, Role::kSlot, i)) {
      return refuse("apply", StrCat("the new value of slot ", model.slots[i].name));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadSignatures(const formats::Json& json, const std::string& where,
                            KerasExport* model) {
  for (const auto& [name, object] : json.items()) {
    if (!IsRead(name)) continue;
    KerasSignature signature;
    formats::JsonFields fields(object, StrCat(where, ".", name));
    for (const bool input : {true, false}) {
      const char* const side = input ? "inputs" : "outputs";
      MUSTER_RETURN_IF_ERROR(ReadPorts(fields.Object(side), StrCat(fields.where(), ".", side),
                                       *model, IsUpdate(name), input,
                                       input ? &signature.inputs : &signature.outputs));
    }
    MUSTER_RETURN_IF_ERROR(fields.status());
    // A trainer may have only those rows of a table that its batch names.
    const bool reads_whole = std::ranges::any_of(
        signature.inputs, [](const KerasPort& port) { return port.role == Role::kWholeTable; });
    if (reads_whole && name != "predict" && name != "evaluate") {
      return absl::InvalidArgumentError(
          StrCat(fields.where(), ": only predict and evaluate may read whole tables"));
    }
    model->signatures.emplace(name, std::move(signature));
  }
  MUSTER_RETURN_IF_ERROR(CheckUpdate(*model, where));
  return CheckStep(*model, where);
}

}  // namespace muster::engine::tensorflow
