#include "muster/net/http/stream.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include "muster/net/listen.h"
#include "muster/net/tls/tls_peer.h"

namespace muster::net::internal {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// Stream: tcp::socket, or ssl::stream over it.
template <typename Stream>
class StreamOver : public HttpStream {
 public:
  template <typename... Arguments>
  explicit StreamOver(Arguments&&... arguments) : stream_(std::forward<Arguments>(arguments)...) {}

  void ReadSome(char* buffer, size_t size, Done done) override {
    stream_.async_read_some(asio::buffer(buffer, size),
                            [done = std::move(done)](const Error& error, size_t bytes) {
                              done(error || bytes > 0 ? error : Error(asio::error::eof), bytes);
                            });
  }
  void Write(std::string_view bytes, Done done) override {
    asio::async_write(stream_, asio::buffer(bytes.data(), bytes.size()), std::move(done));
  }

 protected:
  Stream stream_;
};

class PlainStream : public StreamOver<tcp::socket> {
 public:
  using StreamOver::StreamOver;
  void Handshake(std::function<void(const Error&)> done) override {
    asio::post(stream_.get_executor(), [done = std::move(done)] { done(Error()); });
  }
  // The system bounds the size by its buffers, and grows the socket's buffer to hold it.
  void SetLeastRead(size_t size) override {
    Error ignored;
    stream_.set_option(asio::socket_base::receive_low_watermark(static_cast<int>(size)), ignored);
  }
  tcp::socket& socket() override { return stream_; }
};

class TlsStream : public StreamOver<asio::ssl::stream<tcp::socket>> {
 public:
  TlsStream(tcp::socket socket, asio::ssl::context& context,
            asio::ssl::stream_base::handshake_type end)
      : StreamOver(std::move(socket), context), end_(end) {}
  void Handshake(std::function<void(const Error&)> done) override {
    stream_.async_handshake(end_, std::move(done));
  }
  tcp::socket& socket() override { return stream_.next_layer(); }
  std::string Distrust() override { return GetDistrust(stream_.native_handle()); }
  absl::Status Expect(const std::string& host) {
    const bool is_name = !ParseAddress(host).ok();
    if (is_name && SSL_set_tlsext_host_name(stream_.native_handle(), host.c_str()) != 1) {
      return absl::InvalidArgumentError(StrCat("TLS: '", host, "' is no host"));
    }
    return ExpectHost(stream_.native_handle(), host);
  }

 private:
  const asio::ssl::stream_base::handshake_type end_;
};

}  // namespace

bool HttpStream::PeerClosed() {
  char byte;
  return recv(socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

bool HttpStream::Quiet() {
  char byte;
  return recv(socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

void HttpStream::WaitReadable(std::function<void(bool)> done) {
  socket().async_wait(tcp::socket::wait_read,
                      [done = std::move(done)](const Error& error) { done(!error); });
}

void HttpStream::ShutdownSend() {
  Error ignored;  // the peer may be gone
  socket().shutdown(tcp::socket::shutdown_send, ignored);
}

void HttpStream::Close() {
  Error ignored;
  socket().close(ignored);
}

std::unique_ptr<HttpStream> MakePlainStream(tcp::socket socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

std::unique_ptr<HttpStream> MakeTlsStream(tcp::socket socket, asio::ssl::context& context) {
  return std::make_unique<TlsStream>(std::move(socket), context, asio::ssl::stream_base::server);
}

absl::StatusOr<std::unique_ptr<HttpStream>> MakeTlsClientStream(tcp::socket socket,
                                                                asio::ssl::context& context,
                                                                const std::string& host) {
  auto stream =
      std::make_unique<TlsStream>(std::move(socket), context, asio::ssl::stream_base::client);
  MUSTER_RETURN_IF_ERROR(stream->Expect(host));
  return stream;
}

}  // namespace muster::net::internal
