#include "muster/launch/kubernetes/api/kube_config.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"

#include "muster/formats/yaml_reader.h"
#include "muster/launch/kubernetes/api/exec_credential.h"
#include "muster/net/secret_file.h"

namespace muster::launch::kubernetes {
namespace {

using formats::YamlReader;

constexpr uint64_t kMaxConfigBytes = uint64_t{4} << 20;

std::string GetVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A path in a kubeconfig counts from the file's folder.
std::string Resolve(const std::string& path, const std::string& config) {
  if (path.empty() || path.front() == '/') return path;
  const size_t slash = config.rfind('/');
  return slash == std::string::npos ? path : StrCat(config.substr(0, slash + 1), path);
}

// One of the files that KUBECONFIG names.
struct ConfigFile {
  YamlReader root;
  std::string path;
};

// Refuses the first of these settings that is there.
void Refuse(const YamlReader& node, std::initializer_list<std::string_view> settings,
            std::string_view instead) {
  for (const std::string_view setting : settings) {
    if (node.Has(setting)) {
      node.At(setting).Fail(StrCat("is not supported; ", instead));
    }
  }
}

// An entry of a list, and the file that it is in.
struct Entry {
  YamlReader node;
  const ConfigFile* file;
};

class ConfigReader {
 public:
  ConfigReader(std::vector<ConfigFile> configs, io::FileSystem& files)
      : configs_(std::move(configs)), files_(files) {}

  absl::StatusOr<KubeAccess> Read(std::string context) {
    KubeAccess access;
    for (const ConfigFile& config : configs_) {
      if (context.empty()) context = config.root.String("current-context");
    }
    const ConfigFile& first = configs_.front();
    if (context.empty()) first.root.Fail("has no current-context; name one of its contexts");
    if (ok()) ReadContext(context, &access);
    for (const ConfigFile& config : configs_) MUSTER_RETURN_IF_ERROR(config.root.status());
    MUSTER_RETURN_IF_ERROR(RunPlugin(&access));
    access.source = StrCat(first.path, " (context ", context, ")");
    return access;
  }

 private:
  bool ok() const {
    return std::all_of(configs_.begin(), configs_.end(),
                       [](const ConfigFile& config) { return config.root.ok(); });
  }

  // The first entry of the lists `list` whose name is `name`: its child `kind`.
  Entry FindEntry(std::string_view list, std::string_view kind, const std::string& name) const {
    for (const ConfigFile& config : configs_) {
      if (!config.root.Has(list)) continue;
      for (const YamlReader& entry : config.root.At(list).Items()) {
        if (entry.String("name") == name) return {entry.At(kind), &config};
      }
    }
    const ConfigFile& first = configs_.front();
    first.root.Fail(StrCat("there is no '", name, "' in ", list));
    return {first.root, &first};
  }

  void ReadContext(const std::string& name, KubeAccess* access) {
    const YamlReader context = FindEntry("contexts", "context", name).node;
    if (!ok()) return;
    access->name_space = context.String("namespace");
    const std::string cluster = context.At("cluster").AsString();
    const std::string user = context.String("user");
    if (ok()) ReadCluster(FindEntry("clusters", "cluster", cluster), access);
    if (ok() && !user.empty()) ReadUser(FindEntry("users", "user", user), access);
  }

  void ReadCluster(const Entry& entry, KubeAccess* access) {
    if (!ok()) return;
    const YamlReader& cluster = entry.node;
    Refuse(cluster, {"proxy-url", "tls-server-name"}, "give a server that is reached directly");
    if (cluster.Bool("insecure-skip-tls-verify", false)) {
      cluster.At("insecure-skip-tls-verify")
          .Fail("is not supported: give the server's certificate-authority");
    }
    access->server = cluster.At("server").AsString();
    access->authority = Contents(entry, "certificate-authority");
  }

