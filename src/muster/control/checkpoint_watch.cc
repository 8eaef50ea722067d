#include "muster/control/checkpoint_watch.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

namespace muster::control {
namespace {

namespace fs = std::filesystem;

// "model.ckpt-1200.index", of TensorFlow's Saver, CheckpointManager and ours -> 1200; else -1.
int64_t StepOfCheckpoint(const std::string& name) {
  constexpr std::string_view kEnd = ".index";
  if (!name.ends_with(kEnd)) return -1;
  const size_t dash = name.rfind('-');
  if (dash == std::string::npos) return -1;
  const char* const first = name.data() + dash + 1;
  const char* const last = name.data() + name.size() - kEnd.size();
  int64_t step = -1;
  const auto parsed = std::from_chars(first, last, step);
  return parsed.ec == std::errc() && parsed.ptr == last ? step : -1;
}

// The newest checkpoint's; -1: there is none; nullopt: it cannot be seen.
std::optional<int64_t> NewestStep(const std::string& folder) {
  std::error_code error;
  int64_t newest = -1;
  fs::directory_iterator entry(folder, error);
  if (error) {
    return error == std::errc::no_such_file_or_directory ? std::optional(newest) : std::nullopt;
  }
  for (; entry != fs::directory_iterator(); entry.increment(error)) {
    newest = std::max(newest, StepOfCheckpoint(entry->path().filename().string()));
    if (error) return std::nullopt;
  }
  return newest;
}

}  // namespace

CheckpointWatch::CheckpointWatch(std::string model_dir) : model_dir_(std::move(model_dir)) {
  if (!model_dir_.empty()) first_step_ = NewestStep(model_dir_).value_or(-1);
}

void CheckpointWatch::Look() {
  if (first_step_ < 0) return;
  const std::optional<int64_t> newest = NewestStep(model_dir_);
  if (!newest || *newest == first_step_) return;
  // A later one: older ones may go.
  if (*newest < first_step_) lost_step_ = first_step_;
  first_step_ = -1;
}

}  // namespace muster::control
