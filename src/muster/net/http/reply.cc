#include <utility>

#include <boost/asio/post.hpp>

#include "muster/net/http/connection.h"
#include "muster/net/http/reply_state.h"
#include "muster/net/http/server.h"

namespace muster::net {
namespace internal {

bool IoGate::Post(std::function<void()> work) {
  const MutexLock lock(&mutex_);
  if (io_ == nullptr) return false;
  boost::asio::post(*io_, std::move(work));
  return true;
}

void IoGate::Close() {
  const MutexLock lock(&mutex_);
  io_ = nullptr;
}

ReplyState::ReplyState(std::shared_ptr<IoGate> gate, std::weak_ptr<HttpConnection> connection,
                       uint64_t number)
    : gate_(std::move(gate)), connection_(std::move(connection)), number_(number) {}

ReplyState::~ReplyState() {
  if (!over()) {
    Send(ErrorResponse(absl::InternalError("the server's handler gave no answer")));
  }
}

void ReplyState::Send(HttpResponse response) {
  if (over_.exchange(true)) return;
  gate_->Post([connection = connection_, number = number_, response = std::move(response)] {
    if (const auto open = connection.lock()) open->Answer(number, response);
  });
}

void ReplyState::AnswerAfter(double seconds, HttpResponse response) {
  gate_->Post(
      [connection = connection_, number = number_, seconds, response = std::move(response)] {
        if (const auto open = connection.lock()) open->AnswerAfter(number, seconds, response);
      });
}

}  // namespace internal

void HttpReply::Send(HttpResponse response) const { state_->Send(std::move(response)); }

void HttpReply::AnswerAfter(double seconds, HttpResponse response) const {
  state_->AnswerAfter(seconds, std::move(response));
}

bool HttpReply::over() const { return state_->over(); }

}  // namespace muster::net
