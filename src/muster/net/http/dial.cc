#include "muster/net/http/dial.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "muster/net/listen.h"
#include "muster/net/signals_blocked.h"

namespace muster::net::internal {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

using Endpoints = std::vector<tcp::endpoint>;

struct Lookup {
  bool done = false;
  error_code error = {};
  Endpoints found = {};
};

absl::StatusOr<Endpoints> AskForName(ClientLoop& loop, const HttpUrl& url, SteadyTime deadline) {
  const auto lookup = std::make_shared<Lookup>();  // the answer may come after the deadline
  tcp::resolver resolver(loop.context());
  std::optional<SignalsBlocked> blocked(std::in_place);  // the first of them starts the thread
  resolver.async_resolve(
      url.host, std::to_string(url.port), tcp::resolver::numeric_service,
      [lookup](const error_code& error, const tcp::resolver::results_type& results) {
        lookup->done = true;
        lookup->error = error;
        for (const auto& one : results) lookup->found.push_back(one.endpoint());
      });
  blocked.reset();
  const std::string what = StrCat("find host '", url.host, "'");
  MUSTER_RETURN_IF_ERROR(Annotate(loop.RunUntil(lookup->done, deadline), what));
  if (lookup->error || lookup->found.empty()) {
    return absl::UnavailableError(StrCat(what, ": ", lookup->error.message()));
  }
  return std::move(lookup->found);
}

absl::StatusOr<Endpoints> GetEndpoints(ClientLoop& loop, const HttpUrl& url, SteadyTime deadline) {
  if (url.is_numeric) return Endpoints{{asio::ip::make_address(url.host), url.port}};
  if (url.is_loopback) {
    return Endpoints{{asio::ip::address_v4::loopback(), url.port},
                     {asio::ip::address_v6::loopback(), url.port}};
  }
  return AskForName(loop, url, deadline);
}

// When it looks for a port for this end of a connection to a port on which nobody listens, the
// system may choose that very port: the socket is then connected to itself.
bool ConnectedToItself(const tcp::socket& socket) {
  error_code here_error, there_error;
  const tcp::endpoint here = socket.local_endpoint(here_error);
  const tcp::endpoint there = socket.remote_endpoint(there_error);
  return !here_error && !there_error && here == there;
}

absl::StatusOr<tcp::socket> DialOne(ClientLoop& loop, const tcp::endpoint& endpoint,
                                    SteadyTime deadline) {
  const std::string what =
      StrCat("connect to ", HostPort(endpoint.address().to_string(), endpoint.port()));
  tcp::socket socket(loop.context());
  const int fd = ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return absl::Status(
        errno == EAFNOSUPPORT ? absl::StatusCode::kUnavailable
                              : absl::StatusCode::kResourceExhausted,
        StrCat(what, ": ", error_code(errno, asio::error::get_system_category()).message()));
  }
  error_code error;
  socket.assign(endpoint.protocol(), fd, error);
  if (error) {
    close(fd);
    return absl::ResourceExhaustedError(StrCat(what, ": ", error.message()));
  }
  bool done = false;
  socket.async_connect(endpoint, [&](const error_code& result) {
    done = true;
    error = result;
  });
  const absl::Status waited = loop.RunUntil(done, deadline);
  if (!waited.ok()) {
    error_code ignored;
    socket.close(ignored);
    loop.RunHandlers();
    return Annotate(waited, what);
  }
  if (!error && ConnectedToItself(socket)) error = asio::error::connection_refused;
  if (error) return absl::UnavailableError(StrCat(what, ": ", error.message()));
  socket.set_option(tcp::no_delay(true), error);
  return socket;
}

}  // namespace

absl::StatusOr<tcp::socket> Dial(ClientLoop& loop, const HttpUrl& url, SteadyTime deadline) {
  MUSTER_ASSIGN_OR_RETURN(const Endpoints endpoints, GetEndpoints(loop, url, deadline));
  std::string errors;
  for (size_t i = 0; i < endpoints.size(); ++i) {
    const SteadyTime now = std::chrono::steady_clock::now();
    const auto left = static_cast<SteadyTime::rep>(endpoints.size() - i);
    absl::StatusOr<tcp::socket> socket = DialOne(loop, endpoints[i], now + (deadline - now) / left);
    if (socket.ok()) return socket;
    errors += StrCat(errors.empty() ? "" : "; ", socket.status().message());
    const bool may_try_next =
        absl::IsUnavailable(socket.status()) || absl::IsDeadlineExceeded(socket.status());
    if (left == 1 || !may_try_next) return absl::Status(socket.status().code(), errors);
  }
  return absl::InternalError(StrCat("find host '", url.host, "': no address"));
}

}  // namespace muster::net::internal
