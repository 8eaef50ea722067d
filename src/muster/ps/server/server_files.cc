// Server: the requests about files of the model folder.
#include <algorithm>
#include <chrono>
#include <utility>

#include "muster/ps/server/server.h"

namespace muster::ps {

using net::transport::Channel;
using net::transport::Message;

namespace {

// The server's state, for the chief's connection `from`; locked in each call alone. Calls fail once
// `given_up`.
class LockedState : public TableState {
 public:
  LockedState(std::mutex& mutex, ServerState& state, ServerState::Connection from,
              int64_t generation, const std::atomic<bool>& given_up)
      : mutex_(mutex), state_(state), from_(from), generation_(generation), given_up_(given_up) {}

  absl::Status Fetch(const Slice& slice, std::span<float> values) override {
    MUSTER_ASSIGN_OR_RETURN(const auto lock, Lock());
    Slice own = slice;
    own.generation = generation_;
    MUSTER_ASSIGN_OR_RETURN(const std::span<const float> fetched, state_.OnFetch(from_, own));
    std::ranges::copy(fetched, values.begin());
    return absl::OkStatus();
  }
  absl::Status ReadKeys(uint32_t variable, const ReadTable& read) override {
    MUSTER_ASSIGN_OR_RETURN(const auto lock, Lock());
    MUSTER_ASSIGN_OR_RETURN(const auto* const table,
                            state_.OnReadKeys(from_, generation_, variable));
    read(*table);
    return absl::OkStatus();
  }
  absl::Status Load(const Slice& slice) override {
    MUSTER_ASSIGN_OR_RETURN(const auto lock, Lock());
    Slice own = slice;
    own.generation = generation_;
    return state_.OnLoad(from_, own);
  }
  absl::Status LoadKeys(const KeySlice& slice) override {
    MUSTER_ASSIGN_OR_RETURN(const auto lock, Lock());
    KeySlice own = slice;
    own.generation = generation_;
    return state_.OnLoadKeys(from_, own);
  }

 private:
  absl::StatusOr<std::unique_lock<std::mutex>> Lock() {
    if (given_up_) return absl::CancelledError("the chief's connection was lost");
    return std::unique_lock(mutex_);
  }

  std::mutex& mutex_;
  ServerState& state_;
  const ServerState::Connection from_;
  const int64_t generation_;
  const std::atomic<bool>& given_up_;
};

}  // namespace

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
  if (message.type == kSaveTables) {
    MUSTER_ASSIGN_OR_RETURN(const auto save, Parse<SaveTables>(message.bytes()));
    LockedState state(mutex_, state_, from, save.generation, given_up);
    return RunBeside(channel, given_up, [&]() -> absl::Status {
      MUSTER_ASSIGN_OR_RETURN(SavedTables saved, tables_.Save(save.path, state));
      request->Set(std::move(saved));
      return absl::OkStatus();
    });
  }
  MUSTER_ASSIGN_OR_RETURN(const auto load, Parse<LoadTables>(message.bytes()));
  LockedState state(mutex_, state_, from, load.generation, given_up);
  return RunBeside(channel, given_up, [&] { return tables_.Load(load.checkpoint, state); });
}

}  // namespace muster::ps
