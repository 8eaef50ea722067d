#include "muster/control/life_signs.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "muster/base/strings.h"
#include "muster/process/proc.h"

namespace muster::control {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxStepBytes = 256;
constexpr int kMaxEntries = 20000;  // of a model folder; changes beyond them are not seen

// Whether the path is what TensorFlow and Keras call the file of a complete checkpoint.
bool IsCheckpoint(std::string_view path) {
  return (path.ends_with(".index") && !path.ends_with("model.ckpt-0.index")) ||
         path.ends_with(".keras") || path.ends_with(".h5");
}

// A thread of its holder renews a lease whether the task makes progress or not. The files are
// muster.lease.beat and model.ckpt-N.lease-HOLDER.
bool IsLease(const std::string& name) {
  return name.starts_with("muster.lease") || name.find(".lease-") != std::string::npos;
}

// Parses "a=1 b=2"; words of another form are skipped.
Counts CountsIn(std::string_view text) {
  Counts counts;
  for (const auto word : absl::StrSplit(ToAbsl(text), absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    const std::pair<std::string, std::string> both = absl::StrSplit(word, absl::MaxSplits('=', 1));
    int64_t count = 0;
    if (both.first.empty() || !absl::SimpleAtoi(both.second, &count)) continue;
    counts[both.first] = count;
  }
  return counts;
}

}  // namespace

// The hashes are added up, so that the order of entries does not count.
FolderState GetFolderState(const std::string& folder) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied,
                                         error);
  FolderState state;
  for (int n = 0; !error && entry != fs::recursive_directory_iterator() && n < kMaxEntries; ++n) {
    const std::string path = entry->path().string();
    struct stat info {};
    const bool counts = !IsLease(entry->path().filename().string());
    if (counts && lstat(path.c_str(), &info) == 0) {
      const uint64_t hash = std::hash<std::string>()(
          StrCat(path, ":", info.st_size, ":", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec));
      state.all += hash;
      if (IsCheckpoint(path)) state.checkpoints += hash;
    }
    entry.increment(error);
  }
  return state;
}

LifeSigns::LifeSigns(LifeSignsOptions options, int64_t now_nanos)
    : options_(std::move(options)),
      looked_at_(now_nanos),
      alive_at_(now_nanos),
      model_looked_at_(now_nanos) {
  if (!options_.model_dir.empty()) model_state_ = GetFolderState(options_.model_dir);
}

void LifeSigns::LookAtStep() {
  const auto text = process::ReadSmallFile(options_.step_file, kMaxStepBytes);
  if (!text || *text == step_text_) return;
  step_text_ = *text;
  alive_at_ = looked_at_;
  int64_t step = 0;
  const auto parsed = std::from_chars(text->data(), text->data() + text->size(), step);
  if (parsed.ec != std::errc() || step < 0) return;
  step_ = step;
  counts_ = CountsIn({parsed.ptr, text->data() + text->size()});
}

void LifeSigns::LookAtModel(bool last) {
  const double passed = static_cast<double>(looked_at_ - model_looked_at_) * 1e-9;
  if (options_.model_dir.empty() || (passed < options_.look_seconds && !last)) return;
  model_looked_at_ = looked_at_;
  const FolderState state = GetFolderState(options_.model_dir);
  if (state.all != model_state_.all) alive_at_ = looked_at_;
  // If all files are gone, the change is not a new checkpoint.
  if (state.checkpoints != model_state_.checkpoints && state.checkpoints != 0) saved_ = true;
  model_state_ = state;
}

void LifeSigns::Look(int64_t now_nanos, int64_t last_output_nanos, bool last) {
  looked_at_ = now_nanos;
  LookAtStep();
  LookAtModel(last);
  alive_at_ = std::max(alive_at_, std::min(last_output_nanos, now_nanos));
}

}  // namespace muster::control
