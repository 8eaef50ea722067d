// The messages between workers and parameter servers (docs/formats/parameter_server.md): plain data
// and its bytes. Each request has one answer.
//
// The spans of a parsed message point into its bytes, which must outlive it and begin at an address
// divisible by 4. Parse checks every length against the bytes that are left before it allocates
// memory, and returns INVALID_ARGUMENT with the reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/base/strings.h"

namespace muster::ps {

using Bytes = std::vector<std::byte>;
using ConstBytes = std::span<const std::byte>;

constexpr uint32_t kVersion = 8;

enum MessageType : uint16_t {
  kHello = 1,        // Hello -> State
  kWait = 2,         // Wait -> State
  kBegin = 3,        // Begin -> Empty
  kLoad = 4,         // Slice with values -> Empty
  kReady = 5,        // Ready -> Empty
  kPull = 6,         // Pull -> Pulled
  kPush = 7,         // Push -> Pushed
  kHold = 8,         // Hold -> Held
  kFetch = 9,        // Slice without values -> Slice with them
  kRelease = 10,     // Begin -> Empty
  kFinish = 11,      // Finish -> Empty
  kEnd = 12,         // Begin -> Empty
  kBreak = 13,       // Break -> Empty
  kBeat = 14,        // Beat -> Empty
  kMeasure = 15,     // Measure -> Measured
  kSettle = 16,      // Settle -> Empty
  kLoadKeys = 17,    // KeySlice with entries -> Empty
  kFetchKeys = 18,   // KeySlice without entries -> KeySlice with them
  kReadFile = 19,    // ReadFile -> FileText
  kSaveTables = 20,  // SaveTables -> SavedTables
  kLoadTables = 21,  // LoadTables -> Empty
  kStopAll = 22,     // Begin -> Empty
  kAnswer = 32,
  kRefused = 33,  // Refused, instead of the answer
  // A keep-alive: Refused without a code, any number of them before an answer. Its text names the
  // replicas that the answer waits for.
  kAlive = 34,
};

enum class Phase : uint32_t { kEmpty = 0, kLoading = 1, kReady = 2, kOver = 3 };

// Record counts of all replicas in a state, since the training's first step.
struct Counts {
  int64_t trained = 0;      // in the weights; a record counts each time that it is trained on
  int64_t dropped = 0;      // read and not trained
  int64_t repeated = 0;     // trained again, because the weights went back to a checkpoint
  int64_t left_at_end = 0;  // dropped at the end of replicas' data, not contained in `dropped`
  int64_t bad_records = 0;  // left out by the replicas' processes so far; in no state
  uint32_t known = 1;       // 0: counted only since some state was loaded, not since the first step

