#include "muster/net/http_stream.h"

#include <sys/socket.h>

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

namespace muster::net::internal {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Stream: tcp::socket, or ssl::stream over it.
template <typename Stream>
class StreamOver : public HttpStream {
 public:
  template <typename... Arguments>
  explicit StreamOver(Arguments&&... arguments) : stream_(std::forward<Arguments>(arguments)...) {}

  void ReadSome(char* buffer, size_t size, Done done) override {
    stream_.async_read_some(asio::buffer(buffer, size),
                            [done = std::move(done)](const error_code& error, size_t bytes) {
                              done(!error && bytes > 0, bytes);
                            });
  }
  void Write(std::string_view bytes, Done done) override {
    asio::async_write(stream_, asio::buffer(bytes.data(), bytes.size()),
                      [done = std::move(done)](const error_code& error, size_t written) {
                        done(!error, written);
                      });
  }

 protected:
  Stream stream_;
};

class PlainStream : public StreamOver<tcp::socket> {
 public:
  using StreamOver::StreamOver;
  void Handshake(std::function<void(bool)> done) override {
    asio::post(stream_.get_executor(), [done = std::move(done)] { done(true); });
  }
  tcp::socket& socket() override { return stream_; }
};

class TlsStream : public StreamOver<asio::ssl::stream<tcp::socket>> {
 public:
  using StreamOver::StreamOver;
  void Handshake(std::function<void(bool)> done) override {
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [done = std::move(done)](const error_code& error) { done(!error); });
  }
  tcp::socket& socket() override { return stream_.next_layer(); }
};

}  // namespace

bool HttpStream::PeerClosed() {
  char byte;
  return recv(socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void HttpStream::WaitReadable(std::function<void(bool)> done) {
  socket().async_wait(tcp::socket::wait_read,
                      [done = std::move(done)](const error_code& error) { done(!error); });
}

void HttpStream::ShutdownSend() {
  error_code ignored;  // the peer may be gone
  socket().shutdown(tcp::socket::shutdown_send, ignored);
}

void HttpStream::Close() {
  error_code ignored;
  socket().close(ignored);
}

std::unique_ptr<HttpStream> MakePlainStream(tcp::socket socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

std::unique_ptr<HttpStream> MakeTlsStream(tcp::socket socket, asio::ssl::context& context) {
  return std::make_unique<TlsStream>(std::move(socket), context);
}

}  // namespace muster::net::internal
