#include "muster/launch/yarn/yarn_config.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "muster/base/strings.h"
#include "muster/files/hdfs/spnego.h"
#include "muster/files/hdfs/web_hdfs.h"
#include "muster/io/path_scheme.h"

namespace muster::launch::yarn {
namespace {

constexpr char kLogFolder[] = "/tmp/logs", kLogSuffix[] = "logs";
constexpr int kHttpPort = 8088, kHttpsPort = 8090;
// yarn.application.classpath of Hadoop's YarnConfiguration.
constexpr char kClassPath[] =
    "$HADOOP_CONF_DIR,$HADOOP_COMMON_HOME/share/hadoop/common/*,"
    "$HADOOP_COMMON_HOME/share/hadoop/common/lib/*,$HADOOP_HDFS_HOME/share/hadoop/hdfs/*,"
    "$HADOOP_HDFS_HOME/share/hadoop/hdfs/lib/*,$HADOOP_YARN_HOME/share/hadoop/yarn/*,"
    "$HADOOP_YARN_HOME/share/hadoop/yarn/lib/*";

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> parts;
  for (const absl::string_view part : absl::StrSplit(list, ',')) {
    const absl::string_view trimmed = absl::StripAsciiWhitespace(part);
    if (!trimmed.empty()) parts.emplace_back(trimmed);
  }
  return parts;
}

std::string GetScheme(bool tls) { return tls ? "https://" : "http://"; }

bool HasTls(const files::HadoopConfig& config) {
  return config.Get("yarn.http.policy") == "HTTPS_ONLY";
}

// The web address of the ResourceManager whose properties end with `suffix`; "" if none is named.
std::string GetManager(const files::HadoopConfig& config, const std::string& suffix) {
  const bool tls = HasTls(config);
  const char* const key =
      tls ? "yarn.resourcemanager.webapp.https.address" : "yarn.resourcemanager.webapp.address";
  std::string address = config.Get(StrCat(key, suffix));
  if (address.empty()) {
    const std::string host = config.Get(StrCat("yarn.resourcemanager.hostname", suffix));
    if (!host.empty()) address = StrCat(host, ":", tls ? kHttpsPort : kHttpPort);
  }
  return address.empty() ? "" : StrCat(GetScheme(tls), address);
}

// The ResourceManager's principal, which renews delegation tokens. `url` is of its web server.
absl::StatusOr<std::string> GetRenewer(const files::HadoopConfig& config, const std::string& suffix,
                                       const std::string& url) {
  std::string principal = config.Get("yarn.resourcemanager.principal");
  if (principal.empty()) {
    return absl::FailedPreconditionError(
        "hadoop.security.authentication is kerberos, and yarn-site.xml names no "
        "yarn.resourcemanager.principal");
  }
  constexpr std::string_view kHost = "_HOST";
  const size_t at = principal.find(kHost);
  if (at == principal.npos) return principal;
  const std::string named = config.Get(StrCat("yarn.resourcemanager.hostname", suffix));
  return principal.replace(at, kHost.size(), named.empty() ? files::GetServiceHost(url) : named);
}

absl::Status Incomplete(const std::string& folder, std::string_view what) {
  return absl::FailedPreconditionError(
      StrCat(folder, ": ", what,
             ": HADOOP_CONF_DIR must be the folder of the cluster's "
             "core-site.xml and yarn-site.xml"));
}

}  // namespace

absl::StatusOr<YarnConfig> GetYarnConfig(const files::HadoopConfig& config,
                                         const std::string& folder) {
  YarnConfig found = {.folder = folder, .user = files::HadoopUser()};
  found.home = StrCat("/user/", found.user);
  std::vector<std::string> suffixes;
  for (const std::string& id : Split(config.Get("yarn.resourcemanager.ha.rm-ids"))) {
    suffixes.push_back(StrCat(".", id));
  }
  if (suffixes.empty()) suffixes.emplace_back("");
  for (const std::string& suffix : suffixes) {
    std::string url = GetManager(config, suffix);
    if (!url.empty()) found.managers.push_back(std::move(url));
  }
  if (found.managers.empty()) {
    return Incomplete(folder,
                      "neither yarn.resourcemanager.hostname nor "
                      "yarn.resourcemanager.webapp.address is set in yarn-site.xml");
  }
  if (config.Get("hadoop.security.authentication") == "kerberos") {
    MUSTER_ASSIGN_OR_RETURN(found.renewer, GetRenewer(config, suffixes[0], found.managers[0]));
  }
  if (const std::string proxy = config.Get("yarn.web-proxy.address"); !proxy.empty()) {
    found.proxy = StrCat(GetScheme(HasTls(config)), proxy);
  }
  const std::string file_system = config.Get("fs.defaultFS");
  if (io::PathScheme(file_system) != "hdfs" || io::PathAuthority(file_system).empty()) {
    return Incomplete(folder, "fs.defaultFS of core-site.xml names no HDFS");
  }
  found.file_system = StrCat("hdfs://", io::PathAuthority(file_system));
  const std::string class_path = config.Get("yarn.application.classpath");
  for (const std::string& part : Split(class_path.empty() ? kClassPath : class_path)) {
    found.class_path += StrCat(found.class_path.empty() ? "" : ":", part);
  }
  const std::string logs = config.Get("yarn.nodemanager.remote-app-log-dir");
  found.log_folder = logs.empty() ? kLogFolder : logs;
  if (io::PathScheme(found.log_folder).empty()) {
    found.log_folder.insert(0, found.file_system);
  }
  found.log_suffix = config.Get("yarn.nodemanager.remote-app-log-dir-suffix");
  if (found.log_suffix.empty()) found.log_suffix = kLogSuffix;
  double millis = 0;
  if (absl::SimpleAtod(config.Get("yarn.am.liveness-monitor.expiry-interval-ms"), &millis) &&
      millis > 0) {
    found.master_expiry_seconds = millis / 1000;
  }
  return found;
}

namespace {

// The user whose ticket this process has, as the NameNode calls it.
absl::Status FindOwner(const files::HadoopConfig& config, YarnConfig* found) {
  MUSTER_ASSIGN_OR_RETURN(auto nodes,
                          config.OfHdfs(std::string(io::PathAuthority(found->file_system))));
  MUSTER_ASSIGN_OR_RETURN(const auto calls, files::WebHdfs::New(std::move(nodes), {}));
  MUSTER_ASSIGN_OR_RETURN(const formats::Json answer,
                          calls->Call({.method = "GET", .op = "GETHOMEDIRECTORY", .path = "/"}));
  formats::JsonFields fields(answer, "GETHOMEDIRECTORY");
  found->home = fields.Text("Path");
  MUSTER_RETURN_IF_ERROR(fields.status());
  found->user = io::Basename(found->home);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<YarnConfig> ReadYarnConfig(io::FileSystem& files) {
  const std::string folder = files::HadoopConfigFolder();
  if (folder.empty()) {
    return absl::FailedPreconditionError(
        "no YARN is named: set HADOOP_CONF_DIR to the folder of the cluster's core-site.xml and "
        "yarn-site.xml");
  }
  MUSTER_ASSIGN_OR_RETURN(const auto config, files::HadoopConfig::Read(files, folder));
  MUSTER_ASSIGN_OR_RETURN(YarnConfig found, GetYarnConfig(config, folder));
  if (found.is_secure()) MUSTER_RETURN_IF_ERROR(FindOwner(config, &found));
  return found;
}

}  // namespace muster::launch::yarn
