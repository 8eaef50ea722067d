#include "muster/ps/server/table_files.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "muster/base/crc32c.h"
#include "muster/formats/bundle.h"

namespace muster::ps {
namespace {

constexpr int64_t kPieceFloats = int64_t{64} << 10;
constexpr uint64_t kLargestText = 4096;

std::string_view AsBytes(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// The first run with rows at or after `row`.
std::span<const RowRun>::iterator FindRun(std::span<const RowRun> runs, int64_t row) {
  return std::ranges::lower_bound(runs, row, std::less_equal(),
                                  [](const RowRun& each) { return each.first + each.count; });
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

absl::StatusOr<SavedTables> TableFiles::Save(const std::string& path, const Fetch& fetch) const {
  if (!IsHere(path) || !io::IsTemporaryName(io::Basename(path))) {
    return absl::InvalidArgumentError(
        StrCat("ps-", server_, " writes no file ", path, ": its model folder is ",
               storage_.folder.empty() ? "not known" : storage_.folder));
  }
  SavedTables saved;
  const auto write = [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const auto file, storage_.files->OpenForLargeWrite(path));
    for (uint32_t i = 0; i < variables_.size(); ++i) {
      if (!variables_[i].is_large_table()) continue;
      MUSTER_RETURN_IF_ERROR(SaveRows(i, fetch, *file, &saved.checksums));
    }
    MUSTER_RETURN_IF_ERROR(file->Sync());
    return file->Close();
  };
  const absl::Status written = write();
  if (written.ok()) return saved;
  storage_.files->Remove(path).IgnoreError();
  return Annotate(written, StrCat("ps-", server_, " saves its rows"));
}

absl::Status TableFiles::SaveRows(uint32_t variable, const Fetch& fetch, io::WritableFile& file,
                                  std::vector<uint32_t>* checksums) const {
  const int64_t cols = variables_[variable].cols;
  std::vector<float> piece;
  for (int slot = -1; slot < static_cast<int>(variables_[variable].slots()); ++slot) {
    for (const RowRun& run : placement_.GetRuns(static_cast<int>(variable), server_)) {
      uint32_t crc = 0;
      for (int64_t done = 0; done < run.count * cols; done += std::ssize(piece)) {
        piece.resize(static_cast<size_t>(std::min(run.count * cols - done, kPieceFloats)));
        MUSTER_RETURN_IF_ERROR(fetch({.variable = variable,
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

absl::Status TableFiles::TakeOwn(std::span<const RowRun> runs, int64_t first,
                                 std::span<const float> values, Slice slice,
                                 const Take& take) const {
  const int64_t cols = variables_[slice.variable].cols;
  const int64_t end = first + std::ssize(values);
  for (auto run = FindRun(runs, first / cols); run != runs.end() && run->first * cols < end;
       ++run) {
    const int64_t begin = std::max(first, run->first * cols);
    slice.count = std::min(end, (run->first + run->count) * cols) - begin;
    slice.first = run->local * cols + begin - run->first * cols;
    slice.values =
        values.subspan(static_cast<size_t>(begin - first), static_cast<size_t>(slice.count));
    MUSTER_RETURN_IF_ERROR(take(slice));
  }
  return absl::OkStatus();
}

absl::Status TableFiles::Initialize(uint32_t variable, const Take& take) const {
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
          TakeOwn(runs, first, values, {.variable = variable, .slot = slot}, take));
    }
  }
  return absl::OkStatus();
}

absl::Status TableFiles::Load(const std::string& checkpoint, const Take& take) const {
  if (checkpoint.empty()) {
    for (uint32_t i = 0; i < variables_.size(); ++i) {
      if (variables_[i].is_large_table()) MUSTER_RETURN_IF_ERROR(Initialize(i, take));
    }
    return absl::OkStatus();
  }
  if (!IsHere(checkpoint)) {
    return absl::InvalidArgumentError(StrCat("ps-", server_, " reads no checkpoint ", checkpoint,
                                             ": its model folder is ", storage_.folder));
  }
  MUSTER_ASSIGN_OR_RETURN(const auto bundle,
                          formats::BundleReader::Open(*storage_.files, checkpoint));
  std::vector<float> values;
  for (uint32_t i = 0; i < variables_.size(); ++i) {
    const Variable& table = variables_[i];
    if (!table.is_large_table()) continue;
    const std::vector<RowRun> own = placement_.GetRuns(static_cast<int>(i), server_);
    const std::span<const RowRun> runs(own);
    const auto wants = [&](int64_t first, int64_t count) {
      const auto run = FindRun(runs, first);
      return run != runs.end() && run->first < first + count;
    };
    for (size_t k = 0; k < table.tensors.size(); ++k) {
      const std::string& name = table.tensors[k];
      const auto info = bundle->tensors().find(name);
      const bool fits =
          info != bundle->tensors().end() && info->second.type == formats::DataType::kFloat &&
          info->second.bytes == sizeof(float) * static_cast<uint64_t>(table.elements());
      if (!fits) {
        return absl::FailedPreconditionError(StrCat("checkpoint ", checkpoint, " has no tensor '",
                                                    name, "' of ", table.rows, " x ", table.cols,
                                                    " floats: it is of another model"));
      }
      const Slice slice = {.variable = i, .slot = static_cast<int>(k) - 1};
      MUSTER_RETURN_IF_ERROR(
          bundle->ReadPieces(name, wants, [&](uint64_t offset, std::span<const char> piece) {
            values.resize(piece.size() / sizeof(float));
            std::memcpy(values.data(), piece.data(), values.size() * sizeof(float));
            return TakeOwn(runs, static_cast<int64_t>(offset / sizeof(float)), values, slice, take);
          }));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::ps
