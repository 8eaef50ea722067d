// Bytes from a peer become a request's method, target, header fields and body: an incremental
// HTTP/1.1 parser (Boost.Beast's) under our limits. No sockets here, so that a fuzzer reaches it.
//
// Bodies have a Content-Length; chunked ones are refused with 411. No client of a control plane
// needs them, and this Beast's parser of them has assertions that a peer can reach.
//
// It stops behind the header until AcceptBody(), so that a server looks at who asks, and for what,
// before it takes memory for a body.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "muster/net/http_limits.h"

namespace muster::net {

// Why a request cannot be read on; the connection is of no more use after it.
struct HttpFault {
  int status = 400;
  std::string message = {};
};

// Reads one request. One owner thread.
class HttpRequestReader {
 public:
  explicit HttpRequestReader(const HttpLimits& limits);
  ~HttpRequestReader();

  // Takes bytes from the front and says how many; the rest must be given again, with what came
  // behind it. 0 with neither done nor fault: more is needed. Takes nothing once done.
  size_t Put(std::string_view bytes);

  bool header_done() const;
  void AcceptBody();  // after header_done
  bool done() const;
  const std::optional<HttpFault>& fault() const { return fault_; }

  // After header_done; they live as long as the reader.
  std::string_view method() const;
  std::string_view target() const;
  // A field's value; empty when it is absent. A field that is there twice counts as absent: which
  // of the two another program would believe is not known.
  std::string_view Field(std::string_view name) const;
  bool has_body() const;
  bool keep_alive() const;
  // The peer waits for "100 Continue" before it sends the body.
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
