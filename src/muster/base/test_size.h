// How much a test repeats. Simulations and other seeded tests look at thousands of histories in the
// release build, which finds rare orders of events. A sanitizer needs each line to run, not each
// history, and is ten times slower: it gets a tenth.
#pragma once

#include <cstdlib>

namespace muster {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kUnderSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kUnderSanitizer = true;
#else
inline constexpr bool kUnderSanitizer = false;
#endif
#else
inline constexpr bool kUnderSanitizer = false;
#endif

// `count` repetitions, a tenth of them under a sanitizer but at least one.
constexpr int Repetitions(int count) { return kUnderSanitizer ? (count + 9) / 10 : count; }

// The histories of a simulation: Repetitions(5,000), and 100,000 if MUSTER_SOAK is set.
inline int SimulatedHistories() {
  return std::getenv("MUSTER_SOAK") != nullptr ? 100'000 : Repetitions(5'000);
}

}  // namespace muster
