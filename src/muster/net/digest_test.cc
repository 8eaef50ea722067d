#include "muster/net/digest.h"

#include "gtest/gtest.h"

namespace muster::net {
namespace {

TEST(DigestTest, IsThatOfTheStandard) {
  // FIPS 180-4's examples.
  EXPECT_EQ(GetSha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(GetSha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace muster::net
