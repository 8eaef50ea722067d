// What workers and parameter servers say to each other (docs/formats/parameter_server.md): plain
// data and its bytes. A request has one answer.
//
// Lists of a parsed message point into its bytes, which must live as long and begin at an address
// divisible by 4. Every length is checked against what is there before anything is taken;
// INVALID_ARGUMENT says what is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"

namespace muster::ps {

using Bytes = std::vector<std::byte>;
using ConstBytes = std::span<const std::byte>;

constexpr uint32_t kVersion = 4;

enum MessageType : uint16_t {
  kHello = 1,       // Hello -> State
  kWait = 2,        // Wait -> State
  kBegin = 3,       // Begin -> Empty
  kLoad = 4,        // Slice with values -> Empty
  kReady = 5,       // Ready -> Empty
  kPull = 6,        // Pull -> Pulled
  kPush = 7,        // Push -> Pushed
  kHold = 8,        // Hold -> Held
  kFetch = 9,       // Slice without values -> Slice with them
  kRelease = 10,    // Begin -> Empty
  kFinish = 11,     // Finish -> Empty
  kEnd = 12,        // Begin -> Empty
  kBreak = 13,      // Break -> Empty
  kBeat = 14,       // Beat -> Empty
  kMeasure = 15,    // Measure -> Measured
  kSettle = 16,     // Settle -> Empty
  kLoadKeys = 17,   // KeySlice with entries -> Empty
  kFetchKeys = 18,  // KeySlice without -> KeySlice with them
  kAnswer = 32,
  kRefused = 33,  // Refused, instead of the answer
};

// Whether a step is made of fewer replicas' gradients than there are: both sides go by it.
inline bool HasBackups(bool synchronous, int aggregate, int replicas) {
  return synchronous && aggregate > 0 && aggregate < replicas;
}

enum class Phase : uint32_t { kEmpty = 0, kLoading = 1, kReady = 2, kOver = 3 };

// What became of the records of all replicas, as of a state, since the training's first step.
struct Counts {
  int64_t trained = 0;      // in the weights, once for each time
  int64_t dropped = 0;      // read and not trained
  int64_t repeated = 0;     // trained again, because the weights went back
  int64_t left_at_end = 0;  // dropped where data has ended, and not in `dropped`
  uint32_t known = 1;       // 0: not since the first step, but since some state was loaded

