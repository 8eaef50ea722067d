#include "muster/checkpoint/checkpoint.h"

#include <algorithm>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"

#include "muster/base/nearest.h"

namespace muster::checkpoint {
namespace {

constexpr std::string_view kBasename = "model.ckpt-";
constexpr std::string_view kGlobalStep = "global_step";

// Whether all files of a checkpoint are there and its index is sound.
absl::StatusOr<bool> IsWhole(io::FileSystem& files, const std::string& prefix) {
  const absl::Status status = formats::BundleReader::Open(files, prefix).status();
  if (absl::IsNotFound(status) || absl::IsDataLoss(status)) return false;
  MUSTER_RETURN_IF_ERROR(status);
  return true;
}

// N of "model.ckpt-N.index".
std::optional<int64_t> StepOfIndex(std::string_view name) {
  constexpr std::string_view kSuffix = ".index";
  if (!name.starts_with(kBasename) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kBasename.size());
  name.remove_suffix(kSuffix.size());
  int64_t step;
  if (!absl::SimpleAtoi(ToAbsl(name), &step) || step < 0) return std::nullopt;
  return step;
}

std::string Describe(formats::DataType type, std::span<const int64_t> shape) {
  return StrCat(formats::DataTypeName(type), " [", absl::StrJoin(shape, ", "), "]");
}

}  // namespace

absl::StatusOr<std::string> Latest(io::FileSystem& files, const std::string& folder) {
  const absl::StatusOr<CheckpointState> state = ReadState(files, folder);
  if (!state.ok() && !absl::IsDataLoss(state.status())) return state.status();
  if (state.ok() && !state->latest.empty()) {
    std::string prefix = io::JoinPath(folder, state->latest);
    MUSTER_ASSIGN_OR_RETURN(const bool whole, IsWhole(files, prefix));
    if (whole) return prefix;
  }
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok() && !absl::IsNotFound(names.status())) return names.status();
  std::map<int64_t, std::string, std::greater<>> prefixes;
  if (names.ok()) {
    for (const std::string& name : *names) {
      if (const std::optional<int64_t> step = StepOfIndex(name)) {
        prefixes[*step] = io::JoinPath(folder, name.substr(0, name.rfind('.')));
      }
    }
  }
  for (const auto& [step, prefix] : prefixes) {
    MUSTER_ASSIGN_OR_RETURN(const bool whole, IsWhole(files, prefix));
    if (whole) return prefix;
  }
  return absl::NotFoundError(StrCat("there is no ", prefixes.empty() ? "" : "whole ",
                                    "checkpoint in ", folder, ": train a model into it first"));
}

absl::Status Restore(const formats::BundleReader& bundle, std::span<const Tensor> tensors) {
  std::vector<std::string> names;
  for (const auto& [name, info] : bundle.tensors()) names.push_back(name);
  std::vector<std::string> differences;
  for (const Tensor& tensor : tensors) {
    const auto found = bundle.tensors().find(tensor.name);
    if (found == bundle.tensors().end()) {
      differences.push_back(StrCat("'", tensor.name, "' is missing",
                                   tensors.size() < 1000 ? DidYouMean(tensor.name, names) : ""));
    } else if (found->second.type != tensor.type || found->second.shape != tensor.shape) {
      differences.push_back(StrCat("'", tensor.name, "' is ",
                                   Describe(found->second.type, found->second.shape),
                                   ", the model has ", Describe(tensor.type, tensor.shape)));
    }
  }
  if (!differences.empty()) {
    return absl::FailedPreconditionError(
        StrCat("checkpoint of another spec: ", absl::StrJoin(differences, "; ")));
  }
  for (const Tensor& tensor : tensors) {
    MUSTER_RETURN_IF_ERROR(bundle.Read(tensor.name, tensor.bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> GlobalStep(const formats::BundleReader& bundle) {
  int64_t step = 0;
  const Tensor tensor{.name = std::string(kGlobalStep),
                      .type = formats::DataType::kInt64,
                      .shape = {},
                      .bytes = {reinterpret_cast<char*>(&step), sizeof step}};
  MUSTER_RETURN_IF_ERROR(Restore(bundle, {&tensor, 1}));
  return step;
}

}  // namespace muster::checkpoint
