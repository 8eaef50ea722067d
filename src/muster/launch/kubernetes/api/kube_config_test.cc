#include "muster/launch/kubernetes/api/kube_config.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/strings.h"
#include "muster/io/local_file_system.h"

namespace muster::launch::kubernetes {
namespace {

using ::testing::HasSubstr;

constexpr char kHead[] = R"(apiVersion: v1
kind: Config
current-context: here
contexts:
- {name: here, context: {cluster: c, user: u, namespace: team}}
- {name: other, context: {cluster: c, user: second}}
clusters:
- name: c
  cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: Y2EgcGVt}
users:
- {name: second, user: {token: second-token}}
- name: u
)";

class KubeConfigTest : public ::testing::Test {
 protected:
  KubeConfigTest() { std::filesystem::create_directories(folder_); }
  ~KubeConfigTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    std::filesystem::permissions(
        path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    return path;
  }
  absl::StatusOr<KubeAccess> Read(const std::string& user, const std::string& context = "") const {
    return ReadKubeAccess({.kubeconfig = Write("config", kHead + user), .context = context},
                          *files_);
  }
  std::string Refusal(const std::string& user) const {
    const auto access = Read(user);
    EXPECT_TRUE(absl::IsInvalidArgument(access.status())) << access.status();
    return std::string(ToStd(access.status().message()));
  }

  const std::string folder_ =
      StrCat(::testing::TempDir(), "kube_config_",
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::unique_ptr<io::FileSystem> files_ = io::NewLocalFileSystem();
};

TEST_F(KubeConfigTest, ReadsTokenAuthorityAndNamespaceOfTheContext) {
  const auto access = Read("  user: {token: secret}\n");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, "https://10.0.0.1:6443");
  EXPECT_EQ(access->authority, "ca pem");
  EXPECT_EQ(access->name_space, "team");
  EXPECT_EQ(access->token->Read().value(), "secret");
  EXPECT_THAT(access->source, HasSubstr("(context here)"));
}

TEST_F(KubeConfigTest, AnotherContextHasAnotherUser) {
  const auto access = Read("  user: {token: secret}\n", "other");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->token->Read().value(), "second-token");
  EXPECT_EQ(access->name_space, "");
}

TEST_F(KubeConfigTest, FilesCountFromTheFolderOfTheKubeconfig) {
  Write("client.pem", "certificate");
  Write("client-key.pem", "key");
  Write("token", "from-file\n");
  const auto access = Read(
      "  user: {client-certificate: client.pem, client-key: client-key.pem, tokenFile: token}\n");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->certificate, "certificate");
  EXPECT_EQ(access->key, "key");
  EXPECT_EQ(access->token->Read().value(), "from-file");
}

TEST_F(KubeConfigTest, RefusesByNameWhatItDoesNotSupport) {
  EXPECT_THAT(Refusal("  user: {auth-provider: {name: gcp}}\n"), HasSubstr("auth-provider"));
  EXPECT_THAT(Refusal("  user: {username: a, password: secret}\n"), HasSubstr("username"));
  EXPECT_THAT(Refusal("  user: {client-certificate-data: Y2E=}\n"),
              HasSubstr("a client certificate or its key, but not both"));
  EXPECT_THAT(Refusal("  user: {client-certificate-data: '!'}\n"), HasSubstr("base64"));
}

TEST_F(KubeConfigTest, NoMessageHasTheSecret) {
  EXPECT_THAT(Refusal("  user: {token: 'a secret token'}\n"),
              ::testing::Not(HasSubstr("a secret token")));
}

TEST_F(KubeConfigTest, NamesWhatIsMissing) {
  const auto access = Read("  user: {token: a}\n", "elsewhere");
  EXPECT_THAT(ToStd(access.status().message()), HasSubstr("there is no 'elsewhere' in contexts"));
  EXPECT_TRUE(absl::IsInvalidArgument(
      ReadKubeAccess({.kubeconfig = Write("empty", "a: b\n")}, *files_).status()));
}

TEST_F(KubeConfigTest, APodHasItsServiceAccount) {
  Write("ca.crt", "authority");
  Write("token", "pod-token");
  Write("namespace", "training\n");
  const auto access = ReadKubeAccess({.service_host = "10.96.0.1",
                                      .service_port = "443",
                                      .home = "/root",
                                      .account_folder = folder_},
                                     *files_);
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, "https://10.96.0.1:443");
  EXPECT_EQ(access->authority, "authority");
  EXPECT_EQ(access->name_space, "training");
  EXPECT_EQ(access->token->Read().value(), "pod-token");
  Write("token", "renewed");
  EXPECT_EQ(access->token->Read().value(), "renewed");
}

