// A connected socket, plain or with TLS, as used by both ends of HTTP. Included by .cc files of
// this layer only: Asio takes seconds to compile.
//
// The thread that runs the socket's io_context owns it. Each operation's `done` runs there, never
// inside the call. One read and one write may be in progress at a time. Close() ends both with an
// error.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include "muster/base/status.h"

namespace muster::net::internal {

class HttpStream {
 public:
  using Error = boost::system::error_code;
  using Done = std::function<void(const Error& error, size_t bytes)>;

  virtual ~HttpStream() = default;
  virtual void Handshake(std::function<void(const Error& error)> done) = 0;
  // Yields at least one byte, or an error: asio::error::eof if the peer closed its side in order.
  virtual void ReadSome(char* buffer, size_t size, Done done) = 0;
  // Until it is called again, a read may wait until so many bytes are there: fewer, larger reads.
  virtual void SetLeastRead(size_t /*size*/) {}
  virtual void Write(std::string_view bytes, Done done) = 0;  // all bytes; they must stay valid
  virtual boost::asio::ip::tcp::socket& socket() = 0;
  // Why the peer's certificate is not trusted; empty if it is, or if none was required.
  virtual std::string Distrust() { return {}; }

  // Whether the peer closed its end and nothing is left to read.
  bool PeerClosed();
  // Whether the connection is open and there is nothing to read.
  bool Quiet();
  // Calls `done` when there is something to read or the peer closed, without reading it.
  void WaitReadable(std::function<void(bool ok)> done);
  void ShutdownSend();
  void Close();
};

std::unique_ptr<HttpStream> MakePlainStream(boost::asio::ip::tcp::socket socket);
std::unique_ptr<HttpStream> MakeTlsStream(boost::asio::ip::tcp::socket socket,
                                          boost::asio::ssl::context& context);
// The client's end, which trusts only a certificate for `host` (a name or an address).
absl::StatusOr<std::unique_ptr<HttpStream>> MakeTlsClientStream(boost::asio::ip::tcp::socket socket,
                                                                boost::asio::ssl::context& context,
                                                                const std::string& host);

}  // namespace muster::net::internal
