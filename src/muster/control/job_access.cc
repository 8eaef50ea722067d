#include "muster/control/job_access.h"

#include <charconv>
#include <utility>

#include "muster/net/listen.h"
#include "muster/net/secret_file.h"
#include "muster/net/tls/certs.h"

namespace muster::control {
namespace {

constexpr char kAuthority[] = "ca", kServer[] = "server";

absl::Status BadPlace(const std::string& text) {
  return absl::InvalidArgumentError(
      StrCat("'", text,
             "' is not an address to listen at, such as 10.0.0.5, 10.0.0.5:7000 or [::1]:7000"));
}

// Splits "ADDRESS:PORT" and "[ADDRESS]:PORT" into both parts; the port is "" if there is none. A
// text of another form comes back whole, and is no address.
std::pair<std::string, std::string> CutPort(const std::string& text) {
  const size_t colon = text.rfind(':');
  const bool has_port = colon != std::string::npos && colon + 1 < text.size();
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == text.size() - 1) return {text.substr(1, end - 1), ""};
    if (!has_port || end + 1 != colon) return {text, ""};
    return {text.substr(1, end - 1), text.substr(colon + 1)};
  }
  if (!has_port || text.find(':') != colon) return {text, ""};  // an IPv6 address has several
  return {text.substr(0, colon), text.substr(colon + 1)};
}

std::string AuthorityPath(const std::string& folder) {
  return StrCat(folder, "/", kAuthority, ".pem");
}

struct Certificates {
  std::string authority = {};
  net::Credentials server = {};
};

absl::StatusOr<Certificates> ReadCertificates(const std::string& folder) {
  Certificates read;
  MUSTER_ASSIGN_OR_RETURN(read.authority, net::ReadSecretFile(AuthorityPath(folder)));
  MUSTER_ASSIGN_OR_RETURN(read.server, net::ReadCredentials(folder, kServer));
  return read;
}

absl::StatusOr<Certificates> ReadAndCheck(const std::string& folder, const ListenPlace& place) {
  const std::string host = LocalAddress(place);
  const std::string advice = StrCat("; muster certs --out FOLDER --host ", host, " makes new ones");
  auto read = ReadCertificates(folder);
  if (absl::IsNotFound(read.status())) {
    return absl::NotFoundError(StrCat(ToStd(read.status().message()), advice));
  }
  MUSTER_RETURN_IF_ERROR(read.status());
  absl::Status status =
      net::CheckServerCertificate(read->authority, read->server.certificate, host);
  if (status.ok()) status = net::CheckKey(read->server);
  if (status.ok()) return read;
  return absl::Status(status.code(),
                      StrCat("certificates in ", folder, ": ", ToStd(status.message()), advice));
}

}  // namespace

absl::StatusOr<ListenPlace> ParseListenPlace(const std::string& text, bool tls) {
  const auto [address, port] = CutPort(text);
  ListenPlace place{.address = address, .tls = tls};
  const auto kind = net::internal::ParseAddress(address);
  if (!kind.ok()) return BadPlace(text);
  if (!port.empty()) {
    const auto end = port.data() + port.size();
    const auto parsed = std::from_chars(port.data(), end, place.port);
    if (parsed.ec != std::errc() || parsed.ptr != end || place.port < 0 || place.port > 65535) {
      return BadPlace(text);
    }
  }
  if (!kind->is_loopback && !tls) {
    return absl::InvalidArgumentError(
        StrCat("other machines reach ", address,
               ": a coordinator listens there with TLS only; make the job's certificates with "
               "muster certs --out FOLDER --host ",
               LocalAddress(place), " and add --certs FOLDER"));
  }
  return place;
}

std::string PrintListenPlace(const ListenPlace& place) {
  return net::internal::HostPort(place.address, static_cast<uint16_t>(place.port));
}

absl::Status CheckCertificates(const std::string& certificates, const ListenPlace& place) {
  return ReadAndCheck(certificates, place).status();
}

absl::Status UseCertificates(const std::string& certificates, const ListenPlace& place,
                             const JobFolder& folder) {
  MUSTER_ASSIGN_OR_RETURN(const Certificates read, ReadAndCheck(certificates, place));
  MUSTER_RETURN_IF_ERROR(net::WriteSecretFile(AuthorityPath(folder.path), read.authority));
  return net::WriteCredentials(folder.path, kServer, read.server);
}

absl::StatusOr<net::HttpServerOptions> ServerOptions(const JobFolder& folder,
                                                     const ListenPlace& place) {
  net::HttpServerOptions options;
  options.address = place.address;
  options.port = static_cast<uint16_t>(place.port);
  MUSTER_ASSIGN_OR_RETURN(options.token, net::ReadTokenFile(folder.token()));
  if (!place.tls) return options;
  MUSTER_ASSIGN_OR_RETURN(net::Credentials server, net::ReadCredentials(folder.path, kServer));
  options.tls =
      net::ServerTls{.certificate = std::move(server.certificate), .key = std::move(server.key)};
  return options;
}

absl::StatusOr<net::HttpClientOptions> ClientOptions(const JobFolder& folder,
                                                     const std::string& url) {
  net::HttpClientOptions options;
  options.url = url;
  MUSTER_ASSIGN_OR_RETURN(options.token, net::ReadTokenFile(folder.token()));
  if (!url.starts_with("https://")) return options;
  net::ClientTls tls;
  MUSTER_ASSIGN_OR_RETURN(tls.authority, net::ReadSecretFile(AuthorityPath(folder.path)));
  options.tls = std::move(tls);
  return options;
}

std::string LocalAddress(const ListenPlace& place) {
  if (place.address == "0.0.0.0") return "127.0.0.1";
  return place.address == "::" ? "::1" : place.address;
}

std::string LocalUrl(const ListenPlace& place, int port) {
  return StrCat(place.tls ? "https://" : "http://",
                net::internal::HostPort(LocalAddress(place), static_cast<uint16_t>(port)));
}

}  // namespace muster::control
