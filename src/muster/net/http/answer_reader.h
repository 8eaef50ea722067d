// Parses bytes from a server into an answer's head and body, and hands both on as they arrive.
// Boost.Beast parses the head. Bodies by length, in chunks or up to the connection's end are parsed
// here, since this Beast's chunk parser has assertions that a peer can trigger. The reader uses no
// sockets, so that a fuzzer can test it.
//
// Interim answers (1xx) are skipped. Chunk trailers are read and dropped. The head's bytes and
// fields and the body's announced sizes are checked against their limits before memory is allocated
// for them; the body itself is never held here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "muster/base/status.h"
#include "muster/net/http/call.h"

namespace muster::net::internal {

// The limit of all header lines of an answer together, interim answers included; trailers have the
// same limit.
constexpr size_t kMaxAnswerHeaderBytes = size_t{64} << 10;
constexpr size_t kMaxAnswerFields = 256;

// Reads one answer. One owner thread.
class HttpAnswerReader {
 public:
  // `to_head`: the answer to a HEAD request has no body, whatever it announces.
  HttpAnswerReader(bool to_head, HttpReceiver receiver)
      : to_head_(to_head), receiver_(std::move(receiver)) {}

  // Takes bytes from the front and returns how many: all of them, unless it is done or at fault.
  size_t Put(std::string_view bytes);
  // The receiver's room for bytes of a body of announced length, and of that body only; else empty.
  // Put() takes the bytes that were read to its beginning.
  std::span<char> Room() const;
  // Call it when the server closed its side in order: this ends a body without an announced length.
  // For any other body it is the fault UNAVAILABLE.
  void PutEnd();

  bool started() const { return started_; }  // a byte arrived
  bool done() const { return part_ == Part::kDone && fault_.ok(); }
  // Why reading cannot continue: UNAVAILABLE for bytes that are not HTTP/1 or were cut short,
  // RESOURCE_EXHAUSTED for an answer above the limits; the receiver's error.
  const absl::Status& fault() const { return fault_; }
  // "nothing of it came", "12 bytes of its body came".
  std::string Progress() const;

  // These are valid after done().
  HttpAnswerHead& head() { return head_; }
  int status() const { return head_.status; }
  bool keep_alive() const { return keep_alive_; }  // the connection can take another request

 private:
  enum class Part { kHeader, kSized, kToEnd, kChunkSize, kChunk, kChunkEnd, kTrailer, kDone };

  size_t PutSome(std::string_view bytes);
  size_t PutHeader(std::string_view bytes);
  size_t PutBody(std::string_view bytes);
  size_t PutLine(std::string_view bytes);
  void ParseHeader();
  void FindBody(std::optional<uint64_t> size);
  void HandOn(std::string_view bytes);
  void BeginBody(uint64_t size, Part part);
  void ParseLine();
  void ParseChunkSize();
  void NotHttp(std::string_view why);
  void TooLarge();

  const bool to_head_;
  const HttpReceiver receiver_;
  Part part_ = Part::kHeader;
  bool started_ = false;
  std::string header_ = {};  // so far, with what Put took of it
  size_t header_bytes_ = 0;  // of interim answers; then of trailers
  std::string line_ = {};    // of a chunk's head, its end or a trailer, so far
  uint64_t left_ = 0;        // of the sized body or the chunk
  HttpAnswerHead head_ = {};
  bool keep_alive_ = false;
  uint64_t body_bytes_ = 0;  // so far
  absl::Status fault_ = {};
};

}  // namespace muster::net::internal
