#include "muster/features/fingerprint.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster::features {
namespace {

// tf.strings.to_hash_bucket_fast computed the expected ids.
TEST(Fingerprint, IsTheSameAsTensorFlows) {
  EXPECT_EQ(Fingerprint64(std::string_view("Adm-clerical")) % 1000, 96U);
  EXPECT_EQ(Fingerprint64(std::string_view("Exec-managerial")) % 1000, 800U);
  EXPECT_EQ(Fingerprint64(std::string_view("Other-service")) % 1000, 527U);
  EXPECT_EQ(Fingerprint64(std::string_view("United-States")) % 1000, 587U);
  EXPECT_EQ(Fingerprint64(std::string_view("Cuba")) % 1000, 99U);
}

TEST(Fingerprint, OfAnIntIsThatOfItsDecimalDigits) {
  using Limits = std::numeric_limits<int64_t>;
  EXPECT_EQ(Fingerprint64(int64_t{0}), Fingerprint64(std::string_view("0")));
  EXPECT_EQ(Fingerprint64(int64_t{-1}), Fingerprint64(std::string_view("-1")));
  EXPECT_EQ(Fingerprint64(Limits::max()), Fingerprint64(std::string_view("9223372036854775807")));
  EXPECT_EQ(Fingerprint64(Limits::min()), Fingerprint64(std::string_view("-9223372036854775808")));
}

// The expected values are those of tf.feature_column.crossed_column(['education', 'occupation'],
// 1000).
TEST(Fingerprint, ChainIsTheSameAsTensorFlows) {
  const auto cross = [](std::string_view a, std::string_view b) {
    return FingerprintCat64(FingerprintCat64(0xDECAFCAFFE, Fingerprint64(a)), Fingerprint64(b)) %
           1000;
  };
  EXPECT_EQ(cross("Bachelors", "Adm-clerical"), 770U);
  EXPECT_EQ(cross("Bachelors", "Exec-managerial"), 469U);
  EXPECT_EQ(cross("Some-college", ""), 0U);
}

}  // namespace
}  // namespace muster::features