TEST_F(KubeConfigTest, SaysWhereItLookedWhenThereIsNothing) {
  const auto access = ReadKubeAccess({.home = folder_}, *files_);
  EXPECT_TRUE(absl::IsFailedPrecondition(access.status()));
  EXPECT_THAT(ToStd(access.status().message()), HasSubstr(folder_ + "/.kube/config"));
  const auto several = ReadKubeAccess({.environment_kubeconfig = "/a:/b"}, *files_);
  EXPECT_THAT(ToStd(several.status().message()), HasSubstr("KUBECONFIG=/a:/b: there is no such"));
}

TEST_F(KubeConfigTest, FilesOfKubeconfigAreMerged) {
  const std::string first = Write("first", R"(
contexts: [{name: mine, context: {cluster: c, user: me}}]
users: [{name: me, user: {tokenFile: my-token}}]
)");
  Write("my-token", "first-token");
  const std::string second = Write("second", StrCat(kHead, "  user: {token: secret}\n"));
  const auto read = [&](const std::string& context) {
    return ReadKubeAccess(
        {.context = context, .environment_kubeconfig = StrCat(first, ":/none:", second)}, *files_);
  };
  const auto mine = read("mine");
  ASSERT_TRUE(mine.ok()) << mine.status();
  EXPECT_EQ(mine->server, "https://10.0.0.1:6443");
  EXPECT_EQ(mine->token->Read().value(), "first-token");
  const auto current = read("");
  ASSERT_TRUE(current.ok()) << current.status();
  EXPECT_EQ(current->token->Read().value(), "secret");
}

std::string ExecUser(const std::string& script, const std::string& more = "") {
  return StrCat("  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, ",
                "args: [-c, '", script, "'], env: [{name: REGION, value: north}]", more, "}}\n");
}

constexpr char kPrinted[] =
    R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":)";

constexpr char kToken[] = R"({"token":"%s-%s","expirationTimestamp":"2020-01-01T00:00:00Z"}})";

TEST_F(KubeConfigTest, AProgramGivesTheToken) {
  const std::string script =
      StrCat("#!/bin/sh\ncd ", folder_, "\necho x >> runs\necho said >&2\nprintf '%s", kToken,
             "' '", kPrinted, "' $REGION $(wc -l < runs)\n");
  const std::string program = Write("plugin", script);
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const auto access = Read(
      "  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, "
      "env: [{name: REGION, value: north}]}}\n");
  ASSERT_TRUE(access.ok()) << access.status();
  // It expires at once, and is asked for again.
  EXPECT_EQ(access->token->Read().value(), "north-2");
  EXPECT_EQ(access->token->Read().value(), "north-3");
}

TEST_F(KubeConfigTest, AProgramGivesACertificateAndIsToldOfTheCluster) {
  const auto access = Read(ExecUser(
      StrCat("case \"$KUBERNETES_EXEC_INFO\" in *10.0.0.1:6443*Y2EgcGVt*) ;; *) exit 7;; ",
             "esac; printf ''%s{\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\"}}'' ''",
             kPrinted, "''"),
      ", provideClusterInfo: true"));
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->certificate, "c");
  EXPECT_EQ(access->key, "k");
  EXPECT_FALSE(access->token.has_value());
}

TEST_F(KubeConfigTest, AProgramThatFailsIsNamed) {
  const auto message = [&](const std::string& user) {
    const auto access = Read(user);
    EXPECT_FALSE(access.ok());
    return std::string(ToStd(access.status().message()));
  };
  EXPECT_THAT(message(ExecUser("exit 3")),
              HasSubstr("/bin/sh: exit code 3 instead of a credential"));
  EXPECT_THAT(message(ExecUser("echo {}")), HasSubstr("printed no ExecCredential"));
  EXPECT_THAT(message("  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: "
                      "no-such-plugin, installHint: install it}}\n"),
              testing::AllOf(HasSubstr("no-such-plugin"), HasSubstr("install it")));
  EXPECT_THAT(message("  user: {exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: "
                      "a}}\n"),
              HasSubstr("v1alpha1' is neither"));
  EXPECT_THAT(message(ExecUser("true", ", interactiveMode: Always")), HasSubstr("interactiveMode"));
}

}  // namespace
}  // namespace muster::launch::kubernetes
