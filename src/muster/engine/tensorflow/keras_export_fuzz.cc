// Parses any bytes as a manifest: either they are refused, or the parts of the described model fit
// together.
#include <cstdlib>
#include <string_view>

#include "muster/engine/tensorflow/keras_export.h"

namespace muster::engine::tensorflow {
namespace {

void FuzzOneManifest(std::string_view text) {
  const auto model = ParseKerasExport(text, "model.json");
  if (!model.ok()) return;
  for (const KerasLookup& lookup : model->lookups) {
    if (model->variables.at(static_cast<size_t>(lookup.table)).shape.size() != 2) std::abort();
    if (lookup.input >= 0) (void)model->inputs.at(static_cast<size_t>(lookup.input));
    if (lookup.label >= 0) (void)model->labels.at(static_cast<size_t>(lookup.label));
  }
  for (const auto& [name, signature] : model->signatures) {
    for (const auto* const ports : {&signature.inputs, &signature.outputs}) {
      for (const KerasPort& port : *ports) {
        const auto index = static_cast<size_t>(port.index);
        if (port.role == KerasPort::Role::kVariable) (void)model->variables.at(index);
        if (port.role == KerasPort::Role::kInput) (void)model->inputs.at(index);
        if (port.role == KerasPort::Role::kNewVariable) (void)model->variables.at(index);
        if (port.role == KerasPort::Role::kSlot) (void)model->slots.at(index);
        if (port.role == KerasPort::Role::kIds) (void)model->lookups.at(index);
        if (port.role == KerasPort::Role::kPrediction) (void)model->predictions.at(index);
      }
    }
  }
}

}  // namespace
}  // namespace muster::engine::tensorflow

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::engine::tensorflow::FuzzOneManifest({reinterpret_cast<const char*>(data), size});
  return 0;
}
