// The state that all copies of an HttpReply share, and a gate from any thread to the io thread.
// Included by .cc files of this layer only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include <boost/asio/io_context.hpp>

#include "muster/base/mutex.h"
#include "muster/net/http/message.h"

namespace muster::net::internal {

class HttpConnection;

// It outlives the server, so that a late answer finds a closed gate and not a destroyed server.
class IoGate {
 public:
  explicit IoGate(boost::asio::io_context* io) : io_(io) {}
  bool Post(std::function<void()> work);  // returns false and drops `work` if the gate is closed
  void Close();

 private:
  Mutex mutex_;
  boost::asio::io_context* io_ ABSL_GUARDED_BY(mutex_);
};

class ReplyState {
 public:
  ReplyState(std::shared_ptr<IoGate> gate, std::weak_ptr<HttpConnection> connection,
             uint64_t number);
  ~ReplyState();  // answers 500 if nothing was answered
  ReplyState(const ReplyState&) = delete;
  ReplyState& operator=(const ReplyState&) = delete;

  void Send(HttpResponse response);
  void AnswerAfter(double seconds, HttpResponse response);
  bool over() const { return over_.load(std::memory_order_relaxed); }
  void Abandon() { over_.store(true, std::memory_order_relaxed); }

 private:
  const std::shared_ptr<IoGate> gate_;
  const std::weak_ptr<HttpConnection> connection_;
  const uint64_t number_;
  std::atomic<bool> over_ = false;
};

}  // namespace muster::net::internal
