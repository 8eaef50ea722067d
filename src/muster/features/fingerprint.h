// TensorFlow's fingerprints of values, from which hashed and crossed ids are computed.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::features {

// FarmHash na: TensorFlow's Fingerprint64 (tensorflow/core/platform/fingerprint.h).
uint64_t Fingerprint64(std::string_view bytes);
// The fingerprint of the value printed as decimal, as TensorFlow's AsString prints it before
// hashing.
uint64_t Fingerprint64(int64_t value);

// Combines two fingerprints, whose order matters. As TensorFlow's function of the same name.
inline uint64_t FingerprintCat64(uint64_t a, uint64_t b) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  const auto mix = [](uint64_t value) { return value ^ (value >> 47); };
  const uint64_t joined = (a ^ kMultiplier ^ (mix(b * kMultiplier) * kMultiplier)) * kMultiplier;
  return mix(mix(joined) * kMultiplier);
}

}  // namespace muster::features
