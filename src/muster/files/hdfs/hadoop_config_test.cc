#include "muster/files/hdfs/hadoop_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "muster/io/memory_file_system.h"

namespace muster::files {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Property(const char* name, const char* value) {
  return StrCat("<property><name>", name, "</name>\n <value> ", value, " </value></property>");
}

class HadoopConfigTest : public testing::Test {
 protected:
  HadoopConfigTest() { EXPECT_TRUE(files_->MakeFolders("/conf").ok()); }

  void Write(const char* name, const std::string& properties) {
    const std::string text = StrCat("<?xml version=\"1.0\"?>\n<configuration>", properties,
                                    "<!-- more --></configuration>");
    ASSERT_TRUE(io::WriteFileAtomically(*files_, io::JoinPath("/conf", name), text).ok());
  }
  HadoopConfig Read() {
    auto config = HadoopConfig::Read(*files_, "/conf");
    EXPECT_TRUE(config.ok()) << config.status();
    return *std::move(config);
  }
  std::vector<std::string> Urls(const std::string& authority) {
    const auto nodes = Read().OfHdfs(authority);
    EXPECT_TRUE(nodes.ok()) << nodes.status();
    return nodes.ok() ? nodes->urls : std::vector<std::string>();
  }

  std::unique_ptr<io::FileSystem> files_ = io::NewMemoryFileSystem();
};

TEST_F(HadoopConfigTest, WithoutFilesPortsAreHadoopsDefaults) {
  EXPECT_EQ(Read().OfHdfs("nn")->authority, "nn:8020");
  EXPECT_THAT(Urls("nn"), ElementsAre("http://nn:9870"));
  EXPECT_THAT(Urls("nn:9000"), ElementsAre("http://nn:9870"));
  EXPECT_THAT(Urls("[::1]:9000"), ElementsAre("http://[::1]:9870"));
  EXPECT_THAT(Read().OfWebHdfs("nn", false)->urls, ElementsAre("http://nn:9870"));
  EXPECT_THAT(Read().OfWebHdfs("nn:14000", false)->urls, ElementsAre("http://nn:14000"));
  EXPECT_THAT(Read().OfWebHdfs("nn", true)->urls, ElementsAre("https://nn:9871"));
}

TEST_F(HadoopConfigTest, APathWithoutANameNodeIsOfTheDefaultFileSystem) {
  const auto none = Read().OfHdfs("");
  EXPECT_TRUE(absl::IsInvalidArgument(none.status())) << none.status();
  EXPECT_THAT(std::string(ToStd(none.status().message())), HasSubstr("fs.defaultFS"));
  Write("core-site.xml",
        StrCat(Property("master", "nn"), Property("fs.defaultFS", "hdfs://${master}:9000")));
  EXPECT_EQ(Read().OfHdfs("")->authority, "nn:9000");
}

TEST_F(HadoopConfigTest, WebHdfsWithoutANameNodeIsTheDefaultFileSystem) {
  for (const bool tls : {false, true}) {
    const auto none = HadoopConfig().OfWebHdfs("", tls);
    EXPECT_TRUE(absl::IsInvalidArgument(none.status())) << none.status();
    EXPECT_THAT(std::string(ToStd(none.status().message())),
                AllOf(HasSubstr("set HADOOP_CONF_DIR"), HasSubstr(tls ? "swebhdfs:" : "webhdfs:")));
  }
  Write("core-site.xml", Property("fs.defaultFS", "hdfs://nn:9000"));
  Write("hdfs-site.xml", Property("dfs.namenode.http-address", "0.0.0.0:50070"));
  EXPECT_EQ(Read().OfWebHdfs("", false)->authority, "nn:50070") << "which is found again";
  EXPECT_THAT(Read().OfWebHdfs("", false)->urls, ElementsAre("http://nn:50070"));
  EXPECT_THAT(Read().OfWebHdfs("", true)->urls, ElementsAre("https://nn:9871"));
  Write("core-site.xml", Property("fs.defaultFS", "webhdfs://nn:14000"));
  EXPECT_THAT(Read().OfWebHdfs("", false)->urls, ElementsAre("http://nn:14000"));
  EXPECT_TRUE(absl::IsInvalidArgument(Read().OfWebHdfs("", true).status()));
  Write("core-site.xml", Property("fs.defaultFS", "hdfs://ns1"));
  Write("hdfs-site.xml", StrCat(Property("dfs.nameservices", "ns1"),
                                Property("dfs.namenode.http-address.ns1", "nn3:9870")));
  EXPECT_EQ(Read().OfWebHdfs("", false)->authority, "ns1");
}

TEST_F(HadoopConfigTest, TheHttpAddressBelongsToTheNameNodeOfTheRpcAddress) {
  Write("core-site.xml", Property("fs.defaultFS", "hdfs://nn:9000"));
  Write("hdfs-site.xml", Property("dfs.namenode.http-address", "0.0.0.0:50070"));
  EXPECT_THAT(Urls(""), ElementsAre("http://nn:50070"));
  EXPECT_THAT(Urls("nn:9000"), ElementsAre("http://nn:50070"));
  EXPECT_THAT(Urls("other:9000"), ElementsAre("http://other:9870"));
}

TEST_F(HadoopConfigTest, ANameServiceHasSeveralNameNodes) {
  Write("hdfs-site.xml",
        StrCat(Property("dfs.nameservices", "ns1, ns2"), Property("dfs.ha.namenodes.ns1", "a,b"),
               Property("dfs.namenode.rpc-address.ns1.a", "nn1:8020"),
               Property("dfs.namenode.http-address.ns1.a", "nn1:50070"),
               Property("dfs.namenode.rpc-address.ns1.b", "nn2:8020"),
               Property("dfs.namenode.http-address.ns2", "nn3:9870")));
  EXPECT_THAT(Urls("ns1"), ElementsAre("http://nn1:50070", "http://nn2:9870"));
  EXPECT_EQ(Read().OfHdfs("ns1")->authority, "ns1");
  EXPECT_THAT(Urls("ns2"), ElementsAre("http://nn3:9870"));
}

TEST_F(HadoopConfigTest, OnlyTls) {
  Write("hdfs-site.xml", Property("dfs.http.policy", "HTTPS_ONLY"));
  EXPECT_THAT(Urls("nn:9000"), ElementsAre("https://nn:9871"));
}

TEST_F(HadoopConfigTest, AFileThatIsNoConfigurationIsNamed) {
  for (const char* text : {"<configuration>", "<other/>", "hello", ""}) {
    ASSERT_TRUE(io::WriteFileAtomically(*files_, "/conf/core-site.xml", text).ok());
    const auto config = HadoopConfig::Read(*files_, "/conf");
    EXPECT_TRUE(absl::IsInvalidArgument(config.status())) << text << config.status();
    EXPECT_THAT(std::string(ToStd(config.status().message())), HasSubstr("/conf/core-site.xml"));
  }
}

TEST_F(HadoopConfigTest, ANameServiceWithoutAddressesIsNamed) {
  Write("hdfs-site.xml",
        StrCat(Property("dfs.nameservices", "ns1"), Property("dfs.ha.namenodes.ns1", "a")));
  const auto nodes = Read().OfHdfs("ns1");
  EXPECT_TRUE(absl::IsInvalidArgument(nodes.status())) << nodes.status();
  EXPECT_THAT(std::string(ToStd(nodes.status().message())),
              HasSubstr("dfs.namenode.rpc-address.ns1.a"));
}

}  // namespace
}  // namespace muster::files
