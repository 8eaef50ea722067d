// Server: a running parameter server: a ServerState that is reached over connections, with a thread
// for each.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "muster/base/status.h"
#include "muster/net/transport/channel.h"
#include "muster/net/transport/handshake.h"
#include "muster/ps/server/request.h"
#include "muster/ps/server/server_state.h"
#include "muster/ps/server/table_files.h"

namespace muster::ps {

// Thread-safe.
class Server {
 public:
  using Note = std::function<void(const std::string& text)>;
  // `variables` and `placement` must outlive the server. `note`, which may be empty, is for people:
  // which task was refused, and for which task the others wait. It is called on the server's own
  // threads. With `storage` the server saves and loads its tables (TableFiles) by itself.
  static absl::StatusOr<std::unique_ptr<Server>> Create(const ServerSpec& spec,
                                                        std::span<const Variable> variables,
                                                        const Placement& placement, Note note = {},
                                                        TableStorage storage = {});
  // Closes all connections.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves a worker that has authenticated itself. Returns at once.
  void Serve(const net::transport::Peer& peer, std::unique_ptr<net::transport::Stream> stream);

  // Waits up to `seconds` until the chief has reported that training is over, or until may_go() or
  // stopped(). In each case it then waits up to `seconds` again until all workers have
  // disconnected. Returns whether training is over.
  bool WaitForEnd(double seconds);
  // Whether no worker is connected.
  bool alone();
  // The number of connection threads; those of ended connections are removed when the next
  // connection arrives.
  size_t threads();
  // An error once the chief has stopped training before its end. Requests get it too.
  absl::Status stopped();
  // An error if training has ended because a replica did not arrive in time (ServerState::OnTick).
  absl::Status failure();
  // Called when this server was told to end: asks the chief to save. WaitForEnd then returns when
  // may_go().
  void AskForSave();
  // After AskForSave. may_go(): whether there is no state here that must be saved. is_saved():
  // whether the chief is saving it.
  bool may_go();
  bool is_saved();

 private:
  using Connection = ServerState::Connection;
  Server(const ServerSpec& spec, std::span<const Variable> variables, const Placement& placement,
         Note note, TableStorage storage, std::unique_ptr<net::transport::Interrupt> stop);
  void Converse(Connection id, int64_t incarnation, net::transport::Channel& channel);
  // Returns when it has an answer. Until then it sends the worker a keep-alive every second, which
  // says which replica the answer waits for.
  absl::Status Handle(const net::transport::Message& message, net::transport::Channel& channel,
                      Request* request);
  // The requests about files, which take long: the state is locked for each piece alone.
  absl::Status HandleFiles(const net::transport::Message& message, Connection from,
                           net::transport::Channel& channel, Request* request);
  // Runs `work` on another thread, and sends keep-alives meanwhile. The connection is lost, or this
  // server ends: `given_up` becomes true.
  absl::Status RunBeside(net::transport::Channel& channel, std::atomic<bool>& given_up,
                         const std::function<absl::Status()>& work);
  absl::Status TellAlive(const std::string& awaited, net::transport::Channel& channel);
  void Tick(const std::stop_token& stop);

  const Note note_;
  const std::unique_ptr<net::transport::Interrupt> stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable_any tick_;  // the ticker's own: a request must not wake it
  ServerState state_;
  const TableFiles tables_;
  Connection last_connection_ = 0;
  std::set<Connection> ended_;                  // their threads do not use mutex_ any more
  std::map<Connection, std::jthread> threads_;  // one for each connection
  std::jthread ticker_;
};

}  // namespace muster::ps
