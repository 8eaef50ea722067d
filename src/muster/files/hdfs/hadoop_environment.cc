#include "muster/files/hdfs/hadoop_environment.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cstdlib>
#include <vector>

#include "muster/base/strings.h"
#include "muster/files/hdfs/hadoop_token.h"

namespace muster::files {
namespace {

constexpr uint64_t kMaxTokenFileBytes = uint64_t{16} << 20;

std::string GetVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "10.0.0.1:8020" of "namenode:8020"; the text itself if the host is not known.
std::string InNumbers(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == address.npos) return address;
  addrinfo hints = {};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.substr(0, colon).c_str(), nullptr, &hints, &found) != 0) return address;
  char text[INET_ADDRSTRLEN] = {};
  const auto* const first = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
  inet_ntop(AF_INET, &first->sin_addr, text, sizeof text);
  freeaddrinfo(found);
  return StrCat(text, address.substr(colon));
}

bool IsOfHdfs(const std::string& kind) {
  return kind == kHdfsTokenKind || kind == "WEBHDFS delegation" || kind == "SWEBHDFS delegation";
}

bool IsFor(const HadoopToken& token, const NameNodes& nodes) {
  if (!IsOfHdfs(token.kind)) return false;
  const std::string& service = token.service;
  if (service == GetTokenService(nodes) || service == nodes.authority) return true;
  for (const std::string& url : nodes.urls) {
    const std::string address = url.substr(url.find("//") + 2);
    if (service == address || service == InNumbers(address)) return true;
  }
  return false;
}

}  // namespace

std::string GetTokenService(const NameNodes& nodes) {
  const bool has_port = nodes.authority.find(':') != std::string::npos;
  return has_port ? InNumbers(nodes.authority) : StrCat("ha-hdfs:", nodes.authority);
}

absl::StatusOr<NameNodes> HadoopEnvironment::Resolve(std::string_view scheme,
                                                     const std::string& authority) {
  std::call_once(once_, [&] { config_ = HadoopConfig::Read(*local_, HadoopConfigFolder()); });
  MUSTER_RETURN_IF_ERROR(config_.status());
  if (scheme == "hdfs") return config_->OfHdfs(authority);
  if (scheme == "webhdfs" || scheme == "swebhdfs") {
    return config_->OfWebHdfs(authority, scheme == "swebhdfs");
  }
  return absl::InvalidArgumentError(
      StrCat("'", scheme, "' is not hdfs, webhdfs or swebhdfs: give a path of HDFS"));
}

absl::StatusOr<std::string> HadoopEnvironment::FindToken(const NameNodes& nodes) const {
  const std::string path = GetVariable("HADOOP_TOKEN_FILE_LOCATION");
  if (path.empty()) return "";
  MUSTER_ASSIGN_OR_RETURN(const std::string bytes, io::ReadFile(*local_, path, kMaxTokenFileBytes));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<HadoopToken> tokens, ParseTokenFile(bytes, path));
  for (const HadoopToken& token : tokens) {
    if (IsFor(token, nodes)) return PrintTokenText(token);
  }
  return "";
}

absl::StatusOr<std::unique_ptr<WebHdfs>> HadoopEnvironment::Open(NameNodes nodes) const {
  auto token = FindToken(nodes);
  if (!token.ok()) return Annotate(token.status(), "HADOOP_TOKEN_FILE_LOCATION");
  return WebHdfs::New(std::move(nodes), {.user = HadoopUser(),
                                         .proxy_user = HadoopProxyUser(),
                                         .token = *std::move(token),
                                         .note = note_});
}

}  // namespace muster::files
