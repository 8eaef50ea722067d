#include "muster/launch/kubernetes/api/quantity.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace muster::launch::kubernetes {
namespace {

std::string Print(std::string_view text) {
  const auto quantity = Quantity::Parse(text);
  return quantity ? quantity->Print() : "none";
}

// The right sides are what an API server 1.34 answers.
TEST(Quantity, IsPrintedInItsShortestForm) {
  const std::pair<const char*, const char*> texts[] = {
      {"0", "0"},           {"1", "1"},         {"0.5", "500m"},   {"500m", "500m"},
      {"1000m", "1"},       {"1500m", "1500m"}, {"1.5", "1500m"},  {"2000", "2k"},
      {"1100000", "1100k"}, {"1Gi", "1Gi"},     {"1024Mi", "1Gi"}, {"1.5Gi", "1536Mi"},
      {"1000Ki", "1000Ki"}, {"0.5Ki", "512"},   {"2048", "2048"},  {"1e3", "1e3"},
      {"12E6", "12e6"},     {"7E", "7E"},       {"100n", "100n"},  {"0.0000000001", "1n"},
      {"-3", "-3"},         {"+3", "3"},        {".5", "500m"},    {"00010", "10"},
  };
  for (const auto& [text, printed] : texts) EXPECT_EQ(Print(text), printed) << text;
}

TEST(Quantity, RefusesWhatIsNone) {
  for (const char* const text : {"1x", "abc", "1e", "1e+", "1 Gi", "Gi1", "1e99", "1.2.3",
                                 "9999999999999999999999999999", "99999999999Ei"}) {
    EXPECT_EQ(Print(text), "none") << text;
  }
}

TEST(Quantity, RequestsAreAddedAndLimitsStandForThem) {
  const Json asks = {{"resources",
                      {{"requests", {{"cpu", "250m"}, {"memory", "512Mi"}, {"broken", "x"}}},
                       {"limits", {{"nvidia.com/gpu", 1}}}}}};
  const Json limited = {{"resources", {{"limits", {{"cpu", 2}, {"memory", "1.5Gi"}}}}}};
  ResourceList sum;
  AddRequests(asks, &sum);
  AddRequests(limited, &sum);
  AddRequests(Json::object(), &sum);
  EXPECT_EQ(PrintResources(sum), (Json{{"cpu", "2250m"}, {"memory", "2Gi"}}));
}

}  // namespace
}  // namespace muster::launch::kubernetes
