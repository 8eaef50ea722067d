// Client: a worker's side of the parameter servers: pulls and pushes; the chief also loads and
// saves the whole state.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/net/token.h"
#include "muster/net/transport/address.h"
#include "muster/net/transport/handshake.h"
#include "muster/net/transport/tls.h"
#include "muster/ps/client/heartbeat.h"
#include "muster/ps/client/server_connection.h"
#include "muster/ps/wire/message.h"
#include "muster/ps/wire/placement.h"
#include "muster/ps/wire/ps_options.h"
#include "muster/tables/dynamic_table_image.h"

namespace muster::ps {

struct ClientSpec {
  net::transport::Identity self = {};  // job, role, index, incarnation
  int replica = 0;                     // 0 is the chief
  PsOptions training = {};
  bool clips_by_norm = false;  // as ServerSpec::clips_by_norm()
  std::string agreement = {};
  std::vector<net::transport::Address> servers = {};
  net::transport::Protection protection = {};
  double rendezvous_seconds = 300;          // a server that is away for longer is lost permanently
  int stall_seconds = 0;                    // as in ServerConnectionSpec
  const std::atomic<bool>* stop = nullptr;  // true ends waits for servers; may be null
  // If true as well as `stop`: only this replica must end. A batch that waits for other replicas is
  // then abandoned: the call returns CANCELLED, and the client must connect again to save. May be
  // null.
  const std::atomic<bool>* leaving = nullptr;
  // For people: which replica an answer waits for. May be empty.
  std::function<void(const std::string& text)> note = {};
  std::function<bool()> has_ended = {};  // as in ServerConnectionSpec
};

// Gives the memory of a whole variable: its weights (slot -1) or one of its slots.
using Memory = std::function<float*(int variable, int slot)>;

// What servers write of a save: their rows of the tables that they save.
struct TableSave {
  std::vector<std::string> paths = {};  // by server: temporary files of the folder
  std::vector<SavedTables> saved = {};  // by server
};

// Gives the image of a whole table that grows.
using DynamicMemory = std::function<tables::DynamicTableImage*(int variable)>;

// Distinct rows of a table: their numbers in the whole table or, if the table grows, their keys.
struct Block {
  int variable = 0;
  std::span<const int32_t> rows = {};
  std::span<const int64_t> keys = {};
};

// The rows that a batch pulls, and the memory to pull into: `dense` by variable, null for tables;
// `blocks` in the order of `tables`. Dense variables are always pulled.
struct PullInto {
  std::span<const Block> tables = {};
  std::span<float* const> dense = {};
  std::span<float* const> blocks = {};
};

// The gradients that a batch pushes: `dense` by variable, empty for one without a dense gradient;
// `values` in the order of `tables`, with Variable::gradient_cols() floats for each row. A table
// that the batch did not touch must be listed too, without rows: optimizers may move it
// nevertheless.
struct Gradients {
  std::span<const std::span<const float>> dense = {};
  std::span<const Block> tables = {};
  std::span<const std::span<const float>> values = {};
};

// The errors of all calls are:
//   ABORTED    a server was lost or has another state: call Connect, and continue from the states
//              that it returns
//   CANCELLED  training is over, or `stop` is true
//   any other  ends the training
// One owner thread.
class Client {
 public:
  // `variables` must outlive the client. Does not connect yet.
  static absl::StatusOr<std::unique_ptr<Client>> Create(ClientSpec spec, const net::Token& key,
                                                        std::span<const Variable> variables);
  // Makes a client over connections of another kind. The fields of `spec` about sockets (servers,
  // protection, rendezvous_seconds, stall_seconds) are ignored.
  Client(ClientSpec spec, int servers, ServerDialer dial, std::span<const Variable> variables)
      : spec_(std::move(spec)),
        dial_(std::move(dial)),
        variables_(variables),
        placement_(variables, servers),
        connections_(static_cast<size_t>(servers)),
        wires_(static_cast<size_t>(servers)) {}

  // Closes all connections and connects to all servers again; returns the state that each reports,
  // the lead's first. UNAVAILABLE names the server that was not reached in time. `generation` and
  // `work`: see Hello.
  absl::StatusOr<std::vector<State>> Connect(int64_t generation = 0, int64_t work = 0);
  // Waits until the lead has a later generation, or training is over.
  absl::StatusOr<State> WaitForState(int64_t generation);
  // Waits until the data of all replicas has ended, or until a server asks for a save
  // (State::save). ABORTED if the state is lost before.
  absl::StatusOr<State> WaitForAll(int64_t generation);

  // Pulls the weights that a batch needs; the tables come from `into`, not from `request`.
  absl::StatusOr<Pulled> PullBatch(Pull request, const PullInto& into);
  // Pushes a batch; the gradients come from `gradients`, not from `request`. Returns when the push
  // counts.
  absl::StatusOr<Pushed> PushBatch(const Push& request, const Gradients& gradients);
  // Reports that this replica's data has ended.
  absl::Status Finish(const ps::Finish& finish);
  // Tells the lead that its state is invalid, because another server has lost its part.
  absl::Status TellBroken(int64_t generation, const std::string& why);

