// Client: a worker's side of the parameter servers: pulls, pushes, and, the chief's, loads and
// saves of the whole state.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/net/token.h"
#include "muster/net/transport/address.h"
#include "muster/net/transport/handshake.h"
#include "muster/net/transport/tls.h"
#include "muster/ps/beater.h"
#include "muster/ps/grown_image.h"
#include "muster/ps/line.h"
#include "muster/ps/message.h"
#include "muster/ps/placement.h"

namespace muster::ps {

struct ClientSpec {
  net::transport::Identity self = {};  // job, role, index, incarnation
  int replica = 0, replicas = 1;       // 0 is the chief
  // As the servers have them.
  bool synchronous = false;
  int aggregate = 0;
  bool clips_by_norm = false;
  int64_t staleness = -1;
  std::string agreement = {};
  std::vector<net::transport::Address> servers = {};
  net::transport::Protection protection = {};
  double rendezvous_seconds = 300;          // without a server for longer: it will not come back
  const std::atomic<bool>* stop = nullptr;  // true gives waits for servers up; may be null

  bool has_backups() const { return HasBackups(synchronous, aggregate, replicas); }
};

// Memory of one variable's weights (slot -1) or of a slot, whole.
using Memory = std::function<float*(int variable, int slot)>;

// Of a table that grows, all of it.
using GrownMemory = std::function<GrownImage*(int variable)>;

// Distinct rows of a table by their number in the whole table, or, where it grows, by their keys.
struct Block {
  int variable = 0;
  std::span<const int32_t> rows = {};
  std::span<const int64_t> keys = {};
};

// What a batch pulls: `dense` by variable, null for tables; `blocks` as `tables`.
struct PullInto {
  std::span<const Block> tables = {};
  std::span<float* const> dense = {};
  std::span<float* const> blocks = {};
};

// What it pushes: `dense` by variable, empty where there is none; `values` as `tables`, of each row
// Variable::gradient_cols() floats. A table without rows must be there too: optimizers may move it
// all the same.
struct Gradients {
  std::span<const std::span<const float>> dense = {};
  std::span<const Block> tables = {};
  std::span<const std::span<const float>> values = {};
};

// Errors of all calls: ABORTED, a server was lost or has another state: Connect, and go on from
// what it says; CANCELLED, training is over, or `stop`; all others end the training. One owner
// thread.
class Client {
 public:
  // `variables` must outlive it. Connects to nobody yet.
  static absl::StatusOr<std::unique_ptr<Client>> Create(ClientSpec spec, const net::Token& key,
                                                        std::span<const Variable> variables);
  // The same over lines of another kind; of `spec` only what is said in Hello counts, and `stop`.
  Client(ClientSpec spec, int servers, DialLine dial, std::span<const Variable> variables)
      : spec_(std::move(spec)),
        dial_(std::move(dial)),
        variables_(variables),
        placement_(variables, servers),
        lines_(static_cast<size_t>(servers)),
        wires_(static_cast<size_t>(servers)) {}

  // To all servers, anew: what each says of its state, the lead first. UNAVAILABLE names the server
  // that did not come in time.
  // `generation` and `work`: see Hello.
  absl::StatusOr<std::vector<State>> Connect(int64_t generation = 0, int64_t work = 0);
  // Until the lead has a generation after this one, or training is over.
  absl::StatusOr<State> WaitForState(int64_t generation);
  // Until the data of all replicas has ended. ABORTED when the state is lost before.
  absl::StatusOr<State> WaitForAll(int64_t generation);

  // `request` without tables, which are given by `into`.
  absl::StatusOr<Pulled> PullBatch(Pull request, const PullInto& into);
  // `request` without gradients. Comes back when the push counts.
  absl::StatusOr<Pushed> PushBatch(const Push& request, const Gradients& gradients);
  // This replica's data has ended.
  absl::Status Finish(const ps::Finish& finish);
  // The lead's state is worth nothing any more, since another server has lost its part.
  absl::Status TellBroken(int64_t generation, const std::string& why);

  // The chief's. A state into all servers, the lead last.
  absl::Status LoadAll(const Ready& ready, const Memory& memory, const GrownMemory& grown = {});
  // One state of all servers into memory, at `step` where training is synchronous. Asynchronous:
  // pulls wait meanwhile. `sequence` is this replica's next.
  absl::StatusOr<Held> SaveAll(int64_t generation, int64_t sequence, int64_t step,
                               const Memory& memory, const GrownMemory& grown = {});
  absl::Status End();

  int servers() const { return placement_.servers(); }
  const ClientSpec& spec() const { return spec_; }

 private:
  // What goes to one server and comes from it, kept from batch to batch. Where there is one server
  // alone, blocks go as they are and nothing is kept of tables.
  struct Wire {
    std::vector<std::vector<int32_t>> rows;     // by table of the request
    std::vector<std::vector<int64_t>> keys;     // the same
    std::vector<std::vector<uint32_t>> places;  // the same: where in the block
    std::vector<std::vector<float>> values;     // the same
    std::vector<float> dense;
    Bytes bytes;
    net::transport::Message answer;
  };

  bool stopped() const { return spec_.stop != nullptr && spec_.stop->load(); }
  absl::StatusOr<State> Greet(size_t server, int64_t generation, int64_t work);
  template <class M>
  absl::Status Send(size_t server, uint16_t type, const M& message);
  template <class M>
  absl::StatusOr<M> Receive(size_t server);
  template <class A, class M>
  absl::StatusOr<A> Ask(size_t server, uint16_t type, const M& message);
  absl::Status AskPull(size_t server, Pull& request, const PullInto& into);
  absl::StatusOr<Pulled> PullFromLead(Pull& request, const PullInto& into);
  absl::StatusOr<Held> HoldLead(const Hold& hold, int64_t sequence);
  absl::Status MeasureAndSettle(const Measure& measure);
  bool has_one_server() const { return lines_.size() == 1; }
  void Split(std::span<const Block> tables);
  size_t RowsOn(size_t server, size_t table, const Block& block) const;
  std::vector<TableRows> TablesOf(const Wire& wire, std::span<const Block> tables) const;
  absl::Status TakePulled(size_t server, const Pulled& pulled, const PullInto& into);
  absl::Status SendPush(size_t server, Push push, const Gradients& gradients);
  void CutGradients(size_t server, const Gradients& gradients);
  absl::Status LoadServer(size_t server, int64_t generation, const Memory& memory);
  absl::Status FetchServer(size_t server, int64_t generation, const Memory& memory);
  int64_t KeysAtOnce(const Variable& variable) const;
  absl::Status LoadKeys(int64_t generation, size_t variable, const GrownImage& image);
  absl::Status FetchKeys(int64_t generation, size_t variable, GrownImage* image);
  // Calls visit(slice, part) for each slice of a server's state.
  template <class Visit>
  absl::Status ForEachSlice(size_t server, int64_t generation, Visit visit);

  const ClientSpec spec_;
  const DialLine dial_;
  const std::span<const Variable> variables_;
  const Placement placement_;
  std::vector<std::unique_ptr<Line>> lines_;
  std::vector<Wire> wires_;
  std::vector<uint32_t> given_;
  std::vector<float> slice_;
  std::unique_ptr<Beater> beater_;  // where there is a bound on staleness
};

}  // namespace muster::ps
