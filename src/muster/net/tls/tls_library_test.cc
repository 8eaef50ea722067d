#include "muster/net/tls/tls_library.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::net {
namespace {

TEST(TlsLibraryTest, VersionsFromThreeOneOnUseVectors) {
  EXPECT_FALSE(UsesVectorAes(3, 0));
  EXPECT_TRUE(UsesVectorAes(3, 1));
  EXPECT_TRUE(UsesVectorAes(3, 5));
  EXPECT_TRUE(UsesVectorAes(4, 0));
}

TEST(TlsLibraryTest, TheVersionIsThatOfTheLoadedLibrary) {
  EXPECT_THAT(GetTlsLibrary().version, ::testing::StartsWith("OpenSSL 3."));
}

}  // namespace
}  // namespace muster::net
