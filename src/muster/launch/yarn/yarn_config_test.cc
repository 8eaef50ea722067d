#include "muster/launch/yarn/yarn_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "muster/io/memory_file_system.h"

namespace muster::launch::yarn {
namespace {

using Properties = std::vector<std::pair<std::string, std::string>>;

absl::StatusOr<YarnConfig> Read(const Properties& properties) {
  const auto files = io::NewMemoryFileSystem();
  (void)files->MakeFolders("/conf");
  std::string text = "<configuration>";
  for (const auto& [name, value] : properties) {
    text += "<property><name>" + name + "</name><value>" + value + "</value></property>";
  }
  (void)io::WriteFileAtomically(*files, "/conf/yarn-site.xml", text + "</configuration>");
  auto config = files::HadoopConfig::Read(*files, "/conf");
  if (!config.ok()) return config.status();
  return GetYarnConfig(*config, "/conf");
}

const std::pair<std::string, std::string> kFileSystem = {"fs.defaultFS", "hdfs://nn:8020/"};

TEST(YarnConfig, OneResourceManagerByItsHost) {
  const auto config = Read({kFileSystem, {"yarn.resourcemanager.hostname", "rm"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->managers, testing::ElementsAre("http://rm:8088"));
  EXPECT_EQ(config->file_system, "hdfs://nn:8020");
  EXPECT_THAT(config->class_path, testing::HasSubstr("$HADOOP_YARN_HOME/share/hadoop/yarn/*:"));
}

TEST(YarnConfig, SeveralResourceManagers) {
  const auto config = Read({kFileSystem,
                            {"yarn.resourcemanager.ha.rm-ids", "a, b"},
                            {"yarn.resourcemanager.hostname.a", "rm1"},
                            {"yarn.resourcemanager.webapp.address.b", "rm2:9000"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->managers, testing::ElementsAre("http://rm1:8088", "http://rm2:9000"));
}

TEST(YarnConfig, TheResourceManagerRenewsTokens) {
  const std::pair<std::string, std::string> secure = {"hadoop.security.authentication", "kerberos"};
  const std::pair<std::string, std::string> host = {"yarn.resourcemanager.hostname", "rm"};
  auto config =
      Read({kFileSystem, secure, host, {"yarn.resourcemanager.principal", "yarn/_HOST@REALM"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->is_secure());
  EXPECT_EQ(config->renewer, "yarn/rm@REALM");
  config = Read({kFileSystem,
                 secure,
                 {"yarn.resourcemanager.webapp.address", "rm2:9000"},
                 {"yarn.resourcemanager.principal", "yarn/_HOST@REALM"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->renewer, "yarn/rm2@REALM");
  EXPECT_THAT(std::string(Read({kFileSystem, secure, host}).status().message()),
              testing::HasSubstr("names no yarn.resourcemanager.principal"));
  EXPECT_FALSE(Read({kFileSystem, host})->is_secure());
}

TEST(YarnConfig, Tls) {
  const auto config = Read(
      {kFileSystem, {"yarn.http.policy", "HTTPS_ONLY"}, {"yarn.resourcemanager.hostname", "rm"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->managers, testing::ElementsAre("https://rm:8090"));
}

TEST(YarnConfig, AWebProxyOfItsOwn) {
  const auto config = Read({kFileSystem,
                            {"yarn.resourcemanager.hostname", "rm"},
                            {"yarn.web-proxy.address", "proxy:9046"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->proxy, "http://proxy:9046");
}

TEST(YarnConfig, TheClassPathOfTheCluster) {
  const auto config = Read({kFileSystem,
                            {"yarn.resourcemanager.hostname", "rm"},
                            {"yarn.application.classpath", "/etc/hadoop, /opt/hadoop/*"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->class_path, "/etc/hadoop:/opt/hadoop/*");
}

TEST(YarnConfig, SaysWhatIsMissing) {
  const auto no_manager = Read({kFileSystem});
  EXPECT_TRUE(absl::IsFailedPrecondition(no_manager.status()));
  EXPECT_THAT(std::string(ToStd(no_manager.status().message())),
              testing::HasSubstr("/conf: neither yarn.resourcemanager.hostname"));
  const auto no_files = Read({{"yarn.resourcemanager.hostname", "rm"}});
  EXPECT_TRUE(absl::IsFailedPrecondition(no_files.status()));
  EXPECT_THAT(std::string(ToStd(no_files.status().message())), testing::HasSubstr("fs.defaultFS"));
}

}  // namespace
}  // namespace muster::launch::yarn
