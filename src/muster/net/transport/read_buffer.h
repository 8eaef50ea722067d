// Received bytes of a stream that are not consumed yet, at the addresses that Stream guarantees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "muster/net/transport/stream.h"

namespace muster::net::transport {

// The address of every byte equals its position in the stream modulo 8. One owner.
class ReadBuffer {
 public:
  // Bytes are moved to the front when there is less room than `worth_a_call` after them.
  ReadBuffer(size_t capacity, size_t worth_a_call)
      : capacity_(capacity),
        worth_a_call_(worth_a_call),
        memory_(std::make_unique_for_overwrite<std::byte[]>(capacity)) {}

  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  ConstBytes bytes() const { return {memory_.get() + begin_, size()}; }

  // The room for the next bytes: never empty while the buffer has fewer than 8.
  MutableBytes MakeRoom() {
    const size_t front = position_ % 8;
    if (empty()) {
      begin_ = end_ = front;
    } else if (capacity_ - end_ < worth_a_call_ && begin_ >= 8) {
      std::memmove(memory_.get() + front, memory_.get() + begin_, size());
      end_ = front + size();
      begin_ = front;
    }
    return room();
  }
  // Like MakeRoom, for the bytes that follow n bytes stored elsewhere. Only while the buffer is
  // empty.
  MutableBytes MakeRoomAfter(size_t n) {
    begin_ = end_ = (position_ + n) % 8;
    return room();
  }
  // Call it when n bytes have arrived in the room.
  void Grow(size_t n) { end_ += n; }
  // Call it when n bytes were stored elsewhere, before those in the room.
  void Pass(size_t n) { position_ += n; }
  void Consume(size_t n) {
    begin_ += n;
    position_ += n;
  }

 private:
  MutableBytes room() { return {memory_.get() + end_, capacity_ - end_}; }

  const size_t capacity_, worth_a_call_;
  const std::unique_ptr<std::byte[]> memory_;
  size_t begin_ = 0, end_ = 0;
  uint64_t position_ = 0;  // in the stream, of begin_
};

}  // namespace muster::net::transport
