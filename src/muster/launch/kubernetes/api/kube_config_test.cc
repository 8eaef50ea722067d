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
  EXPECT_THAT(Refusal("  user: {exec: {command: aws}}\n"),
              HasSubstr("exec: is not supported; give a token"));
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
  EXPECT_THAT(ToStd(several.status().message()), HasSubstr("name one"));
}

}  // namespace
}  // namespace muster::launch::kubernetes
