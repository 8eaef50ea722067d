// Parses bytes from a peer into a request's method, target, header fields and body: an incremental
// HTTP/1.1 parser (Boost.Beast's) under Muster's limits. The reader uses no sockets, so that a
// fuzzer can test it.
//
// Bodies have a Content-Length; chunked ones are refused with 411. No client of a control plane
// needs them, and this Beast's chunk parser has assertions that a peer can trigger.
//
// It stops after the header until AcceptBody(), so that a server can check the client and the
// request before it allocates memory for a body.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "muster/net/http/call.h"
#include "muster/net/http/limits.h"

namespace muster::net {

// Why reading a request cannot continue; the connection is unusable afterwards.
struct HttpFault {
  int status = 400;
  std::string message = {};
};

// Reads one request. One owner thread.
class HttpRequestReader {
 public:
  explicit HttpRequestReader(const HttpLimits& limits);
  ~HttpRequestReader();

  // Takes bytes from the front and returns how many; the rest must be passed again, followed by
  // newly received bytes. 0 without done or fault means that more bytes are needed. Takes nothing
  // once done.
  size_t Put(std::string_view bytes);

  bool header_done() const;
  void AcceptBody();  // after header_done
  bool done() const;
  const std::optional<HttpFault>& fault() const { return fault_; }

  // These are valid after header_done; the views are valid as long as the reader.
  std::string_view method() const;
  std::string_view target() const;
  // A field's value; empty if it is absent. A field that occurs twice counts as absent, since other
  // programs may use either one.
  std::string_view Field(std::string_view name) const;
  // All fields, in the order of the message.
  HttpFields fields() const;
  bool has_body() const;
  bool keep_alive() const;
  // Whether the peer waits for "100 Continue" before it sends the body.
  bool expects_continue() const;

  const std::string& body() const;  // after done

 private:
  struct Parser;
  void CountHeader(size_t taken, size_t waiting);
  void CheckEncoding();

  std::unique_ptr<Parser> parser_;
  HttpLimits limits_;
  size_t header_taken_ = 0;
  bool body_accepted_ = false;
  std::optional<HttpFault> fault_;
};

}  // namespace muster::net
