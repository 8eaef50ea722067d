#include "muster/launch/ssh/hosts.h"

#include <stdlib.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/io/local_file_system.h"
#include "muster/launch/ssh/hosts_job.h"

namespace muster::launch::ssh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HostsTest, NamesAreThoseThatSshKnows) {
  EXPECT_THAT(*ParseHostNames("a,me@b.example,10.0.0.3"),
              ElementsAre("a", "me@b.example", "10.0.0.3"));
  for (const char* const wrong : {"", ",", "a,a", "-oProxyCommand=x", "a,b c"}) {
    const auto names = ParseHostNames(wrong);
    EXPECT_TRUE(absl::IsInvalidArgument(names.status())) << wrong;
    EXPECT_THAT(std::string(ToStd(names.status().message())), HasSubstr("as in a,b,me@c"));
  }
  EXPECT_THAT(*ParseSshCommand("ssh -p 2222  -i key"),
              ElementsAre("ssh", "-p", "2222", "-i", "key"));
  EXPECT_FALSE(ParseSshCommand(" ").ok());
}

TEST(HostsTest, WhatIsKeptOfHostsComesBack) {
  std::string name = ::testing::TempDir() + "/hosts-XXXXXX";
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const control::JobFolder folder{name};
  EXPECT_TRUE(absl::IsNotFound(ReadHosts(folder).status()));
  const Hosts hosts{
      .ssh = {"ssh", "-p", "22"},
      .all = {{"a", "10.0.0.1", "10.0.0.9", "/usr/bin/muster"}, {"b", "::1", "::1", ""}}};
  ASSERT_TRUE(WriteHosts(folder, hosts).ok());
  EXPECT_EQ(*ReadHosts(folder), hosts);
  EXPECT_TRUE(io::NewLocalFileSystem()->RemoveAll(name).ok());
}

TEST(HostsTest, TheCoordinatorListensWhereAllReachIt) {
  std::vector<Host> same = {{"a", "10.0.0.1", "10.0.0.9", ""}, {"b", "10.0.0.2", "10.0.0.9", ""}};
  EXPECT_EQ(PlaceFor(&same).address, "10.0.0.9");
  EXPECT_TRUE(PlaceFor(&same).tls);
  std::vector<Host> several = {{"a", "10.0.0.1", "10.0.0.9", ""},
                               {"b", "10.1.0.2", "10.1.0.9", ""}};
  EXPECT_EQ(PlaceFor(&several).address, "0.0.0.0");
  // This machine, by loopback: the others know it by another address.
  std::vector<Host> mixed = {{"localhost", "127.0.0.1", "127.0.0.1", ""},
                             {"b", "10.0.0.2", "10.0.0.9", ""}};
  EXPECT_EQ(PlaceFor(&mixed).address, "10.0.0.9");
  EXPECT_EQ(mixed[0].address, "10.0.0.9");
  std::vector<Host> alone = {{"localhost", "127.0.0.1", "127.0.0.1", ""}};
  EXPECT_EQ(PlaceFor(&alone).address, "127.0.0.1");
}

}  // namespace
}  // namespace muster::launch::ssh
