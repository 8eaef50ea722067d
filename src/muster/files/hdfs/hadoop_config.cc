#include "muster/files/hdfs/hadoop_config.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

#include "muster/base/strings.h"
#include "muster/io/path_scheme.h"
#include "pugixml.hpp"

namespace muster::files {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{16} << 20;
constexpr int kMaxReplacements = 20;  // as Hadoop's Configuration.MAX_SUBST
constexpr int kRpcPort = 8020, kHttpPort = 9870, kHttpsPort = 9871;

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool HasPort(std::string_view authority) {
  const size_t colon = authority.rfind(':');
  // The colons of an IPv6 address are in brackets.
  return colon != authority.npos && authority.find(']', colon) == authority.npos;
}

std::string WithPort(std::string_view authority, int port) {
  return HasPort(authority) ? std::string(authority) : StrCat(authority, ":", port);
}

std::string GetHost(std::string_view authority) {
  return std::string(HasPort(authority) ? authority.substr(0, authority.rfind(':')) : authority);
}

// An http address of the configuration names every interface by 0.0.0.0: then the host of the RPC
// address is meant.
std::string HttpAddress(const std::string& configured, const std::string& rpc_host, int port) {
  const std::string host = GetHost(configured);
  if (configured.empty() || host.empty() || host == "0.0.0.0") {
    return WithPort(rpc_host, configured.empty() || !HasPort(configured)
                                  ? port
                                  : std::atoi(configured.c_str() + configured.rfind(':') + 1));
  }
  return WithPort(configured, port);
}

std::string Url(bool tls, const std::string& address) {
  return StrCat(tls ? "https://" : "http://", address);
}

std::vector<std::string> Names(const std::string& list) {
  std::vector<std::string> names;
  for (const absl::string_view name : absl::StrSplit(list, ',')) {
    const absl::string_view trimmed = absl::StripAsciiWhitespace(name);
    if (!trimmed.empty()) names.emplace_back(trimmed);
  }
  return names;
}

}  // namespace

std::string HadoopConfigFolder() {
  if (std::string folder = FromEnvironment("HADOOP_CONF_DIR"); !folder.empty()) return folder;
  const std::string home = FromEnvironment("HADOOP_HOME");
  return home.empty() ? "" : io::JoinPath(home, "etc/hadoop");
}

const std::vector<std::string>& HadoopConfigFiles() {
  static const std::vector<std::string> kFiles = {"core-site.xml", "hdfs-site.xml",
                                                  "yarn-site.xml"};
  return kFiles;
}

std::string HadoopUser() {
  const std::string name = FromEnvironment("HADOOP_USER_NAME");
  if (!name.empty()) return name;
  const passwd* const entry = getpwuid(geteuid());
  return entry == nullptr ? "" : entry->pw_name;
}

std::string HadoopProxyUser() { return FromEnvironment("HADOOP_PROXY_USER"); }

absl::StatusOr<HadoopConfig> HadoopConfig::Read(io::FileSystem& files, const std::string& folder) {
  HadoopConfig config;
  config.folder_ = folder;
  if (folder.empty()) return config;
  for (const std::string& name : HadoopConfigFiles()) {
    const absl::Status status = config.ReadFile(files, io::JoinPath(folder, name));
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  return config;
}

absl::Status HadoopConfig::ReadFile(io::FileSystem& files, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, io::ReadFile(files, path, kMaxFileBytes));
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  const pugi::xml_node root = document.child("configuration");
  if (!parsed || !root) {
    return absl::InvalidArgumentError(
        StrCat(path, ": this is no Hadoop configuration",
               parsed ? " (it has no element <configuration>)"
                      : StrCat(" (", parsed.description(), " at byte ", parsed.offset, ")")));
  }
  for (const pugi::xml_node property : root.children("property")) {
    const std::string name(absl::StripAsciiWhitespace(property.child_value("name")));
    if (name.empty()) continue;
    values_[name] = std::string(absl::StripAsciiWhitespace(property.child_value("value")));
  }
  return absl::OkStatus();
}

std::string HadoopConfig::Get(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return "";
  std::string value = found->second;
  for (int i = 0; i < kMaxReplacements; ++i) {
    const size_t begin = value.find("${");
    const size_t end = begin == value.npos ? begin : value.find('}', begin);
    if (end == value.npos) break;
    const std::string variable = value.substr(begin + 2, end - begin - 2);
    const auto other = values_.find(variable);
    std::string replacement;
    if (other != values_.end()) {
      replacement = other->second;
    } else if (variable.starts_with("env.")) {
      replacement = FromEnvironment(variable.c_str() + 4);
    } else {
      break;
    }
    value.replace(begin, end + 1 - begin, replacement);
  }
  return value;
}

