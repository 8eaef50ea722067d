// TextBuffer: text that grows by many short pieces, each of which is written in place.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "muster/base/shortest_float.h"

namespace muster::score {

// One owner thread.
class TextBuffer {
 public:
  void Append(char c) { *Room(1) = c, ++size_; }

  void Append(std::string_view text) {
    char* const to = Room(text.size());
    CopyShort(text, to);
    size_ += text.size();
  }

  void AppendNumber(int64_t value) {
    char* const to = Room(kMostDigits);
    size_ += static_cast<size_t>(std::to_chars(to, to + kMostDigits, value).ptr - to);
  }

  // Appends the shortest digits that read back as the same value.
  void AppendNumber(float value) {
    char* const to = Room(kMostFloatChars);
    size_ += static_cast<size_t>(ShortestFloat(value, to) - to);
  }

  std::string_view text() const { return {memory_.get(), size_}; }
  size_t size() const { return size_; }
  void Clear() { size_ = 0; }  // keeps the memory

 private:
  static constexpr size_t kMostDigits = 20;  // digits and sign of an int64_t

  char* Room(size_t size) {
    if (capacity_ - size_ < size) [[unlikely]] {
      Grow(size);
    }
    return memory_.get() + size_;
  }

  void Grow(size_t size) {
    const size_t capacity = std::max(2 * capacity_, size_ + size + 1024);
    auto memory = std::make_unique_for_overwrite<char[]>(capacity);
    if (size_ > 0) std::memcpy(memory.get(), memory_.get(), size_);
    memory_ = std::move(memory);
    capacity_ = capacity;
  }

  // Copies short texts, such as words, without a call of memcpy.
  static void CopyShort(std::string_view text, char* to) {
    const size_t size = text.size();
    if (size > 16) {
      std::memcpy(to, text.data(), size);
    } else if (size >= 8) {
      CopyEnds<8>(text, to);
    } else if (size >= 4) {
      CopyEnds<4>(text, to);
    } else {
      for (size_t i = 0; i < size; ++i) to[i] = text[i];
    }
  }

  // Copies the first and the last kBytes, which may overlap.
  template <size_t kBytes>
  static void CopyEnds(std::string_view text, char* to) {
    char first[kBytes], last[kBytes];
    const size_t last_begin = text.size() - kBytes;
    std::memcpy(first, text.data(), kBytes);
    std::memcpy(last, text.data() + last_begin, kBytes);
    std::memcpy(to, first, kBytes);
    std::memcpy(to + last_begin, last, kBytes);
  }

  std::unique_ptr<char[]> memory_;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace muster::score
