#include "muster/train/input/growing_input.h"
#include "muster/train/input/input.h"
#include "muster/train/input/shared_feeds.h"

namespace muster::train {

absl::StatusOr<std::unique_ptr<BatchSource>> OpenInput(io::FileSystem& files,
                                                       const model::Model& model,
                                                       const InputSpec& spec,
                                                       const InputFn& input_fn,
                                                       const data::Position* start) {
  if (input_fn) return input_fn(files, model, start);
  if (spec.growth != nullptr && spec.source.held_back.is_read) {
    return OpenNewestSegments(files, model, spec);
  }
  if (spec.growth != nullptr) return OpenGrowing(files, model, spec, start);
  if (spec.feeds != nullptr && start == nullptr) return spec.feeds->Open(files, model, spec);
  return Input::Open(files, model, spec, start);
}

}  // namespace muster::train
