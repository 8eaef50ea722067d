// Bytes from a server become an answer's status and body. Boost.Beast parses the header; bodies by
// length, in chunks or up to the connection's end are followed here, for this Beast's parser of
// chunks has assertions that a peer can reach. No sockets here, so that a fuzzer reaches it.
//
// Interim answers (1xx) are passed over. Trailers of chunks are read and dropped. A size that is
// announced is held against the bound before memory is taken; a body takes memory as it comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "muster/base/status.h"

namespace muster::net::internal {

// Of all header lines of an answer together, interim answers included; trailers have the same.
constexpr size_t kMaxAnswerHeaderBytes = size_t{64} << 10;

// Reads one answer. One owner thread.
class HttpAnswerReader {
 public:
  // `to_head`: the answer to a HEAD request has no body, whatever it announces.
  HttpAnswerReader(bool to_head, size_t max_body_bytes)
      : to_head_(to_head), max_body_bytes_(max_body_bytes) {}

  // Takes bytes from the front and says how many: all of them, unless it is done or at fault.
  size_t Put(std::string_view bytes);
  // The server ended its side in order: so ends a body of no announced length. UNAVAILABLE is the
  // fault of others.
  void PutEnd();

  bool started() const { return started_; }  // a byte came
  bool done() const { return part_ == Part::kDone; }
  // Why it cannot be read on: UNAVAILABLE for what is no HTTP/1 or was cut short,
  // RESOURCE_EXHAUSTED for more than is accepted.
  const absl::Status& fault() const { return fault_; }
  // "nothing of it came", "12 bytes of its body came".
  std::string Progress() const;

  // After done().
  int status() const { return status_; }
  std::string& body() { return body_; }
  bool keep_alive() const { return keep_alive_; }  // the connection takes another request

 private:
  enum class Part { kHeader, kSized, kToEnd, kChunkSize, kChunk, kChunkEnd, kTrailer, kDone };

  size_t PutSome(std::string_view bytes);
  size_t PutHeader(std::string_view bytes);
  size_t PutBody(std::string_view bytes);
  size_t PutLine(std::string_view bytes);
  void ParseHeader();
  void BeginBody(uint64_t size, Part part);
  void TakeLine();
  void TakeChunkSize();
  void NotHttp(std::string_view why);
  void TooLarge();

  const bool to_head_;
  const size_t max_body_bytes_;
  Part part_ = Part::kHeader;
  bool started_ = false;
  std::string header_ = {};  // so far, with what Put took of it
  size_t header_bytes_ = 0;  // of interim answers; then of trailers
  std::string line_ = {};    // of a chunk's head, its end or a trailer, so far
  uint64_t left_ = 0;        // of the sized body or the chunk
  int status_ = 0;
  bool keep_alive_ = false;
  std::string body_ = {};
  absl::Status fault_ = {};
};

}  // namespace muster::net::internal