  void ReadUser(const Entry& entry, KubeAccess* access) {
    if (!ok()) return;
    const YamlReader& user = entry.node;
    Refuse(user, {"auth-provider"},
           "give a token (kubectl create token NAME prints one), a client certificate, or exec");
    Refuse(user, {"username", "password"}, "give a token or a client certificate");
    Refuse(user, {"as", "as-uid", "as-groups", "as-user-extra"}, "give that user's own token");
    access->certificate = Contents(entry, "client-certificate");
    access->key = Key(entry);
    if (user.Has("tokenFile")) {  // it has precedence, as in kubectl
      access->token =
          net::BearerToken::FromFile(Resolve(user.String("tokenFile"), entry.file->path));
    } else if (user.Has("token")) {
      auto token = net::BearerToken::FromText(user.String("token"), "token");
      if (!token.ok()) return user.At("token").Fail(ToStd(token.status().message()));
      access->token = *std::move(token);
    } else if (user.Has("exec")) {
      ReadExec(user.At("exec"), entry.file->path, *access);
    }
    if (access->certificate.empty() != access->key.empty()) {
      user.Fail("has a client certificate or its key, but not both");
    }
  }

  void ReadExec(const YamlReader& exec, const std::string& path, const KubeAccess& access) {
    ExecSpec spec = {.command = exec.At("command").AsString(),
                     .arguments = exec.Strings("args"),
                     .api_version = exec.String("apiVersion"),
                     .install_hint = exec.String("installHint")};
    if (spec.command.find('/') != std::string::npos) spec.command = Resolve(spec.command, path);
    constexpr std::string_view kGroup = "client.authentication.k8s.io/";
    if (spec.api_version != StrCat(kGroup, "v1") && spec.api_version != StrCat(kGroup, "v1beta1")) {
      exec.Fail(StrCat("apiVersion '", spec.api_version, "' is neither ", kGroup, "v1 nor ", kGroup,
                       "v1beta1: renew the kubeconfig by the tool that made it"));
    }
    if (exec.String("interactiveMode") == "Always") {
      exec.At("interactiveMode").Fail("is not supported: give a program that asks nothing");
    }
    if (exec.Has("env") && !exec.At("env").node().IsNull()) {
      for (const YamlReader& variable : exec.At("env").Items()) {
        spec.environment.emplace_back(variable.String("name"), variable.String("value"));
      }
    }
    spec.tells_cluster = exec.Bool("provideClusterInfo", false);
    spec.server = access.server;
    spec.authority = access.authority;
    if (ok()) plugin_ = std::make_shared<ExecCredential>(std::move(spec));
  }

  // A certificate is asked for now, a token again and again.
  absl::Status RunPlugin(KubeAccess* access) const {
    if (plugin_ == nullptr) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(Credential credential, plugin_->Get());
    access->certificate = std::move(credential.certificate);
    access->key = std::move(credential.key);
    if (credential.token.empty()) return absl::OkStatus();
    access->token = net::BearerToken::FromFunction(
        [plugin = plugin_]() -> absl::StatusOr<std::string> {
          MUSTER_ASSIGN_OR_RETURN(Credential now, plugin->Get());
          return std::move(now.token);
        },
        "the output of the kubeconfig's exec");
    return absl::OkStatus();
  }

  // NAME-data in base64, or else the file NAME.
  std::string Contents(const Entry& entry, const std::string& name) {
    const YamlReader& node = entry.node;
    if (node.Has(name + "-data")) return Data(node, name);
    if (!node.Has(name)) return "";
    const std::string file = Resolve(node.String(name), entry.file->path);
    auto read = io::ReadFile(files_, file, kMaxConfigBytes);
    if (!read.ok()) node.At(name).Fail(ToStd(read.status().message()));
    return read.ok() ? *std::move(read) : "";
  }

  std::string Key(const Entry& entry) {
    const YamlReader& node = entry.node;
    if (node.Has("client-key-data")) return Data(node, "client-key");
    if (!node.Has("client-key")) return "";
    auto read = net::ReadSecretFile(Resolve(node.String("client-key"), entry.file->path));
    if (!read.ok()) node.At("client-key").Fail(ToStd(read.status().message()));
    return read.ok() ? *std::move(read) : "";
  }

