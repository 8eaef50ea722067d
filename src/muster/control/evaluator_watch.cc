#include "muster/control/evaluator_watch.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <climits>
#include <memory>
#include <utility>

#include "muster/formats/event.h"

namespace muster::control {
namespace {

constexpr double kNanosASecond = 1e9;
// A program that waits wakes now and then, and TensorFlow's says every ten minutes that it waits;
// with its log level INFO, each time that it looks for a checkpoint.
constexpr double kWaitingCpuShare = 0.01, kWaitingCpuSeconds = 0.5;
constexpr int64_t kWaitingBytes = 1024;
// The folder is looked at for no more than a twentieth of the time.
constexpr int64_t kMinPauseNanos = 1'000'000'000;
constexpr int64_t kPausePerLook = 20;
constexpr uint64_t kMaxCheckpointBytes = uint64_t{1} << 20;
constexpr uint64_t kMaxEventBytes = uint64_t{256} << 20;
constexpr std::string_view kEventFile = "events.out.tfevents.";
constexpr std::string_view kEvalFolder = "eval";
constexpr std::string_view kCheckpointName = "model.ckpt-";

// "/m" of "/m/eval/events.out.tfevents.1.host", else "".
std::string ModelDirOfEvents(const std::string& path) {
  const std::string folder = io::Dirname(path);
  const bool fits =
      io::Basename(path).starts_with(kEventFile) && io::Basename(folder).starts_with(kEvalFolder);
  return fits ? io::Dirname(folder) : "";
}

std::string ModelDirOfOpenFiles(pid_t pid) {
  const std::string folder = StrCat("/proc/", pid, "/fd");
  const std::unique_ptr<DIR, int (*)(DIR*)> open_files(opendir(folder.c_str()), closedir);
  if (open_files == nullptr) return "";
  while (const dirent* const entry = readdir(open_files.get())) {
    char path[PATH_MAX];
    const ssize_t size = readlink(StrCat(folder, "/", entry->d_name).c_str(), path, sizeof path);
    if (size <= 0) continue;
    std::string found = ModelDirOfEvents(std::string(path, static_cast<size_t>(size)));
    if (!found.empty()) return found;
  }
  return "";
}

std::optional<int64_t> LastStep(io::FileSystem& files, const std::string& path) {
  const auto events = formats::ReadScalarEvents(files, path);
  if (!events.ok() || events->empty()) return std::nullopt;
  int64_t last = 0;
  for (const formats::ScalarEvent& event : *events) last = std::max(last, event.step);
  return last;
}

}  // namespace

// `model_checkpoint_path: "model.ckpt-40"`, or a path with that name.
std::optional<int64_t> NewestCheckpoint(io::FileSystem& files, const std::string& model_dir) {
  const auto text = io::ReadFile(files, io::JoinPath(model_dir, "checkpoint"), kMaxCheckpointBytes);
  if (!text.ok()) return std::nullopt;
  const std::string line = text->substr(0, text->find('\n'));
  const size_t at = line.rfind(kCheckpointName);
  if (!line.starts_with("model_checkpoint_path:") || at == std::string::npos) return std::nullopt;
  const char* const begin = line.data() + at + kCheckpointName.size();
  int64_t step = 0;
  const auto parsed = std::from_chars(begin, line.data() + line.size(), step);
  if (parsed.ec != std::errc() || *parsed.ptr != '"') return std::nullopt;
  return step;
}

EvaluatorWatch::EvaluatorWatch(std::string model_dir, int64_t now_nanos, io::FileSystem* files)
    : files_(files),
      model_dir_(std::move(model_dir)),
      changed_at_(now_nanos),
      worked_at_(now_nanos) {}

// Of the event files that have changed since the last look.
std::optional<int64_t> EvaluatorWatch::EvaluatedStep() {
  std::optional<int64_t> step;
  const auto folders = files_->List(model_dir_).value_or(std::vector<std::string>());
  for (const std::string& folder : folders) {
    if (!folder.starts_with(kEvalFolder)) continue;
    const std::string path = io::JoinPath(model_dir_, folder);
    for (const auto& name : files_->List(path).value_or(std::vector<std::string>())) {
      const std::string file = io::JoinPath(path, name);
      const auto info = files_->Stat(file);
      if (!name.starts_with(kEventFile) || !info.ok() || info->size > kMaxEventBytes) continue;
      EventFile& known = events_[file];
      if (const auto size = static_cast<int64_t>(info->size); known.size != size) {
        known = {size, LastStep(*files_, file)};
      }
      if (known.step) step = std::max(step.value_or(0), *known.step);
    }
  }
  return step;
}

void EvaluatorWatch::LookAtFolder(int64_t now_nanos,
                                  const std::function<std::vector<pid_t>()>& processes) {
  auto newest = model_dir_.empty() ? std::nullopt : NewestCheckpoint(*files_, model_dir_);
  if (!newest) {
    for (const pid_t pid : processes()) {
      const std::string found = ModelDirOfOpenFiles(pid);
      if (found.empty()) continue;
      model_dir_ = found;
      newest = NewestCheckpoint(*files_, model_dir_);
      break;
    }
  }
  if (model_dir_.empty()) return;
  const FolderState state = GetFolderState(model_dir_);
  if (state != folder_) changed_at_ = worked_at_ = now_nanos;
  folder_ = state;
  using Newest = job::EvaluatorWork::Newest;
  const auto evaluated = newest ? EvaluatedStep() : std::nullopt;
  work_.newest = !newest                              ? Newest::kUnknown
                 : evaluated && *evaluated >= *newest ? Newest::kEvaluated
                                                      : Newest::kNotEvaluated;
}

void EvaluatorWatch::Look(const Sample& sample,
                          const std::function<std::vector<pid_t>()>& processes) {
  const int64_t now = sample.now_nanos;
  if (now >= folder_look_at_) {
    const auto begin = std::chrono::steady_clock::now();
    LookAtFolder(now, processes);
    const auto took = std::chrono::steady_clock::now() - begin;
    folder_look_at_ = now + std::max(kMinPauseNanos, kPausePerLook * took.count());
  }
  const double passed = static_cast<double>(now - worked_at_) / kNanosASecond;
  const bool computes =
      sample.cpu_seconds - cpu_then_ > kWaitingCpuSeconds + kWaitingCpuShare * passed;
  if (computes || sample.output_bytes - output_then_ > kWaitingBytes) worked_at_ = now;
  if (worked_at_ == now) {
    cpu_then_ = sample.cpu_seconds;
    output_then_ = sample.output_bytes;
  }
  work_.still_seconds = static_cast<double>(now - changed_at_) / kNanosASecond;
  work_.idle_seconds = static_cast<double>(now - worked_at_) / kNanosASecond;
}

}  // namespace muster::control
