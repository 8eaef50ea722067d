#include "muster/process/build_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "absl/strings/escaping.h"

namespace muster::process {
namespace {

TEST(BuildIdTest, ItIsThatOfTheProgramsFile) {
  const std::string id = GetBuildId();
  ASSERT_THAT(id, testing::MatchesRegex("[0-9a-f]{16,}"));
  std::stringstream program;
  program << std::ifstream("/proc/self/exe", std::ios::binary).rdbuf();
  using namespace std::string_literals;  // NOLINT
  EXPECT_NE(program.str().find("\3\0\0\0GNU\0"s + absl::HexStringToBytes(id)), std::string::npos);
  EXPECT_EQ(GetBuildId(), id);
}

}  // namespace
}  // namespace muster::process
