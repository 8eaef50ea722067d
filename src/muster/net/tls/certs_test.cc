#include "muster/net/tls/certs.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::net {
namespace {

using ::testing::HasSubstr;

using CertificatePtr = std::unique_ptr<X509, decltype(&X509_free)>;

CertificatePtr Parse(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  CertificatePtr certificate(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr), X509_free);
  BIO_free(bio);
  return certificate;
}

// 0 (X509_V_OK) when `authority` vouches for `leaf` in this use.
int Verify(const Credentials& authority, const Credentials& leaf, int purpose) {
  const CertificatePtr root = Parse(authority.certificate);
  const CertificatePtr certificate = Parse(leaf.certificate);
  X509_STORE* store = X509_STORE_new();
  X509_STORE_add_cert(store, root.get());
  X509_STORE_CTX* context = X509_STORE_CTX_new();
  X509_STORE_CTX_init(context, store, certificate.get(), nullptr);
  X509_STORE_CTX_set_purpose(context, purpose);
  X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(context), X509_V_FLAG_X509_STRICT);
  X509_verify_cert(context);
  const int error = X509_STORE_CTX_get_error(context);
  X509_STORE_CTX_free(context);
  X509_STORE_free(store);
  return error;
}

TEST(CertsTest, AnAuthorityVouchesForItsOwnCertificatesInTheirUse) {
  const auto authority = MakeAuthority("job", 30);
  ASSERT_TRUE(authority.ok()) << authority.status();
  const auto server = MakeCertificate(
      *authority, {.name = "chief", .hosts = {"chief-0.example", "10.1.2.3", "::1"}});
  const auto client =
      MakeCertificate(*authority, {.name = "agent", .use = CertificateUse::kClient});
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(Verify(*authority, *server, X509_PURPOSE_SSL_SERVER), X509_V_OK);
  EXPECT_EQ(Verify(*authority, *client, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
  EXPECT_EQ(Verify(*authority, *client, X509_PURPOSE_SSL_SERVER), X509_V_ERR_INVALID_PURPOSE);
  const CertificatePtr parsed = Parse(server->certificate);
  EXPECT_EQ(X509_check_host(parsed.get(), "chief-0.example", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(parsed.get(), "other.example", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_ip_asc(parsed.get(), "10.1.2.3", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(parsed.get(), "::1", 0), 1);
}

TEST(CertsTest, AnotherJobsAuthorityDoesNotVouch) {
  const auto ours = MakeAuthority("job", 30);
  const auto other = MakeAuthority("job", 30);  // the same name makes no friend
  ASSERT_TRUE(ours.ok() && other.ok());
  const auto server = MakeCertificate(*other, {.name = "chief", .hosts = {"localhost"}});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_NE(Verify(*ours, *server, X509_PURPOSE_SSL_SERVER), X509_V_OK);
}

TEST(CertsTest, EachErrorHasItsMessage) {
  const auto authority = MakeAuthority("job", 30);
  ASSERT_TRUE(authority.ok());
  EXPECT_THAT(MakeAuthority("", 30).status().ToString(), HasSubstr("1 to 64"));
  EXPECT_THAT(MakeAuthority("job", 0).status().ToString(), HasSubstr("1 to 3650"));
  EXPECT_THAT(
      MakeCertificate(*authority, {.name = "x", .hosts = {"a,DNS:evil"}}).status().ToString(),
      HasSubstr("host 'a,DNS:evil' is neither"));
  EXPECT_THAT(MakeCertificate(*authority, {.name = "x"}).status().ToString(),
              HasSubstr("give the names or addresses"));
  const auto other = MakeAuthority("job", 30);
  ASSERT_TRUE(other.ok());
  const Credentials mixed = {.certificate = authority->certificate, .key = other->key};
  const auto made = MakeCertificate(mixed, {.name = "x", .hosts = {"localhost"}});
  EXPECT_TRUE(absl::IsInvalidArgument(made.status()));
  EXPECT_THAT(made.status().ToString(), HasSubstr("no PEM certificate with its own key"));
}

TEST(CertsTest, FilesAreForTheirOwnerOnly) {
  std::string folder = testing::TempDir() + "certs-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  ASSERT_TRUE(MakeJobCertificates(folder, "job", {"localhost"}, 30).ok());
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    struct stat info;
    ASSERT_EQ(stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 6u) << "three certificates, three keys, nothing temporary";
  const auto server = ReadCredentials(folder, "server");
  const auto authority = ReadCredentials(folder, "ca");
  ASSERT_TRUE(server.ok() && authority.ok());
  EXPECT_EQ(Verify(*authority, *server, X509_PURPOSE_SSL_SERVER), X509_V_OK);
  ASSERT_EQ(chmod((folder + "/server-key.pem").c_str(), 0640), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(ReadCredentials(folder, "server").status()));
  std::filesystem::remove_all(folder);
}

TEST(CertsCheckTest, SaysWhyClientsWouldNotBelieveAServer) {
  const auto authority = MakeAuthority("job", 30);
  const auto other = MakeAuthority("job", 30);
  const auto server =
      MakeCertificate(*authority, {.name = "job", .hosts = {"10.1.2.3", "::1", "chief.example"}});
  const auto client = MakeCertificate(*authority, {.name = "job", .use = CertificateUse::kClient});
  ASSERT_TRUE(server.ok() && client.ok());
  const auto check = [&](const Credentials& root, const Credentials& leaf, const char* host) {
    return CheckServerCertificate(root.certificate, leaf.certificate, host);
  };
  for (const char* const host : {"10.1.2.3", "::1", "chief.example"}) {
    EXPECT_TRUE(check(*authority, *server, host).ok()) << check(*authority, *server, host);
  }
  EXPECT_THAT(check(*authority, *server, "10.1.2.4").message(),
              testing::AllOf(HasSubstr("10.1.2.4"), HasSubstr("mismatch")));
  EXPECT_FALSE(check(*authority, *server, "example").ok());
  EXPECT_FALSE(check(*other, *server, "10.1.2.3").ok());
  EXPECT_FALSE(check(*authority, *client, "10.1.2.3").ok());
  EXPECT_FALSE(check(*authority, {.certificate = "no PEM"}, "::1").ok());
  EXPECT_TRUE(CheckClientCertificate(authority->certificate, client->certificate).ok());
  EXPECT_FALSE(CheckClientCertificate(other->certificate, client->certificate).ok());
  EXPECT_FALSE(CheckClientCertificate(authority->certificate, server->certificate).ok());
  EXPECT_TRUE(CheckKey(*server).ok());
  EXPECT_FALSE(CheckKey({server->certificate, client->key}).ok());
  EXPECT_FALSE(CheckKey({server->certificate, "no PEM"}).ok());
}

TEST(CertsTest, AKeyThatStaysWithItsOwnerIsCertified) {
  const auto authority = MakeAuthority("job", 30);
  const auto pair = MakeKeyPair();
  ASSERT_TRUE(authority.ok() && pair.ok());
  const auto certificate = MakeCertificateFor(pair->public_key, *authority,
                                              {.name = "task", .hosts = {"worker-0.example"}});
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  const Credentials made = {.certificate = *certificate, .key = pair->key};
  EXPECT_TRUE(CheckKey(made).ok());
  EXPECT_EQ(Verify(*authority, made, X509_PURPOSE_SSL_SERVER), X509_V_OK);
}

TEST(CertsTest, OnlyAPublicKeyIsCertified) {
  const auto authority = MakeAuthority("job", 30);
  const auto pair = MakeKeyPair();
  ASSERT_TRUE(authority.ok() && pair.ok());
  const CertificateOptions options = {.name = "task", .use = CertificateUse::kClient};
  for (const std::string& text : {std::string(), std::string("key"), pair->key,
                                  authority->certificate, pair->public_key.substr(0, 60)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(MakeCertificateFor(text, *authority, options).status()));
  }
}

}  // namespace
}  // namespace muster::net
