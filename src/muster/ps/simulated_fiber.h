// Fiber: a function with its own stack that can wait anywhere in its body, so that many blocking
// calls run in one thread, in an order that the test chooses. For tests of this layer only.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace muster::ps {

// One owner thread. The function must have returned before the Fiber is destroyed.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body) : body_(std::move(body)) {
    getcontext(&own_);
    own_.uc_stack.ss_sp = stack_.get();
    own_.uc_stack.ss_size = kStackBytes;
    own_.uc_link = &back_;
    const auto self = reinterpret_cast<uintptr_t>(this);
    makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::Main), 2,
                static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the function until it waits or returns.
  void Resume() { swapcontext(&back_, &own_); }
  // Called by the function: returns when the Fiber is resumed.
  void Wait() { swapcontext(&own_, &back_); }
  bool done() const { return done_; }

 private:
  static constexpr size_t kStackBytes = size_t{256} << 10;

  static void Main(unsigned high, unsigned low) {
    auto* const self =
        reinterpret_cast<Fiber*>(static_cast<uintptr_t>(high) << 32 | static_cast<uintptr_t>(low));
    self->body_();
    self->done_ = true;
    self->Wait();
  }

  const std::function<void()> body_;
  const std::unique_ptr<std::byte[]> stack_{new std::byte[kStackBytes]};
  ucontext_t own_ = {}, back_ = {};
  bool done_ = false;
};

}  // namespace muster::ps
