// A client's request as the pieces in which it is sent: its head, then its body from the source,
// unchanged or in chunks. The writer uses no sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/base/status.h"
#include "muster/net/http/call.h"

namespace muster::net::internal {

// One owner thread.
class HttpRequestWriter {
 public:
  // A null `body` has no bytes; otherwise it must outlive the writer, and `head` must announce it
  // by its size or as chunked. The head is wiped when the writer is destroyed.
  HttpRequestWriter(std::string head, BodySource* body);
  ~HttpRequestWriter();
  HttpRequestWriter(const HttpRequestWriter&) = delete;
  HttpRequestWriter& operator=(const HttpRequestWriter&) = delete;

  // Goes to the request's first byte; called before the first Next(), too. Returns false if the
  // body cannot be read again.
  bool Restart();
  // The next piece, valid until the next call; empty at the end. A body of announced size is sent
  // with the head in the first piece as far as it fits, so that a small request is one packet.
  // Errors are those of the source, and FAILED_PRECONDITION if the source ends before its announced
  // size.
  absl::StatusOr<std::string_view> Next();
  // Whether Next() returned an error, so that the server did not cause the request's failure.
  bool failed() const { return failed_; }

 private:
  absl::StatusOr<std::string_view> NextOfBody();
  // Reads into a buffer of room_ bytes.
  absl::StatusOr<size_t> ReadBody(char* buffer);

  std::string head_;
  BodySource* const body_;
  const std::optional<uint64_t> size_;  // of the body; nullopt: chunked
  const size_t room_;                   // the most that a piece takes of the body
  uint64_t sent_ = 0;                   // of the body's bytes
  bool head_sent_ = false;
  bool ended_ = false;
  bool failed_ = false;
  std::string piece_ = {};
};

}  // namespace muster::net::internal
