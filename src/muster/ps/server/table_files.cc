#include "muster/ps/server/table_files.h"

#include <algorithm>
#include <utility>

#include "muster/base/crc32c.h"
#include "muster/ps/server/key_files.h"
#include "muster/ps/server/row_runs.h"

namespace muster::ps {
namespace {

constexpr int64_t kPieceFloats = int64_t{64} << 10;
constexpr uint64_t kLargestText = 4096;

std::string_view AsBytes(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

}  // namespace

TableFiles::TableFiles(TableStorage storage, std::span<const Variable> variables,
                       const Placement& placement, int server)
    : storage_(std::move(storage)), variables_(variables), placement_(placement), server_(server) {}

bool TableFiles::IsHere(const std::string& path) const {
  return storage_.files != nullptr && path == io::JoinPath(storage_.folder, io::Basename(path));
}

std::string TableFiles::ReadFile(const std::string& path) const {
  if (!IsHere(path) || !io::IsTemporaryName(io::Basename(path))) return "";
  const auto text = io::ReadFile(*storage_.files, path, kLargestText);
  if (!text.ok()) return "";
  const auto answer = storage_.files->OpenForWrite(GetAnswerPath(path, server_));
  const bool is_written = answer.ok() && (*answer)->Append(*text).ok() && (*answer)->Close().ok();
  return is_written ? *text : "";
}

absl::StatusOr<SavedTables> TableFiles::Save(const std::string& path, TableState& state) const {
  if (!IsHere(path) || !io::IsTemporaryName(io::Basename(path))) {
    return absl::InvalidArgumentError(
        StrCat("ps-", server_, " writes no file ", path, ": its model folder is ",
               storage_.folder.empty() ? "not known" : storage_.folder));
  }
  SavedTables saved;
  const auto write = [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const auto file, storage_.files->OpenForLargeWrite(path));
    for (uint32_t i = 0; i < variables_.size(); ++i) {
      if (!variables_[i].is_saved_by_servers()) continue;
      MUSTER_RETURN_IF_ERROR(variables_[i].grows()
                                 ? SaveKeys(variables_[i], i, state, *file, &saved)
                                 : SaveRows(i, state, *file, &saved.checksums));
    }
    MUSTER_RETURN_IF_ERROR(file->Sync());
    return file->Close();
  };
  const absl::Status written = write();
  if (written.ok()) return saved;
  storage_.files->Remove(path).IgnoreError();
  const absl::Status named = Annotate(written, StrCat("ps-", server_, " saves its rows"));
  if (!absl::IsResourceExhausted(named)) return named;
  return absl::ResourceExhaustedError(
      StrCat(named.message(),
             "; make room, such as by removing older checkpoints (the next one is written before "
             "--keep-checkpoints removes any); the same command continues"));
}

absl::Status TableFiles::SaveRows(uint32_t variable, TableState& state, io::WritableFile& file,
                                  std::vector<uint32_t>* checksums) const {
  const int64_t cols = variables_[variable].cols;
  std::vector<float> piece;
  for (int slot = -1; slot < static_cast<int>(variables_[variable].slots()); ++slot) {
    for (const RowRun& run : placement_.GetRuns(static_cast<int>(variable), server_)) {
      uint32_t crc = 0;
      for (int64_t done = 0; done < run.count * cols; done += std::ssize(piece)) {
        piece.resize(static_cast<size_t>(std::min(run.count * cols - done, kPieceFloats)));
        MUSTER_RETURN_IF_ERROR(state.Fetch({.variable = variable,
                                            .slot = slot,
                                            .first = run.local * cols + done,
                                            .count = std::ssize(piece)},
                                           piece));
        crc = ExtendCrc32c(crc, AsBytes(piece));
        MUSTER_RETURN_IF_ERROR(file.Append(AsBytes(piece)));
      }
      checksums->push_back(crc);
    }
  }
  return absl::OkStatus();
}

absl::Status TableFiles::Initialize(uint32_t variable, TableState& state) const {
  const Variable& table = variables_[variable];
  const auto runs = placement_.GetRuns(static_cast<int>(variable), server_);
  std::vector<float> piece(static_cast<size_t>(std::min(table.elements(), kPieceFloats)));
  const auto fill_next = storage_.initial(static_cast<int>(variable));
  for (int slot = -1; slot < static_cast<int>(table.slots()); ++slot) {
    if (slot >= 0) {
      std::ranges::fill(piece, table.optimizer->slots()[static_cast<size_t>(slot)].initial_value);
    }
    for (int64_t first = 0; first < table.elements(); first += std::ssize(piece)) {
      const auto count = std::min<int64_t>(std::ssize(piece), table.elements() - first);
      const std::span<float> values = std::span(piece).first(static_cast<size_t>(count));
      if (slot < 0) fill_next(values);
      MUSTER_RETURN_IF_ERROR(
          LoadOwn(runs, table.cols, first, values, {.variable = variable, .slot = slot}, state));
    }
  }
  return absl::OkStatus();
}

absl::Status TableFiles::LoadRows(uint32_t variable, const formats::BundleReader& bundle,
                                  const std::string& checkpoint, TableState& state) const {
  const Variable& table = variables_[variable];
  const auto runs = placement_.GetRuns(static_cast<int>(variable), server_);
  for (size_t k = 0; k < table.tensors.size(); ++k) {
    const std::string& name = table.tensors[k];
    const auto info = bundle.tensors().find(name);
    const bool fits = info != bundle.tensors().end() &&
                      info->second.type == formats::DataType::kFloat &&
                      info->second.bytes == sizeof(float) * static_cast<uint64_t>(table.elements());
    if (!fits) {
      return absl::FailedPreconditionError(StrCat("checkpoint ", checkpoint, " has no tensor '",
                                                  name, "' of ", table.rows, " x ", table.cols,
                                                  " floats: it is of another model"));
    }
    MUSTER_RETURN_IF_ERROR(LoadTensor(bundle, name, runs, table.cols,
                                      {.variable = variable, .slot = static_cast<int>(k) - 1},
                                      state));
  }
  return absl::OkStatus();
}

absl::Status TableFiles::Load(const std::string& checkpoint, TableState& state) const {
  if (checkpoint.empty()) {
    for (uint32_t i = 0; i < variables_.size(); ++i) {
      // A table that grows begins without keys.
      if (!variables_[i].is_saved_by_servers() || variables_[i].grows()) continue;
      MUSTER_RETURN_IF_ERROR(Initialize(i, state));
    }
    return absl::OkStatus();
  }
  if (!IsHere(checkpoint)) {
    return absl::InvalidArgumentError(StrCat("ps-", server_, " reads no checkpoint ", checkpoint,
                                             ": its model folder is ", storage_.folder));
  }
  MUSTER_ASSIGN_OR_RETURN(const auto bundle,
                          formats::BundleReader::Open(*storage_.files, checkpoint));
  for (uint32_t i = 0; i < variables_.size(); ++i) {
    if (!variables_[i].is_saved_by_servers()) continue;
    MUSTER_RETURN_IF_ERROR(
        variables_[i].grows()
            ? LoadKeys(variables_[i], i, server_, placement_.servers(), *bundle, checkpoint, state)
            : LoadRows(i, *bundle, checkpoint, state));
  }
  return absl::OkStatus();
}

}  // namespace muster::ps
