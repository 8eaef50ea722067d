#include <algorithm>

#include "absl/container/flat_hash_set.h"

#include "muster/checkpoint/checkpoint.h"
#include "muster/checkpoint/checkpoint_state.h"

namespace muster::checkpoint {
namespace {

absl::Status WriteBundle(io::FileSystem& files, const std::string& prefix, int64_t step,
                         std::span<const Tensor> tensors,
                         std::span<const std::pair<std::string, std::string>> strings) {
  MUSTER_ASSIGN_OR_RETURN(auto writer, formats::BundleWriter::Create(files, prefix));
  for (const Tensor& tensor : tensors) {
    MUSTER_RETURN_IF_ERROR(writer->Add(tensor.name, tensor.type, tensor.shape,
                                       {tensor.bytes.data(), tensor.bytes.size()}));
  }
  MUSTER_RETURN_IF_ERROR(writer->Add("global_step", formats::DataType::kInt64, {},
                                     {reinterpret_cast<const char*>(&step), sizeof step}));
  for (const auto& [name, value] : strings) {
    MUSTER_RETURN_IF_ERROR(writer->AddStrings(name, {}, {&value, 1}));
  }
  return writer->Finish();
}

// Those of `names` whose checkpoint still has an index.
std::vector<std::string> Existing(io::FileSystem& files, const std::string& folder,
                                  std::vector<std::string> names) {
  std::erase_if(names, [&](const std::string& name) {
    return absl::IsNotFound(files.Stat(io::JoinPath(folder, name) + ".index").status());
  });
  return names;
}

// Index first, so that what is left at any moment is a whole checkpoint or none. What cannot be
// removed stays: a full folder is no reason to stop a training.
void RemoveCheckpoint(io::FileSystem& files, const std::string& prefix) {
  files.Remove(prefix + ".index").IgnoreError();
  const std::string folder = io::Dirname(prefix);
  const std::string start = io::Basename(prefix) + ".";
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (name.starts_with(start)) files.Remove(io::JoinPath(folder, name)).IgnoreError();
  }
}

// What a save that was killed leaves: temporary files, and data files without an index.
void RemoveLeftovers(io::FileSystem& files, const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return;
  const absl::flat_hash_set<std::string> present(names->begin(), names->end());
  for (const std::string& name : *names) {
    const size_t data = name.rfind(".data-");
    const bool orphan = name.starts_with("model.ckpt-") && data != std::string::npos &&
                        !present.contains(name.substr(0, data) + ".index");
    const bool temporary = (name.starts_with(".model.ckpt-") || name.starts_with(".checkpoint.")) &&
                           name.find(".tmp-") != std::string::npos;
    if (orphan || temporary) files.Remove(io::JoinPath(folder, name)).IgnoreError();
  }
}

}  // namespace

Saver::Saver(io::FileSystem& files, std::string folder, int keep)
    : files_(files), folder_(std::move(folder)), keep_(keep) {}

absl::StatusOr<std::string> Saver::Save(
    int64_t step, std::span<const Tensor> tensors,
    std::span<const std::pair<std::string, std::string>> strings) {
  const std::string name = StrCat("model.ckpt-", step);
  std::string prefix = io::JoinPath(folder_, name);
  MUSTER_RETURN_IF_ERROR(files_.MakeFolders(folder_));
  RemoveLeftovers(files_, folder_);
  MUSTER_RETURN_IF_ERROR(
      Annotate(WriteBundle(files_, prefix, step, tensors, strings), StrCat("saving ", prefix)));

  absl::StatusOr<CheckpointState> old = ReadState(files_, folder_);
  if (!old.ok() && !absl::IsDataLoss(old.status())) return old.status();
  CheckpointState state;
  state.latest = name;
  if (old.ok()) state.all = Existing(files_, folder_, std::move(old->all));
  std::erase(state.all, name);
  state.all.push_back(name);
  const size_t excess =
      keep_ > 0 ? state.all.size() - std::min<size_t>(state.all.size(), keep_) : 0;
  const std::vector<std::string> expired(state.all.begin(), state.all.begin() + excess);
  state.all.erase(state.all.begin(), state.all.begin() + excess);
  MUSTER_RETURN_IF_ERROR(Annotate(WriteState(files_, folder_, state), StrCat("saving ", prefix)));
  for (const std::string& old_name : expired) {
    RemoveCheckpoint(files_, io::JoinPath(folder_, old_name));
  }
  return prefix;
}

}  // namespace muster::checkpoint
