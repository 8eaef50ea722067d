// Counter-based random numbers: the n-th number of a stream is a pure function of (seed, stream,
// n), so that a stream continues anywhere after a restart with nothing but its counter.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011),
// Philox4x32 with 10 rounds. Checked against the paper's known answers.
#pragma once

#include <array>
#include <cstdint>

namespace muster {

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// What a stream is for; part of its key, so that two uses of one seed never share numbers. Values
// are written into checkpoints' results: never renumber.
enum class RandomPurpose : uint32_t {
  kInitialWeights = 1,
  kShuffleChunks = 2,
  kShuffleRecords = 3,
  kShuffleInterleave = 4,
  kDropout = 5,
  kSampleData = 6,
  kSampleValues = 7,
  kPermuteRows = 8,
  kSearchPoint = 9,
};

// A stream of uniform numbers. Copyable, cheap, one owner thread.
// `stream` and `substream` name the consumer: (global step, replica), (epoch, chunk), (variable,
// 0).
class RandomStream {
 public:
  RandomStream(uint64_t seed, RandomPurpose purpose, uint64_t stream, uint32_t substream = 0);

  // Goes to the n-th 32-bit number of the stream.
  void Seek(uint64_t n);

  // The other inputs of the numbers, besides their positions: 32-bit number n is word n % 4 of
  // Philox4x32({low and high half of n / 4, words()}, key()). For code that computes many at once.
  std::array<uint32_t, 2> key() const { return key_; }
  std::array<uint32_t, 2> words() const { return {base_[2], base_[3]}; }

  uint32_t Next32();
  uint64_t Next64();
  // Uniform in [0, bound), without bias (Lemire's method). bound > 0.
  uint64_t Below(uint64_t bound);
  // Uniform in [0, 1), 24 and 53 random bits.
  float Uniform();
  double UniformDouble();
  // Standard normal (Box-Muller, one of the pair).
  double Normal();
  // Normal redrawn until within two standard deviations, as TensorFlow's truncated_normal.
  double TruncatedNormal();

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> base_;  // words 2 and 3: stream
  std::array<uint32_t, 4> block_;
  uint64_t next_ = 0;
  uint64_t block_index_ = ~uint64_t{0};
};

}  // namespace muster
