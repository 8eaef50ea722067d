// PsStep: how the chief gives the servers a state and fetches it from them.
#include <algorithm>
#include <utility>

#include "muster/train/loop/hooks/checkpoint_saver.h"
#include "muster/train/parameter_server/ps_step.h"
#include "muster/train/parameter_server/saved_rows.h"

namespace muster::train {

absl::StatusOr<ps::Place> PsStep::GiveState(bool again) {
  if (again) MUSTER_RETURN_IF_ERROR(RestoreCheckpoint());
  MUSTER_RETURN_IF_ERROR(LookForServersInFolder());
  if (!servers_save_ && !session_.variables.is_whole()) {
    MUSTER_RETURN_IF_ERROR(session_.variables.AllocateRest());
    if (!session_.checkpoint.prefix.empty()) MUSTER_RETURN_IF_ERROR(RestoreCheckpoint());
  }
  const RecordCounts records = session_.data.records.value_or(RecordCounts());
  const ps::Counts counts = {.trained = records.trained,
                             .dropped = records.dropped,
                             .repeated = records.repeated,
                             .known = session_.data.records.has_value()};
  if (!again) examples_ = counts.work();
  ps::Place place = {.step = session_.step, .positions = session_.data.positions, .counts = counts};
  // At first a chief with all weights in its memory may have changed them (warm start).
  if (servers_save_ && (again || !session_.variables.is_whole())) {
    place.checkpoint = session_.checkpoint.prefix;
  }
  return place;
}

absl::Status PsStep::LookForServersInFolder() {
  servers_save_ = false;
  if (std::ranges::none_of(variables_, &ps::Variable::is_saved_by_servers)) return absl::OkStatus();
  const std::string path =
      io::TemporaryPath(io::JoinPath(session_.config.model_dir, "model.ckpt-look"));
  const std::string text = StrCat("incarnation ", spec_.self.incarnation, " of the chief, at ",
                                  session_.clock.MonotonicNanos());
  MUSTER_ASSIGN_OR_RETURN(const auto file, session_.files.OpenForWrite(path));
  MUSTER_RETURN_IF_ERROR(file->Append(text));
  MUSTER_RETURN_IF_ERROR(file->Close());
  absl::StatusOr<int> without = client_->FindOneWithoutFolder(path, text);
  for (int server = 0; server < client_->servers(); ++server) {
    const std::string answer = ps::GetAnswerPath(path, server);
    const auto read = io::ReadFile(session_.files, answer, text.size());
    const bool is_ours = session_.files.Remove(answer).ok() && read.ok() && *read == text;
    if (without.ok() && *without < 0 && !is_ours) without = server;
  }
  session_.files.Remove(path).IgnoreError();
  MUSTER_RETURN_IF_ERROR(without.status());
  servers_save_ = *without < 0;
  if (!servers_save_ && !std::exchange(has_warned_, true)) {
    session_.progress.Warn(StrCat(
        "ps-", *without, " does not have the model folder ", session_.config.model_dir,
        ", or cannot write files there that the chief may read and remove: the chief holds the "
        "whole model in its memory and saves it for the servers"));
  }
  return absl::OkStatus();
}

absl::StatusOr<checkpoint::RowFiles> PsStep::GetRowFiles(const ps::TableSave& tables) const {
  checkpoint::RowFiles files = {.paths = tables.paths};
  SavedRowsReader saved(tables.saved);
  for (size_t i = 0; i < variables_.size(); ++i) {
    const ps::Variable& variable = variables_[i];
    if (!variable.is_saved_by_servers()) continue;
    if (variable.grows()) {
      MUSTER_RETURN_IF_ERROR(saved.AddKeys(variable, &files));
    } else {
      MUSTER_RETURN_IF_ERROR(
          saved.AddRows(variable, static_cast<int>(i), client_->placement(), &files));
    }
  }
  return files;
}

absl::Status PsStep::RestoreCheckpoint() {
  session_.data.position.reset();
  session_.data.positions.clear();
  session_.checkpoint.step = -1;
  session_.variables.BeforeChange();
  MUSTER_RETURN_IF_ERROR(RestoreSession(session_));
  if (session_.checkpoint.step < 0) {
    return absl::UnavailableError(
        StrCat("a parameter server was lost, and ", session_.config.model_dir,
               " has no checkpoint to return to: start the training again"));
  }
  if (session_.data.positions.empty() && session_.data.position.has_value()) {
    session_.data.positions = {data::SerializePosition(*session_.data.position)};
  }
  return absl::OkStatus();
}

ps::Memory PsStep::GetMemory() const {
  const Variables& variables = session_.variables;
  return [&variables](int variable, int slot) {
    return slot < 0 ? variables.views()[static_cast<size_t>(variable)].data
                    : variables.slots(variable)[static_cast<size_t>(slot)];
  };
}

absl::Status PsStep::FetchState() {
  session_.variables.BeforeChange();
  ps::TableSave tables;
  ++table_saves_;
  for (int server = 0; servers_save_ && server < client_->servers(); ++server) {
    tables.paths.push_back(io::TemporaryPath(io::JoinPath(
        session_.config.model_dir, StrCat("model.ckpt-rows-", table_saves_, ".ps-", server))));
  }
  auto place = replica_->Save(servers_save_ ? &tables : nullptr);
  absl::StatusOr<checkpoint::RowFiles> rows = checkpoint::RowFiles();
  if (place.ok() && servers_save_) rows = GetRowFiles(tables);
  if (!place.ok() || !rows.ok()) {
    for (const std::string& path : tables.paths) session_.files.Remove(path).IgnoreError();
    return place.ok() ? rows.status() : place.status();
  }
  session_.step = place->step;
  UpdateCounts();
  session_.data.positions = std::move(place->positions);
  session_.checkpoint.rows = *std::move(rows);
  return absl::OkStatus();
}

}  // namespace muster::train
