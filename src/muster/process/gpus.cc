#include "muster/process/gpus.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace muster::process {
namespace {

constexpr char kDevicePrefix[] = "nvidia";

std::vector<std::string> InheritedGpus(const std::string& value) {
  std::vector<std::string> gpus;
  for (absl::string_view part : absl::StrSplit(value, ',')) {
    const std::string name(ToStd(absl::StripAsciiWhitespace(part)));
    if (name.empty() || name == "-1") break;
    gpus.push_back(name);
  }
  return gpus;
}

int CountDevices(const std::string& folder) {
  int count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    int number = 0;
    // nvidiactl, nvidia-uvm and nvidia-caps are not GPUs.
    if (name.starts_with(kDevicePrefix) &&
        absl::SimpleAtoi(name.substr(sizeof kDevicePrefix - 1), &number) && number >= 0) {
      ++count;
    }
  }
  return count;
}

}  // namespace

std::vector<std::string> VisibleGpus(const std::optional<std::string>& inherited,
                                     const std::string& device_folder) {
  if (inherited) return InheritedGpus(*inherited);
  std::vector<std::string> gpus;
  // CUDA numbers the GPUs that it may open from 0; the numbers of the files may have gaps in a
  // container.
  for (int i = CountDevices(device_folder); i > 0; --i) gpus.push_back(StrCat(gpus.size()));
  return gpus;
}

absl::StatusOr<std::vector<std::optional<std::string>>> DealGpus(
    const std::vector<std::string>& visible, const std::vector<int>& wishes) {
  std::vector<std::optional<std::string>> dealt(wishes.size());
  int64_t wished = 0;
  for (int wish : wishes) {
    if (wish < 0) {
      return absl::InvalidArgumentError(
          StrCat("deal out GPUs: a task wants ", wish, ": give a number from 0 up"));
    }
    wished += wish;
  }
  if (wished == 0) return dealt;
  if (wished > static_cast<int64_t>(visible.size())) {
    return absl::FailedPreconditionError(
        StrCat("deal out GPUs: the tasks want ", wished, ", this machine has ", visible.size(),
               visible.empty() ? "" : StrCat(" (", absl::StrJoin(visible, ","), ")"),
               ": ask for fewer (--gpus, or the limits nvidia.com/gpu) or start fewer tasks"));
  }
  auto next = visible.begin();
  for (size_t task = 0; task < wishes.size(); ++task) {
    const auto end = next + wishes[task];
    dealt[task] = absl::StrJoin(next, end, ",");
    next = end;
  }
  return dealt;
}

}  // namespace muster::process
