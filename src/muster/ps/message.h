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

constexpr uint32_t kVersion = 2;

enum MessageType : uint16_t {
  kHello = 1,     // Hello -> State
  kWait = 2,      // Wait -> State
  kBegin = 3,     // Begin -> Empty
  kLoad = 4,      // Slice with values -> Empty
  kReady = 5,     // Ready -> Empty
  kPull = 6,      // Pull -> Pulled
  kPush = 7,      // Push -> Pushed
  kHold = 8,      // Hold -> Held
  kFetch = 9,     // Slice without values -> Slice with them
  kRelease = 10,  // Begin -> Empty
  kFinish = 11,   // Begin -> Empty
  kEnd = 12,      // Begin -> Empty
  kBreak = 13,    // Break -> Empty
  kBeat = 14,     // Beat -> Empty
  kAnswer = 32,
  kRefused = 33,  // Refused, instead of the answer
};

enum class Phase : uint32_t { kEmpty = 0, kLoading = 1, kReady = 2, kOver = 3 };

// The first request on a connection.
struct Hello {
  uint32_t version = kVersion;
  uint32_t replica = 0, replicas = 0;
  uint32_t server = 0, servers = 0;
  uint32_t synchronous = 0;
  std::string agreement = {};
};

struct State {
  int64_t generation = 0;
  Phase phase = Phase::kEmpty;
  uint32_t unfinished = 0;  // replicas whose data has not ended
  int64_t step = 0;
  int64_t sequence = 0;       // batches of the asking replica that are in the weights
  std::string position = {};  // where it goes on; the lead alone knows
};

struct Wait {
  int64_t generation = 0;  // for one after this
  uint32_t for_all = 0;    // 1: until all replicas have finished in it
};

struct Begin {
  int64_t generation = 0;
};

// Of one variable's part on a server: `slot` -1 is its weights.
struct Slice {
  int64_t generation = 0;
  uint32_t variable = 0;
  int32_t slot = -1;
  int64_t first = 0, count = 0;  // elements
  std::span<const float> values = {};
};

struct Ready {
  int64_t generation = 0;
  int64_t step = 0;
  std::vector<std::string> positions = {};  // by replica
};

// Rows of one table, as the server counts them, and what belongs to them.
struct TableRows {
  uint32_t variable = 0;
  std::span<const int32_t> rows = {};
  std::span<const float> values = {};  // rows x cols, or none
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
};

struct Pulled {
  int64_t step = 0;
  uint32_t rows = 0;  // synchronous: of all replicas' batches
  uint32_t stop = 0;  // the most urgent wish
  std::span<const float> dense = {};
  std::span<const float> tables = {};  // in the order asked
  // With a bound on staleness, the lead's: batches that count, by replica.
  std::vector<int64_t> sequences = {};
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
};

struct Pushed {
  int64_t step = 0;               // after it
  uint32_t finite = 1;            // 0: the loss of one was no number, and nothing was applied
  float loss = 0, data_loss = 0;  // synchronous: sums over replicas
};

struct Hold {
  int64_t generation = 0;
  int64_t step = 0;  // synchronous: that of the state wanted
  // Asynchronous, to those that do not lead: batches that count, by replica, as the lead says.
  std::vector<int64_t> sequences = {};
};

struct Held {
  int64_t step = 0;
  std::vector<std::string> positions = {};  // the lead's
  std::vector<int64_t> sequences = {};      // batches that count, by replica
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
