#include "muster/cli/train/tune_population.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "muster/cli/train/model_text.h"
#include "muster/cli/train/train_run.h"

namespace muster::cli {
namespace {

// The last key of a value that changes no shape, wherever it stands in the model.
constexpr std::string_view kFreeValues[] = {"dropout", "l1", "l2", "embedding_l1", "embedding_l2"};

// Whether a value of the model file, by its path, leaves the shapes of weights as they are.
bool KeepsShapes(const std::string& path) {
  const std::vector<std::string> keys = absl::StrSplit(path, '.');
  if (path == "train.batch_size") return true;
  if (keys.front() != "model") return false;
  if (keys.size() > 2 && keys[1] == "clip_gradients") return true;
  const auto optimizer = std::ranges::find(keys, "optimizer");
  // optimizer.KIND.VALUE; where slots begin matters to no trial that continues.
  if (keys.end() - optimizer > 2) return !optimizer[2].starts_with("initial");
  return std::ranges::find(kFreeValues, keys.back()) != std::end(kFreeValues);
}

// The names of the slots that the model's optimizers keep.
absl::StatusOr<std::string> DescribeSlots(const model::ModelSpec& spec) {
  std::vector<const optim::OptimizerSpec*> optimizers;
  if (spec.baseline) optimizers.push_back(&spec.baseline->optimizer);
  if (spec.linear) optimizers.push_back(&spec.linear->optimizer);
  if (spec.fm) optimizers.push_back(&spec.fm->optimizer);
  for (const auto& [folder, part] : spec.DeepParts()) optimizers.push_back(&part->optimizer);
  std::string names;
  for (const optim::OptimizerSpec* const each : optimizers) {
    MUSTER_ASSIGN_OR_RETURN(const auto optimizer, optim::NewOptimizer(*each));
    for (const optim::SlotSpec& slot : optimizer->slots()) names += StrCat(slot.name, " ");
    names += "; ";
  }
  return names;
}

// Whether the slots are the same at both ends of the parameter, or with all its choices. Points
// that are no models do not count.
bool KeepsSlots(io::FileSystem& files, const tune::SearchFile& search, size_t parameter) {
  const tune::StudySpec& study = search.study;
  const tune::Parameter& changed = study.space.parameters[parameter];
  tune::Point point = tune::DrawPoint(study.space, study.seed, 0);
  const bool is_choice = changed.kind == tune::Parameter::Kind::kChoice;
  const size_t values = is_choice ? changed.choices.size() : 2;
  std::string before;
  for (size_t i = 0; i < values; ++i) {
    point[parameter] = is_choice ? static_cast<double>(i) : i == 0 ? changed.low : changed.high;
    const auto model = LoadModel(files, search.model, PointSettings(study.space, point));
    const auto slots = model.ok() ? DescribeSlots(*model) : model.status();
    if (!slots.ok()) continue;
    if (!before.empty() && *slots != before) return false;
    before = *slots;
  }
  return true;
}

// The steps in which a trial at the point reads an interval.
absl::StatusOr<int64_t> IntervalSteps(io::FileSystem& files, const tune::SearchFile& search,
                                      const tune::Point& point, int replicas) {
  TrainFlags flags;
  MUSTER_RETURN_IF_ERROR(ParseTrainFlags(TrainWords(search, point, "model"), &flags));
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec model,
                          LoadModel(files, search.model, flags.settings));
  int64_t rows = flags.data.batch_size > 0 ? flags.data.batch_size : model.train.batch_size;
  rows *= int64_t{std::max(flags.replicas, 1)} * replicas;
  return (search.study.scheduler.interval + rows - 1) / rows;
}

}  // namespace

absl::StatusOr<TrainingPart> GetTrainingPart(
    io::FileSystem& files, const tune::SearchFile& search, const tune::Trial& trial,
    const std::function<std::string(int64_t trial)>& folder, int replicas) {
  const tune::Origin& origin = trial.origin;
  if (origin.member < 0) return TrainingPart();
  MUSTER_ASSIGN_OR_RETURN(const int64_t steps, IntervalSteps(files, search, trial.point, replicas));
  TrainingPart part = {.max_steps = origin.step + steps};
  if (origin.parent >= 0) {
    part.continue_from = io::JoinPath(folder(origin.parent), StrCat("model.ckpt-", origin.step));
  }
  return part;
}

std::vector<std::vector<std::string>> ReproducingTrainings(const tune::SearchFile& search,
                                                           const tune::History& history,
                                                           const tune::Trial& trial,
                                                           const std::string& model_dir) {
  const std::vector<const tune::Trial*> lineage = FindLineage(history, trial);
  std::vector<const tune::Trial*> ends;  // of the trainings
  for (const tune::Trial* const each : lineage) {
    const auto values = [&](const tune::Trial* of) {
      return tune::PointJson(search.study.space, of->point);
    };
    if (!ends.empty() && values(ends.back()) == values(each)) ends.pop_back();
    ends.push_back(each);
  }
  std::vector<std::vector<std::string>> trainings;
  std::string before;
  for (size_t i = 0; i < ends.size(); ++i) {
    const bool is_last = i + 1 == ends.size();
    const std::string folder = is_last ? model_dir : StrCat(model_dir, "-", i + 1);
    // A trial that was not stopped ends by itself, unless it is one of a population.
    const bool is_part = trial.origin.member >= 0 || trial.state == tune::TrialState::kStopped;
    trainings.push_back(
        TrainWords(search, ends[i]->point, folder,
                   {.max_steps = is_part ? ends[i]->step : 0, .continue_from = before}));
    before = folder;
  }
  return trainings;
}

absl::Status CheckPopulation(io::FileSystem& files, const tune::SearchFile& search) {
  for (const char* const flag : {"--epochs", "--steps", "--max-steps", "--continue-from"}) {
    if (!HasFlag(search.flags, flag)) continue;
    return absl::InvalidArgumentError(
        StrCat(search.flags_place,
               ": with the scheduler pbt its interval and the budget say how long trials train; "
               "remove ",
               flag));
  }
  const std::vector<tune::Parameter>& parameters = search.study.space.parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name;
    std::string why;
    if (!KeepsShapes(name)) {
      why = "this value may change their shape or their meaning";
    } else if (!KeepsSlots(files, search, i)) {
      why = "its optimizer has other slots with some of these values";
    }
    if (why.empty()) continue;
    return absl::InvalidArgumentError(StrCat(
        "space.", name, ": pbt continues a trial with the weights of another one, and ", why,
        "; it can search learning rates and other numbers of optimizers, l1, l2, dropout, "
        "clip_gradients and train.batch_size: remove this parameter, or take another scheduler"));
  }
  return absl::OkStatus();
}

}  // namespace muster::cli
