// Server: the requests about files of the model folder.
#include <algorithm>
#include <chrono>
#include <utility>

#include "muster/ps/server/server.h"

namespace muster::ps {

using net::transport::Channel;
using net::transport::Message;

absl::Status Server::RunBeside(Channel& channel, std::atomic<bool>& given_up,
                               const std::function<absl::Status()>& work) {
  absl::Status result, told;
  bool is_done = false;
  std::mutex mutex;
  std::condition_variable done;
  {
    const std::jthread worker([&] {
      absl::Status worked = work();
      const std::lock_guard lock(mutex);
      result = std::move(worked);
      is_done = true;
      done.notify_all();
    });
    std::unique_lock lock(mutex);
    while (!done.wait_for(lock, std::chrono::seconds(1), [&] { return is_done; })) {
      if (given_up) continue;
      lock.unlock();
      told = stop_->is_set() ? stop_->status() : TellAlive("", channel);
      given_up = !told.ok();
      lock.lock();
    }
  }
  return told.ok() ? result : told;
}

absl::Status Server::HandleFiles(const Message& message, Connection from, Channel& channel,
                                 Request* request) {
  request->Set(Empty());
  {
    const std::lock_guard lock(mutex_);
    MUSTER_RETURN_IF_ERROR(state_.CheckChief(from));
  }
  std::atomic<bool> given_up{false};
  if (message.type == kReadFile) {
    MUSTER_ASSIGN_OR_RETURN(const auto file, Parse<ReadFile>(message.bytes()));
    return RunBeside(channel, given_up, [&] {
      request->Set(FileText{.text = tables_.ReadFile(file.path)});
      return absl::OkStatus();
    });
  }
  const auto check = [&] {
    return given_up ? absl::CancelledError("the chief's connection was lost") : absl::OkStatus();
  };
  if (message.type == kSaveTables) {
    MUSTER_ASSIGN_OR_RETURN(const auto save, Parse<SaveTables>(message.bytes()));
    const auto fetch = [&](Slice slice, std::span<float> values) -> absl::Status {
      MUSTER_RETURN_IF_ERROR(check());
      slice.generation = save.generation;
      const std::lock_guard lock(mutex_);
      MUSTER_ASSIGN_OR_RETURN(const std::span<const float> own, state_.OnFetch(from, slice));
      std::ranges::copy(own, values.begin());
      return absl::OkStatus();
    };
    return RunBeside(channel, given_up, [&]() -> absl::Status {
      MUSTER_ASSIGN_OR_RETURN(SavedTables saved, tables_.Save(save.path, fetch));
      request->Set(std::move(saved));
      return absl::OkStatus();
    });
  }
  MUSTER_ASSIGN_OR_RETURN(const auto load, Parse<LoadTables>(message.bytes()));
  const auto take = [&](Slice slice) -> absl::Status {
    MUSTER_RETURN_IF_ERROR(check());
    slice.generation = load.generation;
    const std::lock_guard lock(mutex_);
    return state_.OnLoad(from, slice);
  };
  return RunBeside(channel, given_up, [&] { return tables_.Load(load.checkpoint, take); });
}

}  // namespace muster::ps
