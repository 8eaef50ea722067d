#include "muster/train/train_hooks.h"

#include "muster/train/loop/hooks/basic_hooks.h"
#include "muster/train/loop/hooks/checkpoint_saver.h"
#include "muster/train/loop/hooks/run_summary.h"
#include "muster/train/loop/hooks/step_counter.h"
#include "muster/train/loop/hooks/step_file.h"
#include "muster/train/loop/hooks/summary_saver.h"

namespace muster::train {

HookList TrainHooks(const TrainSpec& spec, const RunConfig& config, const EstimatorSpec& custom) {
  HookList hooks;
  if (spec.replicas == nullptr || spec.replicas->is_chief()) {
    hooks.push_back(NewCheckpointSaver(config, spec.saving_listeners));
    hooks.insert(hooks.end(), custom.training_chief_hooks.begin(),
                 custom.training_chief_hooks.end());
    hooks.push_back(NewStepCounter(config.log_step_count_steps));
    if (config.save_summary_steps > 0) hooks.push_back(NewRunSummary(spec, config));
    hooks.push_back(NewSummarySaver({config.save_summary_steps, config.histogram_steps}));
  }
  hooks.insert(hooks.end(), spec.hooks.begin(), spec.hooks.end());
  if (spec.max_steps) hooks.push_back(NewStopAtStep(*spec.max_steps));
  hooks.push_back(NewNanTensor(config.nan_loss_is_failure));
  if (!config.step_file.empty()) hooks.push_back(NewStepFile(config.step_file));
  hooks.insert(hooks.end(), custom.training_hooks.begin(), custom.training_hooks.end());
  return hooks;
}

}  // namespace muster::train
