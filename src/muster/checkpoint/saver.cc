#include "muster/checkpoint/saver.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"

#include "muster/checkpoint/best.h"
#include "muster/checkpoint/checkpoint_state.h"

namespace muster::checkpoint {
namespace {

absl::Status WriteBundle(io::FileSystem& files, const std::string& prefix, int64_t step,
                         std::span<const Tensor> tensors, const Strings& strings,
                         const formats::BundleWriter::ReadPiece& read, const RowFiles& rows) {
  MUSTER_ASSIGN_OR_RETURN(auto writer, formats::BundleWriter::Create(files, prefix));
  for (const std::string& path : rows.paths) writer->AddFile(path);
  for (const RowFiles::Rows& each : rows.tensors) {
    MUSTER_RETURN_IF_ERROR(writer->AddRows(each.name, each.type, each.shape, each.rows));
  }
  for (const Tensor& tensor : tensors) {
    MUSTER_RETURN_IF_ERROR(read ? writer->AddPieces(tensor.name, tensor.type, tensor.shape, read)
                                : writer->Add(tensor.name, tensor.type, tensor.shape,
                                              {tensor.bytes.data(), tensor.bytes.size()}));
  }
  MUSTER_RETURN_IF_ERROR(writer->Add("global_step", formats::DataType::kInt64, {},
                                     {reinterpret_cast<const char*>(&step), sizeof step}));
  for (const auto& [name, value] : strings) {
    MUSTER_RETURN_IF_ERROR(writer->AddStrings(name, {}, {&value, 1}));
  }
  return writer->Finish();
}

uint64_t CountBytes(std::span<const Tensor> tensors, const RowFiles& rows) {
  uint64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.bytes.size();
  for (const RowFiles::Rows& each : rows.tensors) {
    uint64_t size = formats::DataTypeBytes(each.type);
    for (const int64_t length : each.shape) size *= static_cast<uint64_t>(length);
    bytes += size;
  }
  return bytes;
}

absl::Status DescribeSave(const absl::Status& status, const std::string& prefix, uint64_t bytes) {
  if (!absl::IsResourceExhausted(status)) return Annotate(status, StrCat("saving ", prefix));
  constexpr uint64_t kMegabyte = 1'000'000;
  return absl::ResourceExhaustedError(StrCat(
      "saving ", prefix, " (", (bytes + kMegabyte - 1) / kMegabyte, " MB): ", status.message(),
      "; make room: this one is written before --keep-checkpoints removes an older one"));
}

// Removes the index first, so that at any moment the checkpoint is either intact or gone. A file
// that cannot be removed stays: that is no reason to stop a training.
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

// Adds to `state` the checkpoints that are later than its latest one, which were written by a
// process that was killed before it could name them.
void AdoptUnnamed(io::FileSystem& files, const std::string& folder, double seconds,
                  CheckpointState* state) {
  const std::optional<int64_t> latest = ParseIndexStep(state->latest + ".index");
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!latest || !names.ok()) return;
  std::map<int64_t, std::string> beyond;
  for (const std::string& name : *names) {
    const std::optional<int64_t> step = ParseIndexStep(name);
    if (step && *step > *latest) beyond[*step] = name.substr(0, name.rfind('.'));
  }
  for (auto& [step, name] : beyond) {
    if (std::find(state->all.begin(), state->all.end(), name) != state->all.end()) continue;
    state->all.push_back(std::move(name));
    state->timestamps.push_back(seconds);
  }
}

}  // namespace

void RemoveLeftovers(io::FileSystem& files, const std::string& folder,
                     std::span<const std::string> kept) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return;
  const absl::flat_hash_set<std::string> present(names->begin(), names->end());
  for (const std::string& name : *names) {
    const size_t data = name.rfind(".data-");
    const bool is_data = name.starts_with("model.ckpt-") && data != std::string::npos;
    const std::string owner = is_data ? name.substr(0, data) : GetLeasedCheckpoint(name);
    const bool orphan = !owner.empty() && !present.contains(owner + ".index");
    const bool temporary = (name.starts_with(".model.ckpt-") || name.starts_with(".checkpoint.")) &&
                           io::IsTemporaryName(name);
    const std::string path = io::JoinPath(folder, name);
    if (!orphan && (!temporary || std::ranges::find(kept, path) != kept.end())) continue;
    files.Remove(path).IgnoreError();
  }
}

