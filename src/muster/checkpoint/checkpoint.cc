#include "muster/checkpoint/checkpoint.h"

#include <functional>
#include <map>
#include <optional>

#include "absl/strings/str_join.h"

#include "muster/base/nearest.h"
#include "muster/checkpoint/checkpoint_state.h"

namespace muster::checkpoint {
namespace {

constexpr std::string_view kGlobalStep = "global_step";
constexpr std::string_view kSlots = "training/";
constexpr std::string_view kIndex = ".index";
constexpr int kMostListings = 5;  // of a folder in which saves remove what was listed

std::string Describe(formats::DataType type, std::span<const int64_t> shape) {
  return StrCat(formats::DataTypeName(type), " [", absl::StrJoin(shape, ", "), "]");
}

bool Fits(const formats::TensorInfo& info, const Tensor& tensor) {
  if (info.type != tensor.type || info.shape.size() != tensor.shape.size()) return false;
  if (!tensor.resize) return info.shape == tensor.shape;
  // Memory is allocated for the sizes that the file states, so the file must really have that many
  // bytes.
  uint64_t row_bytes = formats::DataTypeBytes(info.type);
  for (size_t i = 1; i < info.shape.size(); ++i) {
    if (info.shape[i] != tensor.shape[i]) return false;
    row_bytes *= static_cast<uint64_t>(info.shape[i]);
  }
  const int64_t rows = info.shape.front();
  return rows >= 0 && info.bytes % row_bytes == 0 &&
         info.bytes / row_bytes == static_cast<uint64_t>(rows);
}

// Returns the prefixes of all checkpoints in the order in which they are tried: that of the state
// file first, then the others from the highest step down.
absl::StatusOr<std::vector<std::string>> NewestFirst(io::FileSystem& files,
                                                     const std::string& folder) {
  std::vector<std::string> prefixes;
  const absl::StatusOr<CheckpointState> state = ReadState(files, folder);
  if (!state.ok() && !absl::IsDataLoss(state.status())) return state.status();
  if (state.ok() && !state->latest.empty()) prefixes.push_back(io::JoinPath(folder, state->latest));

  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok() && !absl::IsNotFound(names.status())) return names.status();
  if (!names.ok()) return prefixes;
  std::map<int64_t, std::string, std::greater<>> by_step;
  for (const std::string& name : *names) {
    if (const std::optional<int64_t> step = ParseIndexStep(name)) {
      by_step[*step] = io::JoinPath(folder, name.substr(0, name.rfind('.')));
    }
  }
  for (auto& [step, prefix] : by_step) {
    if (prefixes.empty() || prefix != prefixes.front()) prefixes.push_back(std::move(prefix));
  }
  return prefixes;
}

// Why the checkpoint that the state file names, which has no index, is broken: it has data files.
// Not one without any file, which a user has removed, nor one that a save has removed since the
// state file was read: then there is a newer one.
absl::StatusOr<std::string> DescribeLostIndex(io::FileSystem& files, const std::string& prefix) {
  const std::string name = io::Basename(prefix);
  const std::optional<int64_t> step = ParseIndexStep(StrCat(name, kIndex));
  const absl::StatusOr<std::vector<std::string>> names = files.List(io::Dirname(prefix));
  if (absl::IsNotFound(names.status())) return "";
  MUSTER_RETURN_IF_ERROR(names.status());
  bool has_data = false;
  for (const std::string& other : *names) {
    has_data = has_data || other.starts_with(StrCat(name, ".data-"));
    if (step && ParseIndexStep(other).value_or(-1) > *step) return "";
  }
  return has_data ? StrCat(prefix, kIndex, " is missing, and its data files are there") : "";
}

// Calls `use` with one prefix after the other until it succeeds or fails with anything but
// DATA_LOSS and NOT_FOUND. Returns the failures before the success. The folder is listed again if
// all that were in it are gone and others have come: a save keeps only the newest ones.
template <typename Use>
absl::StatusOr<std::vector<std::string>> TryNewestFirst(io::FileSystem& files,
                                                        const std::string& folder, Use&& use) {
  std::vector<std::string> causes, before;
  for (int listing = 0; causes.empty() && listing < kMostListings; ++listing) {
    MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> prefixes, NewestFirst(files, folder));
    if (prefixes == before) break;
    for (const std::string& prefix : prefixes) {
      const absl::Status status = use(prefix);
      if (status.ok()) return causes;
      if (!absl::IsDataLoss(status) && !absl::IsNotFound(status)) return status;
      std::string cause(status.message());
      if (absl::IsNotFound(status) &&
          absl::IsNotFound(files.Stat(StrCat(prefix, kIndex)).status())) {
        MUSTER_ASSIGN_OR_RETURN(cause, DescribeLostIndex(files, prefix));
      }
      if (!cause.empty()) causes.push_back(std::move(cause));
    }
    before = std::move(prefixes);
  }
  if (causes.empty()) {
    return absl::NotFoundError(
        StrCat("there is no checkpoint in ", folder, ": train a model into it first"));
  }
  return absl::DataLossError(StrCat(
      "there is no intact checkpoint in ", folder,
      "; put back a copy, or remove the folder to start over: ", absl::StrJoin(causes, "; ")));
}