  // For the chief: asks all servers to read `text` in the temporary file at `path` and to write it
  // into another one (GetAnswerPath). Returns a server that does not; -1: all do.
  absl::StatusOr<int> FindOneWithoutFolder(const std::string& path, const std::string& text);
  // For the chief: loads a state into all servers; the lead is ready last. With `checkpoint`, the
  // servers read their tables (Variable::is_saved_by_servers) from it, or give them their initial
  // values ("").
  absl::Status LoadAll(const Ready& ready, const Memory& memory,
                       const DynamicMemory& dynamic_table = {},
                       const std::optional<std::string>& checkpoint = std::nullopt);
  // For the chief: reads one state of all servers into memory, at `step` if training is
  // synchronous. If it is asynchronous, pulls wait meanwhile. `sequence` is the number of this
  // replica's next batch. After an error the memory has an incomplete state, and all connections
  // are closed. With `tables`, the servers write theirs to its paths, all at once, and `memory`
  // gets the rest.
  absl::StatusOr<Held> SaveAll(int64_t generation, int64_t sequence, int64_t step,
                               const Memory& memory, const DynamicMemory& dynamic_table = {},
                               TableSave* tables = nullptr);
  // For the chief: tells all servers that training is over, the lead last; or, if `stopped`, that
  // it was stopped before its end.
  absl::Status End(bool stopped = false);

  // Whether there is a connection to every server; false after a batch that was abandoned.
  bool connected() const;
  const Placement& placement() const { return placement_; }
  int servers() const { return placement_.servers(); }
  const ClientSpec& spec() const { return spec_; }

 private:
  // Memory for the messages to and from one server, kept from batch to batch. With one server,
  // blocks are sent unchanged and the vectors of tables are unused.
  struct Wire {
    std::vector<std::vector<int32_t>> rows;     // by table of the request
    std::vector<std::vector<int64_t>> keys;     // by table
    std::vector<std::vector<uint32_t>> places;  // by table: the rows' places in the block
    std::vector<std::vector<float>> values;     // by table
    std::vector<float> dense;
    Bytes bytes;
    net::transport::Message answer;
  };

  absl::StatusOr<net::transport::Message> ReceiveAnswer(size_t server);
  bool stopped() const { return spec_.stop != nullptr && spec_.stop->load(); }
  bool leaving() const { return spec_.leaving != nullptr && spec_.leaving->load() && stopped(); }
  // Returns the result of a batch. If it was abandoned, closes all connections: answers to its
  // requests may still arrive on them.
  template <class T>
  absl::StatusOr<T> EndBatch(absl::StatusOr<T> result);
  absl::StatusOr<Pulled> TryPull(Pull request, const PullInto& into);
  absl::StatusOr<Pushed> TryPush(const Push& request, const Gradients& gradients);
  absl::StatusOr<State> Greet(size_t server, int64_t generation, int64_t work);
  template <class M>
  absl::Status Send(size_t server, uint16_t type, const M& message);
  template <class M>
  absl::StatusOr<M> Receive(size_t server);
  template <class A, class M>
  absl::StatusOr<A> Ask(size_t server, uint16_t type, const M& message);
  absl::Status AskPull(size_t server, Pull& request, const PullInto& into);
  absl::StatusOr<Pulled> PullFromLead(Pull& request, const PullInto& into);
  absl::StatusOr<Held> TrySaveAll(int64_t generation, int64_t sequence, int64_t step,
                                  const Memory& memory, const DynamicMemory& dynamic_table,
                                  TableSave* tables);
  // Sends each server its request, and gets the answers afterwards.
  template <class A, class M>
  absl::StatusOr<std::vector<A>> AskAll(uint16_t type, const std::vector<M>& requests);
  bool servers_save_tables() const;
  absl::StatusOr<Held> HoldLead(const Hold& hold, int64_t sequence);
  absl::Status MeasureAndSettle(const Measure& measure);
  bool has_one_server() const { return connections_.size() == 1; }
  void Split(std::span<const Block> tables);
  size_t RowsOn(size_t server, size_t table, const Block& block) const;
  std::vector<TableRows> GetTables(const Wire& wire, std::span<const Block> tables) const;
  absl::Status CopyPulled(size_t server, const Pulled& pulled, const PullInto& into);
  absl::Status SendPush(size_t server, Push push, const Gradients& gradients);
  void CutGradients(size_t server, const Gradients& gradients);
  absl::Status LoadServers(int64_t generation, const Memory& memory, bool whole);
  absl::Status FetchServers(int64_t generation, const Memory& memory, bool whole);
  absl::Status LoadKeys(int64_t generation, size_t variable,
                        const tables::DynamicTableImage& image);
  absl::Status FetchKeys(int64_t generation, size_t variable, tables::DynamicTableImage* image);
  class Slices;
  // Goes through the slices of all servers' states, with a request at each server at any time:
  // calls ask(server, slice), which sends it, and then take(server, slice, ask_next), which
  // receives the answer and calls ask_next() as soon as the server can have the next one.
  template <class AskFor, class Take>
  absl::Status ForEachSlice(int64_t generation, bool whole, AskFor ask, Take take);

  const ClientSpec spec_;
  const ServerDialer dial_;
  const std::span<const Variable> variables_;
  const Placement placement_;
  std::vector<std::unique_ptr<ServerConnection>> connections_;
  std::vector<Wire> wires_;
  absl::Status closed_;  // ABORTED, if an error has made this replica close all connections
  bool in_batch_ = false;
  std::vector<uint32_t> given_;
  std::vector<float> slice_;
  std::string noted_waiting_;
  std::unique_ptr<HeartbeatSender> heartbeat_;  // set if there is a bound on staleness
};

}  // namespace muster::ps
