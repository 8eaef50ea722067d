// Computes remainders by a divisor that is known before the loop.
#pragma once

#include <cstdint>

namespace muster::features {

// Of(n) == n % divisor for every n, without a division. `divisor` is at least 1.
//
// With m = floor((2^64 - 1) / d), m >= 2^64/d - 1, so n*m/2^64 >= n/d - n/2^64 > n/d - 1: the high
// word of n*m is the quotient or one less, and one subtraction corrects the remainder.
class Remainder {
 public:
  explicit Remainder(uint64_t divisor) : divisor_(divisor), reciprocal_(~uint64_t{0} / divisor) {}

  uint64_t Of(uint64_t n) const {
    __extension__ using Wide = unsigned __int128;
    const uint64_t quotient = static_cast<uint64_t>((static_cast<Wide>(n) * reciprocal_) >> 64);
    const uint64_t remainder = n - quotient * divisor_;
    return remainder >= divisor_ ? remainder - divisor_ : remainder;
  }

 private:
  uint64_t divisor_;
  uint64_t reciprocal_;
};

}  // namespace muster::features
