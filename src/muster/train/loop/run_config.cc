#include "muster/train/loop/run_config.h"

namespace muster::train {

absl::Status Validate(const RunConfig& config) {
  const auto check = [](bool good, const char* message) {
    return good ? absl::OkStatus() : absl::InvalidArgumentError(message);
  };
  MUSTER_RETURN_IF_ERROR(check(!config.model_dir.empty(), "model_dir should be non-empty"));
  MUSTER_RETURN_IF_ERROR(
      check(!config.save_checkpoints_steps || !config.save_checkpoints_secs,
            "save_checkpoints_steps and save_checkpoints_secs cannot be both set"));
  MUSTER_RETURN_IF_ERROR(
      check(config.save_summary_steps >= 0, "save_summary_steps should be >= 0"));
  MUSTER_RETURN_IF_ERROR(check(config.histogram_steps >= 0, "histogram_steps should be >= 0"));
  MUSTER_RETURN_IF_ERROR(
      check(config.checkpoint_steps() >= 0, "save_checkpoints_steps should be >= 0"));
  MUSTER_RETURN_IF_ERROR(
      check(config.checkpoint_secs() >= 0, "save_checkpoints_secs should be >= 0"));
  MUSTER_RETURN_IF_ERROR(
      check(config.keep_checkpoint_max >= 0, "keep_checkpoint_max should be >= 0"));
  MUSTER_RETURN_IF_ERROR(check(config.keep_checkpoint_every_n_hours > 0,
                               "keep_checkpoint_every_n_hours should be > 0"));
  MUSTER_RETURN_IF_ERROR(
      check(config.log_step_count_steps > 0, "log_step_count_steps should be > 0"));
  MUSTER_RETURN_IF_ERROR(check(config.session_creation_timeout_secs > 0,
                               "session_creation_timeout_secs should be > 0"));
  return check(config.threads > 0, "threads should be > 0");
}

}  // namespace muster::train