  static std::string Data(const YamlReader& node, const std::string& name) {
    std::string decoded;
    const std::string text = node.String(name + "-data");
    if (node.ok() && !absl::Base64Unescape(text, &decoded)) {
      node.At(name + "-data").Fail("is not in base64");
    }
    return decoded;
  }

  const std::vector<ConfigFile> configs_;
  io::FileSystem& files_;
  std::shared_ptr<ExecCredential> plugin_;
};

// Reads files of which the first one's entries count before the others', as kubectl merges them.
absl::StatusOr<KubeAccess> ReadKubeConfigs(const std::vector<std::string>& paths,
                                           const std::string& context, io::FileSystem& files) {
  std::vector<ConfigFile> configs;
  for (const std::string& path : paths) {
    auto text = io::ReadFile(files, path, kMaxConfigBytes);
    if (!text.ok()) return Annotate(text.status(), "the kubeconfig");
    MUSTER_ASSIGN_OR_RETURN(const YamlReader root, YamlReader::Parse(*text, path));
    if (!root.IsMap()) return absl::InvalidArgumentError(StrCat(path, ": is no kubeconfig"));
    configs.push_back({.root = root, .path = path});
  }
  return ConfigReader(std::move(configs), files).Read(context);
}

// The files of KUBECONFIG that exist: kubectl leaves out the others, too.
absl::StatusOr<std::vector<std::string>> SplitKubeConfig(const std::string& variable,
                                                         io::FileSystem& files) {
  std::vector<std::string> paths;
  for (const absl::string_view part : absl::StrSplit(variable, ':', absl::SkipEmpty())) {
    std::string path(part);
    if (!absl::IsNotFound(files.Stat(path).status())) paths.push_back(std::move(path));
  }
  if (!paths.empty()) return paths;
  return absl::NotFoundError(StrCat("KUBECONFIG=", variable, ": there is no such file"));
}

absl::StatusOr<KubeAccess> ReadServiceAccount(const KubeConfigPlaces& places,
                                              io::FileSystem& files) {
  KubeAccess access;
  const bool is_ipv6 = places.service_host.find(':') != std::string::npos;
  access.server = StrCat("https://", is_ipv6 ? "[" : "", places.service_host, is_ipv6 ? "]" : "",
                         ":", places.service_port.empty() ? "443" : places.service_port);
  access.source = StrCat("the service account in ", places.account_folder);
  const auto read = [&](std::string_view name) {
    return io::ReadFile(files, StrCat(places.account_folder, "/", name), kMaxConfigBytes);
  };
  MUSTER_ASSIGN_OR_RETURN(access.authority, read("ca.crt"));
  access.token = net::BearerToken::FromMountedFile(StrCat(places.account_folder, "/token"));
  if (const auto name_space = read("namespace"); name_space.ok()) {
    access.name_space = std::string(absl::StripAsciiWhitespace(*name_space));
  }
  return access;
}

}  // namespace

KubeConfigPlaces GetKubeConfigPlaces() {
  return {.environment_kubeconfig = GetVariable("KUBECONFIG"),
          .service_host = GetVariable("KUBERNETES_SERVICE_HOST"),
          .service_port = GetVariable("KUBERNETES_SERVICE_PORT"),
          .home = GetVariable("HOME")};
}

absl::StatusOr<KubeAccess> ReadKubeAccess(const KubeConfigPlaces& places, io::FileSystem& files) {
  if (!places.kubeconfig.empty()) {
    return ReadKubeConfigs({places.kubeconfig}, places.context, files);
  }
  if (const std::string& variable = places.environment_kubeconfig; !variable.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const auto paths, SplitKubeConfig(variable, files));
    return ReadKubeConfigs(paths, places.context, files);
  }
  if (!places.service_host.empty()) return ReadServiceAccount(places, files);
  const std::string path = StrCat(places.home, "/.kube/config");
  if (places.home.empty() || !files.Stat(path).ok()) {
    return absl::FailedPreconditionError(
        StrCat("no configuration of a Kubernetes cluster: there is neither --kubeconfig nor "
               "KUBECONFIG, this is no pod, and there is no ",
               path));
  }
  return ReadKubeConfigs({path}, places.context, files);
}

}  // namespace muster::launch::kubernetes