absl::Status RestoreAll(io::FileSystem& files, const std::string& prefix,
                        std::span<const Tensor> tensors, Restored* restored) {
  MUSTER_ASSIGN_OR_RETURN(const auto bundle, formats::BundleReader::Open(files, prefix));
  MUSTER_RETURN_IF_ERROR(Annotate(Restore(*bundle, tensors), prefix));
  *restored = Restored();
  restored->prefix = prefix;
  MUSTER_ASSIGN_OR_RETURN(restored->step, GlobalStep(*bundle));
  for (const auto& [name, info] : bundle->tensors()) {
    if (info.type != formats::DataType::kString || !info.shape.empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> values, bundle->ReadStrings(name));
    restored->strings[name] = values.empty() ? "" : values.front();
  }
  return absl::OkStatus();
}

}  // namespace

std::string DescribePassedOver(const Found& found) {
  if (found.broken.empty()) return "";
  return StrCat("broken checkpoints were passed over for ", found.prefix, ": ",
                absl::StrJoin(found.broken, "; "));
}

absl::Status CheckNewest(const Found& found) {
  if (found.broken.empty()) return absl::OkStatus();
  return absl::DataLossError(
      StrCat("the newest checkpoint is broken: ", absl::StrJoin(found.broken, "; "),
             "; put back a copy of it, or give --fall-back to take ", found.prefix));
}

absl::StatusOr<std::string> Latest(io::FileSystem& files, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(Found found, FindLatest(files, folder));
  return std::move(found.prefix);
}

absl::StatusOr<Found> FindLatest(io::FileSystem& files, const std::string& folder, bool verify) {
  Found found;
  const auto check = [&](const std::string& candidate) -> absl::Status {
    found.prefix = candidate;
    MUSTER_ASSIGN_OR_RETURN(const auto bundle, formats::BundleReader::Open(files, candidate));
    if (!verify) return absl::OkStatus();
    for (const auto& [name, info] : bundle->tensors()) {
      if (!name.starts_with(kSlots)) MUSTER_RETURN_IF_ERROR(bundle->Verify(name));
    }
    return absl::OkStatus();
  };
  MUSTER_ASSIGN_OR_RETURN(found.broken, TryNewestFirst(files, folder, check));
  return found;
}

absl::StatusOr<Restored> RestoreLatest(io::FileSystem& files, const std::string& folder,
                                       std::span<const Tensor> tensors) {
  Restored restored;
  MUSTER_ASSIGN_OR_RETURN(restored.broken,
                          TryNewestFirst(files, folder, [&](const std::string& candidate) {
                            return RestoreAll(files, candidate, tensors, &restored);
                          }));
  restored.note = DescribePassedOver({restored.prefix, restored.broken});
  return restored;
}

absl::StatusOr<Restored> RestorePrefix(io::FileSystem& files, const std::string& prefix,
                                       std::span<const Tensor> tensors) {
  const std::string name =
      prefix.substr(0, prefix.size() - (prefix.ends_with(kIndex) ? kIndex.size() : 0));
  if (absl::IsNotFound(files.Stat(StrCat(name, kIndex)).status())) {
    return absl::NotFoundError(StrCat("there is no checkpoint ", name, " (no ", name, kIndex,
                                      "); give the prefix of one, such as DIR/model.ckpt-100"));
  }
  Restored restored;
  MUSTER_RETURN_IF_ERROR(RestoreAll(files, name, tensors, &restored));
  return restored;
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
    } else if (!Fits(found->second, tensor)) {
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
    if (tensor.is_elsewhere) {
      MUSTER_RETURN_IF_ERROR(bundle.Verify(tensor.name));
      continue;
    }
    std::span<char> memory = tensor.bytes;
    if (tensor.resize) {
      const int64_t rows = bundle.tensors().at(tensor.name).shape.front();
      MUSTER_ASSIGN_OR_RETURN(memory, tensor.resize(rows));
    }
    MUSTER_RETURN_IF_ERROR(bundle.Read(tensor.name, memory));
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
