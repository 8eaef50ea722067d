#include "muster/launch/kubernetes/api/kube_config.h"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

#include "muster/formats/yaml_reader.h"
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

// The entry of the list `list` whose name is `name`: its child `kind`.
YamlReader FindEntry(const YamlReader& root, std::string_view list, std::string_view kind,
                     const std::string& name) {
  for (const YamlReader& entry : root.At(list).Items()) {
    if (entry.String("name") == name) return entry.At(kind);
  }
  root.Fail(StrCat("there is no '", name, "' in ", list));
  return root;
}

// Refuses the first of these settings that is there.
void Refuse(const YamlReader& node, std::initializer_list<std::string_view> settings,
            std::string_view instead) {
  for (const std::string_view setting : settings) {
    if (node.Has(setting)) {
      node.At(setting).Fail(StrCat("is not supported; ", instead));
    }
  }
}

class ConfigReader {
 public:
  ConfigReader(const YamlReader& root, std::string path, io::FileSystem& files)
      : root_(root), path_(std::move(path)), files_(files) {}

  absl::StatusOr<KubeAccess> Read(std::string context) {
    KubeAccess access;
    if (context.empty()) context = root_.String("current-context");
    if (context.empty()) root_.Fail("has no current-context; name one of its contexts");
    if (root_.ok()) ReadContext(context, &access);
    MUSTER_RETURN_IF_ERROR(root_.status());
    access.source = StrCat(path_, " (context ", context, ")");
    return access;
  }

 private:
  void ReadContext(const std::string& name, KubeAccess* access) {
    const YamlReader context = FindEntry(root_, "contexts", "context", name);
    if (!root_.ok()) return;
    access->name_space = context.String("namespace");
    const std::string cluster = context.At("cluster").AsString();
    const std::string user = context.String("user");
    if (root_.ok()) ReadCluster(FindEntry(root_, "clusters", "cluster", cluster), access);
    if (root_.ok() && !user.empty()) ReadUser(FindEntry(root_, "users", "user", user), access);
  }

  void ReadCluster(const YamlReader& cluster, KubeAccess* access) {
    if (!root_.ok()) return;
    Refuse(cluster, {"proxy-url", "tls-server-name"}, "give a server that is reached directly");
    if (cluster.Bool("insecure-skip-tls-verify", false)) {
      cluster.At("insecure-skip-tls-verify")
          .Fail("is not supported: give the server's certificate-authority");
    }
    access->server = cluster.At("server").AsString();
    access->authority = Contents(cluster, "certificate-authority");
  }

  void ReadUser(const YamlReader& user, KubeAccess* access) {
    if (!root_.ok()) return;
    Refuse(user, {"exec", "auth-provider"},
           "give a token (kubectl create token NAME prints one) or a client certificate");
    Refuse(user, {"username", "password"}, "give a token or a client certificate");
    Refuse(user, {"as", "as-uid", "as-groups", "as-user-extra"}, "give that user's own token");
    access->certificate = Contents(user, "client-certificate");
    access->key = Key(user);
    if (user.Has("tokenFile")) {  // it has precedence, as in kubectl
      access->token = net::BearerToken::FromFile(Resolve(user.String("tokenFile"), path_));
    } else if (user.Has("token")) {
      auto token = net::BearerToken::FromText(user.String("token"), "token");
      if (!token.ok()) return user.At("token").Fail(ToStd(token.status().message()));
      access->token = *std::move(token);
    }
    if (access->certificate.empty() != access->key.empty()) {
      user.Fail("has a client certificate or its key, but not both");
    }
  }

  // NAME-data in base64, or else the file NAME.
  std::string Contents(const YamlReader& node, const std::string& name) {
    if (node.Has(name + "-data")) return Data(node, name);
    if (!node.Has(name)) return "";
    const std::string file = Resolve(node.String(name), path_);
    auto read = io::ReadFile(files_, file, kMaxConfigBytes);
    if (!read.ok()) node.At(name).Fail(ToStd(read.status().message()));
    return read.ok() ? *std::move(read) : "";
  }

  std::string Key(const YamlReader& node) {
    if (node.Has("client-key-data")) return Data(node, "client-key");
    if (!node.Has("client-key")) return "";
    auto read = net::ReadSecretFile(Resolve(node.String("client-key"), path_));
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

  const YamlReader root_;
  const std::string path_;
  io::FileSystem& files_;
};

absl::StatusOr<KubeAccess> ReadKubeConfig(const std::string& path, const std::string& context,
                                          io::FileSystem& files) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, io::ReadFile(files, path, kMaxConfigBytes));
  MUSTER_ASSIGN_OR_RETURN(const YamlReader root, YamlReader::Parse(text, path));
  if (!root.IsMap()) return absl::InvalidArgumentError(StrCat(path, ": is no kubeconfig"));
  return ConfigReader(root, path, files).Read(context);
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
    return ReadKubeConfig(places.kubeconfig, places.context, files);
  }
  if (const std::string& path = places.environment_kubeconfig; !path.empty()) {
    if (path.find(':') != std::string::npos) {
      return absl::InvalidArgumentError(
          StrCat("KUBECONFIG=", path, " names several files, which are not merged here: name one"));
    }
    return ReadKubeConfig(path, places.context, files);
  }
  if (!places.service_host.empty()) return ReadServiceAccount(places, files);
  const std::string path = StrCat(places.home, "/.kube/config");
  if (places.home.empty() || !files.Stat(path).ok()) {
    return absl::FailedPreconditionError(
        StrCat("no configuration of a Kubernetes cluster: there is neither --kubeconfig nor "
               "KUBECONFIG, this is no pod, and there is no ",
               path));
  }
  return ReadKubeConfig(path, places.context, files);
}

}  // namespace muster::launch::kubernetes
