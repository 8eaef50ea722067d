#include "muster/base/random.h"

#include <cmath>
#include <numbers>

namespace muster {
namespace {

void MultiplyHighLow(uint32_t a, uint32_t b, uint32_t* high, uint32_t* low) {
  const uint64_t product = uint64_t{a} * b;
  *high = static_cast<uint32_t>(product >> 32);
  *low = static_cast<uint32_t>(product);
}

// The finaliser of SplitMix64, which spreads a small seed over all bits of the key.
uint64_t Spread(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint32_t high0, low0, high1, low1;
    MultiplyHighLow(0xD2511F53, counter[0], &high0, &low0);
    MultiplyHighLow(0xCD9E8D57, counter[2], &high1, &low1);
    counter = {high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

RandomStream::RandomStream(uint64_t seed, RandomPurpose purpose, uint64_t stream,
                           uint32_t substream) {
  const uint64_t key =
      Spread(Spread(seed) ^ (uint64_t{static_cast<uint32_t>(purpose)} << 32 | substream));
  key_ = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
  base_ = {0, 0, static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
}

void RandomStream::Seek(uint64_t n) { next_ = n; }

uint32_t RandomStream::Next32() {
  const uint64_t index = next_ / 4;
  if (index != block_index_) {
    auto counter = base_;
    counter[0] = static_cast<uint32_t>(index);
    counter[1] = static_cast<uint32_t>(index >> 32);
    block_ = Philox4x32(counter, key_);
    block_index_ = index;
  }
  return block_[next_++ % 4];
}

uint64_t RandomStream::Next64() {
  const uint64_t low = Next32();
  return uint64_t{Next32()} << 32 | low;
}

uint64_t RandomStream::Below(uint64_t bound) {
  while (true) {
    const unsigned __int128 product = static_cast<unsigned __int128>(Next64()) * bound;
    const auto low = static_cast<uint64_t>(product);
    if (low >= bound || low >= -bound % bound) return static_cast<uint64_t>(product >> 64);
  }
}

float RandomStream::Uniform() { return static_cast<float>(Next32() >> 8) * 0x1p-24f; }

double RandomStream::UniformDouble() { return static_cast<double>(Next64() >> 11) * 0x1p-53; }

double RandomStream::Normal() {
  const double u = 1.0 - UniformDouble();
  const double v = UniformDouble();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

double RandomStream::TruncatedNormal() {
  double x = Normal();
  while (std::fabs(x) > 2.0) x = Normal();
  return x;
}

}  // namespace muster
