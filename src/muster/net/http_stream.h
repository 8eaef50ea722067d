// A connected socket, plain or under TLS, as HttpConnection uses it. Included by .cc files of this
// layer only: Asio takes seconds to compile.
//
// The io thread owns it. Each operation's `done` runs on the io thread, never inside the call. One
// read and one write may be open at a time. Close() ends both with an error.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

namespace muster::net::internal {

class HttpStream {
 public:
  using Done = std::function<void(bool ok, size_t bytes)>;

  virtual ~HttpStream() = default;
  virtual void Handshake(std::function<void(bool ok)> done) = 0;
  virtual void ReadSome(char* buffer, size_t size, Done done) = 0;  // ok with at least one byte
  virtual void Write(std::string_view bytes, Done done) = 0;        // all of them; they must live
  virtual boost::asio::ip::tcp::socket& socket() = 0;

  // True, when the peer closed its end and nothing of it is left to read.
  bool PeerClosed();
  // Calls `done` when there is something to read, the end included, without reading it.
  void WaitReadable(std::function<void(bool ok)> done);
  void ShutdownSend();
  void Close();
};

std::unique_ptr<HttpStream> MakePlainStream(boost::asio::ip::tcp::socket socket);
std::unique_ptr<HttpStream> MakeTlsStream(boost::asio::ip::tcp::socket socket,
                                          boost::asio::ssl::context& context);

}  // namespace muster::net::internal