  // All that was ever put into weights.
  int64_t work() const { return trained + repeated; }
  friend bool operator==(const Counts&, const Counts&) = default;
};

// The first request on a connection.
struct Hello {
  uint32_t version = kVersion;
  uint32_t replica = 0, replicas = 0;
  uint32_t server = 0, servers = 0;
  uint32_t synchronous = 0;
  uint32_t aggregate = 0;  // see ServerSpec
  std::string agreement = {};
  // What this replica knows: the newest state that it was at, and the most work of all replicas.
  int64_t generation = 0, work = 0;
};

struct State {
  int64_t generation = 0;
  Phase phase = Phase::kEmpty;
  uint32_t unfinished = 0;  // replicas whose data has not ended
  int64_t step = 0;
  int64_t sequence = 0;       // batches of the asking replica that are in the weights
  std::string position = {};  // where it goes on; the lead alone knows
  Counts counts = {};         // the lead's
};

struct Wait {
  int64_t generation = 0;  // for one after this
  uint32_t for_all = 0;    // 1: until all replicas have finished in it
};

struct Begin {
  int64_t generation = 0;
};

// This replica's data has ended, or it wants to stop.
struct Finish {
  int64_t generation = 0;
  int64_t left_at_end = 0;  // records behind its last batch that make none
};

// Of one variable's part on a server: `slot` -1 is its weights.
struct Slice {
  int64_t generation = 0;
  uint32_t variable = 0;
  int32_t slot = -1;
  int64_t first = 0, count = 0;  // elements
  std::span<const float> values = {};
};

// Of a table that grows, the server's part: keys and what belongs to each (GrownEntries).
struct KeySlice {
  int64_t generation = 0;
  uint32_t variable = 0;
  int64_t first = 0, count = 0;  // asked for; fewer in the answer are the last
  std::vector<int64_t> keys = {};
  std::vector<int64_t> counts = {};  // 0: it has a row
  std::vector<int64_t> last_steps = {};
  std::span<const float> values = {};  // of each that has a row: weights, then slot by slot
};

struct Ready {
  int64_t generation = 0;
  int64_t step = 0;
  std::vector<std::string> positions = {};  // by replica
  Counts counts = {};
};

// Rows of one table, as the server counts them, or, where it grows, their keys; and what belongs to
// them.
struct TableRows {
  uint32_t variable = 0;
  std::span<const int32_t> rows = {};
  std::vector<int64_t> keys = {};
  std::span<const float> values = {};  // rows x cols, of gradients gradient_cols(), or none
};

// What the lead says to all of the round that led to a step.
struct Word {
  // With backup replicas, which batches are in it.
  std::vector<int64_t> counted = {};  // by replica: the batch's sequence; -1: none
  // Where gradients are clipped by a norm, by variable: what their sum is multiplied with.
  std::vector<float> scales = {};
};

struct Pull {
  int64_t generation = 0;
  int64_t sequence = 0;  // of the batch that it is for
  int64_t step = 0;      // synchronous: that of all weights
  uint32_t rows = 0;     // of the batch; 0: this replica's data has ended
  uint32_t stop = 0;     // the wish to stop, and how urgent
  std::vector<TableRows> tables = {};
  // With a bound on staleness, to those that do not lead: batches that count, as the lead says.
  std::vector<int64_t> sequences = {};
  int64_t left_at_end = 0;  // as in Finish
  Word word = {};           // to those that do not lead, of `step`
};

struct Pulled {
  int64_t step = 0;
  uint32_t rows = 0;  // synchronous: of all replicas' batches
  uint32_t stop = 0;  // the most urgent wish
  std::span<const float> dense = {};
  std::span<const float> tables = {};  // in the order asked
  // With a bound on staleness, the lead's: batches that count, by replica.
  std::vector<int64_t> sequences = {};
  Counts counts = {};   // the lead's
  Word word = {};       // the lead's, of `step`
  uint32_t settle = 0;  // 1: nothing but the word is there, the lead needs norms: see Measure
};

struct Push {
  int64_t generation = 0;
  int64_t sequence = 0;
  int64_t step = 0;
  uint32_t rows = 0;
  uint32_t finite = 1;  // 0: the loss was no number, there are no gradients
  float loss = 0, data_loss = 0;
  std::string position = {};             // behind the batch
  std::span<const uint32_t> given = {};  // by variable: 1 where it has a dense gradient
  std::span<const float> dense = {};     // of all dense variables, as a pull brings them
  std::vector<TableRows> tables = {};
  int64_t dropped = 0;  // records that were read and left out before the batch
};

struct Pushed {
  int64_t step = 0;               // after it
  uint32_t finite = 1;            // 0: the loss of one was no number, and nothing was applied
  float loss = 0, data_loss = 0;  // synchronous: of all replicas
  Counts counts = {};             // the lead's
  // With backup replicas. 1: others' batches made the step that it was for; it was dropped.
  uint32_t stale = 0;
  uint32_t stop = 0;  // somebody wants to stop: the batch does not count
};

struct Hold {
  int64_t generation = 0;
  int64_t step = 0;  // synchronous: that of the state wanted; with backup replicas the lead's
  // Asynchronous, to those that do not lead: batches that count, by replica, as the lead says.
  std::vector<int64_t> sequences = {};
  Word word = {};  // to those that do not lead, of `step`
};

struct Held {
  int64_t step = 0;
  std::vector<std::string> positions = {};  // the lead's
  std::vector<int64_t> sequences = {};      // batches that count, by replica
  Counts counts = {};                       // the lead's
  Word word = {};                           // the lead's, of `step`
  uint32_t settle = 0;                      // as in Pulled
};

// Where gradients are clipped by a norm, a round that has ended is applied when the lead knows the
// norm of its sum: somebody asks all others for their part, and tells the lead.
struct Measure {
  int64_t generation = 0;
  int64_t sequence = 0;  // as in Pull
  int64_t step = 0;
  Word word = {};
};

struct Measured {
  // By variable: of the elements of the sum that are on this server. None: it has applied it.
  std::vector<double> squares = {};
};

struct Settle {
  int64_t generation = 0;
  int64_t step = 0;
  std::vector<double> squares = {};  // by variable: of all servers but the lead
};

struct Break {
  int64_t generation = 0;
  std::string why = {};
};

// That a replica lives, on a connection of its own, for a lead that may wait for it.
struct Beat {
  uint32_t replica = 0;
};

struct Refused {
  uint32_t code = 0;  // absl::StatusCode
  std::string text = {};
};

struct Empty {};

// Replaces *bytes.
template <class M>
void Print(const M& message, Bytes* bytes);
template <class M>
absl::StatusOr<M> Parse(ConstBytes bytes);

}  // namespace muster::ps