absl::Status RemoveCheckpoints(io::FileSystem& files, const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(folder));
  for (const std::string& name : names) {
    if (name != "checkpoint" && !name.starts_with("model.ckpt-")) continue;
    MUSTER_RETURN_IF_ERROR(files.Remove(io::JoinPath(folder, name)));
  }
  return absl::OkStatus();
}

Saver::Saver(io::FileSystem& files, std::string folder, SaverOptions options)
    : files_(files), folder_(std::move(folder)), options_(options) {}

absl::StatusOr<std::string> Saver::Save(int64_t step, std::span<const Tensor> tensors,
                                        const Strings& strings, double seconds,
                                        const formats::BundleWriter::ReadPiece& read,
                                        const RowFiles& rows) {
  const std::string name = StrCat("model.ckpt-", step);
  std::string prefix = io::JoinPath(folder_, name);
  MUSTER_RETURN_IF_ERROR(files_.MakeFolders(folder_));
  // This is done once: later leftovers are of this process, which removes its own, or of a process
  // that has replaced it.
  if (!std::exchange(cleaned_, true)) RemoveLeftovers(files_, folder_, rows.paths);
  const uint64_t bytes = CountBytes(tensors, rows);
  MUSTER_RETURN_IF_ERROR(
      DescribeSave(WriteBundle(files_, prefix, step, tensors, strings, read, rows), prefix, bytes));
  std::vector<std::string> expired;
  MUSTER_ASSIGN_OR_RETURN(const CheckpointState state, NextState(name, seconds, &expired));
  // Expired checkpoints are removed before the state file drops their names, so that a kill in
  // between leaves no checkpoint without a name.
  for (const std::string& old_name : expired) {
    RemoveCheckpoint(files_, io::JoinPath(folder_, old_name));
  }
  MUSTER_RETURN_IF_ERROR(DescribeSave(WriteState(files_, folder_, state), prefix, bytes));
  return prefix;
}

absl::StatusOr<CheckpointState> Saver::NextState(const std::string& name, double seconds,
                                                 std::vector<std::string>* expired) {
  CheckpointState old;
  if (absl::StatusOr<CheckpointState> read = ReadState(files_, folder_); read.ok()) {
    old = *std::move(read);
  } else if (!absl::IsDataLoss(read.status())) {
    return read.status();
  }
  CheckpointState state;
  state.latest = name;
  // If the clock was set back, neither all checkpoints must be kept nor all removed.
  state.last_preserved = std::min(old.last_preserved, seconds);
  if (old.last_preserved == 0) {
    state.last_preserved = options_.start_seconds > 0 ? options_.start_seconds : seconds;
  }
  old.timestamps.resize(old.all.size(), state.last_preserved);
  AdoptUnnamed(files_, folder_, seconds, &old);
  for (size_t i = 0; i < old.all.size(); ++i) {
    const std::string index = io::JoinPath(folder_, old.all[i]) + ".index";
    if (old.all[i] == name || absl::IsNotFound(files_.Stat(index).status())) continue;
    state.all.push_back(old.all[i]);
    state.timestamps.push_back(std::min(old.timestamps[i], seconds));
  }
  state.all.push_back(name);
  state.timestamps.push_back(seconds);
  if (options_.keep_max > 0) DropOldest(seconds, &state, expired);
  return state;
}

void Saver::DropOldest(double seconds, CheckpointState* state, std::vector<std::string>* expired) {
  const double hours = options_.keep_every_n_hours * 3600;
  const auto found = ReadBest(files_, folder_);
  const std::string best = found.ok() && *found ? (*found)->name : "";
  size_t i = 0;
  for (auto over = static_cast<ptrdiff_t>(state->all.size()) - options_.keep_max; over > 0;
       --over) {
    const std::string& name = state->all[i];
    const double saved = state->timestamps[i];
    if (const double next = state->last_preserved + hours; saved > next) {
      state->last_preserved = saved - next < hours ? next : saved;  // the latter after a pause
    } else if (name == best || leases_.IsLeased(files_, io::JoinPath(folder_, name), seconds)) {
      ++i;  // stays in the list and is checked again at the next save
      continue;
    } else {
      expired->push_back(name);
    }
    state->all.erase(state->all.begin() + static_cast<ptrdiff_t>(i));
    state->timestamps.erase(state->timestamps.begin() + static_cast<ptrdiff_t>(i));
  }
}

}  // namespace muster::checkpoint
