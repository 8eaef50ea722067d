// A Stream for fuzz targets: given bytes arrive in pieces, then the peer closes; written bytes are
// dropped.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "muster/net/transport/stream.h"

namespace muster::net::transport {

class FuzzStream : public Stream {
 public:
  FuzzStream(std::string bytes, size_t piece)
      : Stream("fuzz"), size_(bytes.size()), words_(size_ / 8 + 1), piece_(piece) {
    std::memcpy(words_.data(), bytes.data(), size_);
  }

  absl::StatusOr<size_t> Write(std::span<const ConstBytes> pieces) override {
    size_t all = 0;
    for (const ConstBytes piece : pieces) all += piece.size();
    return all;
  }
  absl::StatusOr<ConstBytes> Peek() override {
    if (at_ == size_ || all_shown_) return absl::UnavailableError("the end");
    const size_t n = std::min(shown_, size_ - at_);
    all_shown_ = n == size_ - at_;
    shown_ += piece_;  // if Peek is called again, more has arrived
    return std::as_bytes(std::span(words_)).subspan(at_, n);
  }
  void Consume(size_t n) override {
    at_ += n;
    shown_ = piece_;
    all_shown_ = false;
  }
  PollWish Arm(bool, bool) override { return {}; }
  void Disarm() override {}
  void Close() override { at_ = size_; }

 private:
  const size_t size_;
  std::vector<uint64_t> words_;  // aligned as a Stream's bytes are
  const size_t piece_;
  size_t at_ = 0;
  size_t shown_ = piece_;
  bool all_shown_ = false;
};

}  // namespace muster::net::transport