bool HadoopConfig::WantsTls() const { return Get("dfs.http.policy") == "HTTPS_ONLY"; }

bool HadoopConfig::IsNameService(std::string_view name) const {
  const auto names = Names(Get("dfs.nameservices"));
  return std::find(names.begin(), names.end(), name) != names.end();
}

absl::StatusOr<NameNodes> HadoopConfig::OfNameService(const std::string& name, bool tls) const {
  const int port = tls ? kHttpsPort : kHttpPort;
  const char* const key = tls ? "dfs.namenode.https-address." : "dfs.namenode.http-address.";
  NameNodes found = {.authority = name};
  std::vector<std::string> suffixes;
  for (const std::string& node : Names(Get(StrCat("dfs.ha.namenodes.", name)))) {
    suffixes.push_back(StrCat(name, ".", node));
  }
  if (suffixes.empty()) suffixes.push_back(name);  // a nameservice of one NameNode
  for (const std::string& suffix : suffixes) {
    const std::string rpc = Get(StrCat("dfs.namenode.rpc-address.", suffix));
    const std::string http = Get(StrCat(key, suffix));
    if (rpc.empty() && http.empty()) {
      return absl::InvalidArgumentError(StrCat(folder_, ": the nameservice ", name, " has neither ",
                                               key, suffix, " nor dfs.namenode.rpc-address.",
                                               suffix, " in hdfs-site.xml"));
    }
    found.urls.push_back(Url(tls, HttpAddress(http, GetHost(rpc.empty() ? http : rpc), port)));
  }
  return found;
}

absl::StatusOr<std::string> HadoopConfig::GetDefault(std::string_view scheme) const {
  const std::string set =
      Get("fs.defaultFS").empty() ? Get("fs.default.name") : Get("fs.defaultFS");
  const std::string_view of = io::PathScheme(set), authority = io::PathAuthority(set);
  if (!authority.empty() && (of == scheme || of == "hdfs")) return set;
  return absl::InvalidArgumentError(
      StrCat("no NameNode is named: write ", scheme, "://HOST:PORT/PATH, or ",
             folder_.empty()
                 ? "set HADOOP_CONF_DIR to the folder of core-site.xml"
                 : StrCat("give fs.defaultFS an hdfs:// value in ", folder_, "/core-site.xml")));
}

NameNodes HadoopConfig::OfRpcAddress(const std::string& authority, bool tls) const {
  const std::string rpc = WithPort(authority, kRpcPort);
  // An http address of the configuration is that of this NameNode if its RPC address is, too.
  const std::string configured_rpc =
      Get("dfs.namenode.rpc-address").empty()
          ? std::string(io::PathAuthority(GetDefault("hdfs").value_or("")))
          : Get("dfs.namenode.rpc-address");
  const std::string http =
      !configured_rpc.empty() && WithPort(configured_rpc, kRpcPort) == rpc
          ? Get(tls ? "dfs.namenode.https-address" : "dfs.namenode.http-address")
          : "";
  return {.authority = rpc,
          .urls = {Url(tls, HttpAddress(http, GetHost(rpc), tls ? kHttpsPort : kHttpPort))}};
}

absl::StatusOr<NameNodes> HadoopConfig::OfHdfs(const std::string& authority) const {
  if (authority.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const std::string set, GetDefault("hdfs"));
    return OfHdfs(std::string(io::PathAuthority(set)));
  }
  if (IsNameService(authority)) return OfNameService(authority, WantsTls());
  return OfRpcAddress(authority, WantsTls());
}

absl::StatusOr<NameNodes> HadoopConfig::OfWebHdfs(const std::string& authority, bool tls) const {
  if (authority.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const std::string set, GetDefault(tls ? "swebhdfs" : "webhdfs"));
    const std::string name(io::PathAuthority(set));
    if (io::PathScheme(set) != "hdfs" || IsNameService(name)) return OfWebHdfs(name, tls);
    const std::string url = OfRpcAddress(name, tls).urls[0];
    return OfWebHdfs(url.substr(url.find("//") + 2), tls);
  }
  if (IsNameService(authority)) return OfNameService(authority, tls);
  const std::string address = WithPort(authority, tls ? kHttpsPort : kHttpPort);
  return NameNodes{.authority = address, .urls = {Url(tls, address)}};
}

}  // namespace muster::files