  // How many records were ever applied to weights.
  int64_t work() const { return trained + repeated; }
  friend bool operator==(const Counts&, const Counts&) = default;
};

// The first request on a connection.
struct Hello {
  uint32_t version = kVersion;
  uint32_t replica = 0, replicas = 0;
  uint32_t server = 0, servers = 0;
  uint32_t synchronous = 0;
  uint32_t aggregate = 0;  // see PsOptions
  std::string agreement = {};
  // The generation of this replica's newest state, and the highest Counts::work() that it knows.
  int64_t generation = 0, work = 0;
};

struct State {
  int64_t generation = 0;
  Phase phase = Phase::kEmpty;
  uint32_t unfinished = 0;  // replicas whose data has not ended
  int64_t step = 0;
  int64_t sequence = 0;       // batches of the asking replica that are in the weights
  std::string position = {};  // where the asking replica's data continues; only the lead knows it
  Counts counts = {};         // from the lead only
  uint32_t save = 0;          // as in Pulled
};

struct Wait {
  int64_t generation = 0;  // waits for a later generation
  uint32_t for_all = 0;    // 1: waits instead until all replicas have finished in this generation
};

// A request about a generation: to begin loading it, to end a hold (kRelease), or to end training.
struct Begin {
  int64_t generation = 0;
};

// This replica's data has ended, or it wants to stop.
struct Finish {
  int64_t generation = 0;
  int64_t left_at_end = 0;  // records after its last batch, too few for another one
  int64_t bad_records = 0;  // left out by this replica's process so far
};

// A range of elements in a server's part of one variable: of its weights (`slot` -1) or of a slot.
struct Slice {
  int64_t generation = 0;
  uint32_t variable = 0;
  int32_t slot = -1;
  int64_t first = 0, count = 0;  // elements
  std::span<const float> values = {};
};

// Some keys of a server's part of a table that grows, with their counts, last steps and values
// (tables/dynamic_table.h).
struct KeySlice {
  int64_t generation = 0;
  uint32_t variable = 0;
  int64_t first = 0, count = 0;  // requested; an answer with fewer keys is the last one
  std::vector<int64_t> keys = {};
  std::vector<int64_t> counts = {};  // 0: the key has a row
  std::vector<int64_t> last_steps = {};
  std::span<const float> values = {};  // of each key with a row: weights, then slot by slot
};

// Asks for the text of a small temporary file of the model folder, which the server also writes
// into another file there: that shows whether it has the folder, and may write files that the chief
// can read and remove.
struct ReadFile {
  std::string path = {};
};
inline std::string GetAnswerPath(const std::string& path, int server) {
  return StrCat(path, ".ps-", server);
}

struct FileText {
  std::string text = {};  // "": there is no such file, or the server may not read it or write there
};

// The chief holds the state: the server writes its rows of the tables that servers save (Variable)
// into a file of the model folder, one table after the other: its weights, then slot by slot, or,
// of a table that grows, column by column (tables/dynamic_table_columns.h), each in the order of
// tables/key_order.h.
struct SaveTables {
  int64_t generation = 0;
  std::string path = {};
};

struct SavedTables {
  // CRC-32C, not masked, of each run of rows (Placement::GetRuns) and of each column, in the order
  // of the file.
  std::vector<uint32_t> checksums = {};
  // Of each table that grows: the number of keys with a row, and that of keys without one yet.
  std::vector<int64_t> keys = {};
};

// The chief loads a state: the server reads its rows of the tables that servers save from a
// checkpoint by itself.
struct LoadTables {
  int64_t generation = 0;
  std::string checkpoint = {};  // its prefix; "": the tables get their initial values
};

// Reports that all of a state is loaded.
struct Ready {
  int64_t generation = 0;
  int64_t step = 0;
  std::vector<std::string> positions = {};  // by replica
  Counts counts = {};
};

// Rows of one table, numbered as on the server or, if the table grows, given by their keys; with
// their values.
struct TableRows {
  uint32_t variable = 0;
  std::span<const int32_t> rows = {};
  std::vector<int64_t> keys = {};
  // rows x cols; rows x Variable::gradient_cols() for gradients; empty in a pull.
  std::span<const float> values = {};
};

// The lead's word, which replicas forward to all other servers: how the round that led to a step is
// applied.
struct Word {
  // With backup replicas: the batches of the round, by replica: the batch's sequence; -1: none.
  std::vector<int64_t> counted = {};
  // If gradients are clipped by a norm: the factor for the sum, by variable.
  std::vector<float> scales = {};
};

struct Pull {
  int64_t generation = 0;
  int64_t sequence = 0;  // number of the batch that the pull is for
  int64_t step = 0;      // synchronous: the step that all weights must have
  uint32_t rows = 0;     // of the batch; 0: this replica's data has ended
  uint32_t stop = 0;     // 0, or a request to stop; greater is more urgent
  std::vector<TableRows> tables = {};
  // With a bound on staleness, to servers other than the lead: how many batches of each replica
  // count, as the lead has reported.
  std::vector<int64_t> sequences = {};
  int64_t left_at_end = 0;  // as in Finish
  int64_t bad_records = 0;  // as in Finish
  Word word = {};           // to servers other than the lead: the lead's word of `step`
};

struct Pulled {
  int64_t step = 0;
  uint32_t rows = 0;  // synchronous: of all replicas' batches
  uint32_t stop = 0;  // the most urgent request to stop
  std::span<const float> dense = {};
  std::span<const float> tables = {};  // in the order of the request
  // With a bound on staleness, from the lead: how many batches of each replica count.
  std::vector<int64_t> sequences = {};
  Counts counts = {};   // from the lead only
  Word word = {};       // from the lead: of `step`
  uint32_t settle = 0;  // 1: the answer has only `step` and `word`; the lead needs norms: Measure
  // 1: this server was told to end, and ends when the chief has saved its state.
  uint32_t save = 0;
};

struct Push {
  int64_t generation = 0;
  int64_t sequence = 0;
  int64_t step = 0;
  uint32_t rows = 0;
  uint32_t finite = 1;  // 0: the loss is not finite; there are no gradients
  float loss = 0, data_loss = 0;
  std::string position = {};             // after the batch
  std::span<const uint32_t> given = {};  // by variable: 1 if it has a dense gradient
  std::span<const float> dense = {};     // of all dense variables, in the order of a pull
  std::vector<TableRows> tables = {};
  int64_t dropped = 0;  // records that were read and left out before the batch
};

struct Pushed {
  int64_t step = 0;               // after the push
  uint32_t finite = 1;            // 0: some replica's loss is not finite; nothing was applied
  float loss = 0, data_loss = 0;  // synchronous: of all replicas
  Counts counts = {};             // from the lead only
  // With backup replicas. 1: other replicas' batches made the step; this batch was dropped.
  uint32_t stale = 0;
  uint32_t stop = 0;  // not 0: a replica wants to stop; the batch does not count
};

// The chief wants to save: the server must keep its state unchanged until kRelease.
struct Hold {
  int64_t generation = 0;
  int64_t step = 0;  // synchronous: of the state to save; with backup replicas the lead's step
  // Asynchronous, to servers other than the lead: how many batches of each replica count, as the
  // lead has reported.
  std::vector<int64_t> sequences = {};
  Word word = {};  // to servers other than the lead: the lead's word of `step`
};

struct Held {
  int64_t step = 0;
  std::vector<std::string> positions = {};  // by replica; from the lead only
  std::vector<int64_t> sequences = {};      // how many batches of each replica count
  Counts counts = {};                       // from the lead only
  Word word = {};                           // from the lead: of `step`
  uint32_t settle = 0;                      // as in Pulled
};

// If gradients are clipped by a norm, a round that has ended is applied when the lead knows the
// norm of its sum: a replica asks all other servers for their squares (Measure) and sends the sum
// to the lead (Settle).
struct Measure {
  int64_t generation = 0;
  int64_t sequence = 0;  // as in Pull
  int64_t step = 0;
  Word word = {};
};

struct Measured {
  // By variable: the sum of squares of the elements on this server. Empty: this server has already
  // applied the round.
  std::vector<double> squares = {};
};

struct Settle {
  int64_t generation = 0;
  int64_t step = 0;
  std::vector<double> squares = {};  // by variable: of all servers except the lead
};

// The lead's state is invalid, because another server has lost its part.
struct Break {
  int64_t generation = 0;
  std::string why = {};
};

// A replica's heartbeat, on a separate connection, for a lead that may wait for it.
struct Beat {
  uint32_t replica = 0;
};

struct Refused {
  uint32_t code = 0;  // absl::StatusCode
  std::string text = {};
};

struct Empty {};

// Replaces *bytes by the bytes of the message.
template <class M>
void Print(const M& message, Bytes* bytes);
template <class M>
absl::StatusOr<M> Parse(ConstBytes bytes);

}  // namespace muster::ps
