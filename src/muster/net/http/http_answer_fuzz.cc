// Any bytes as what a server answers: the first byte says in what pieces they arrive, and whether
// the request was HEAD. What is read is the same whatever the pieces are, and never more than is
// accepted; a receiver that refuses a piece of the body, or the head, gets nothing more.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "muster/net/http/answer_reader.h"
#include "muster/net/http/message.h"

namespace {

using muster::net::HttpAnswerHead;
using muster::net::internal::HttpAnswerReader;

constexpr size_t kMaxBodyBytes = 256;

struct Outcome {
  bool done = false;
  size_t taken = 0;
  int status = 0;
  bool keep_alive = false;
  muster::net::HttpFields fields = {};
  std::string body = {};
  absl::StatusCode fault = absl::StatusCode::kOk;

  bool operator==(const Outcome&) const = default;
};

// Takes the head and at most so many bytes of the body, and aborts if it is called out of order.
class Receiver {
 public:
  Receiver(bool takes_head, size_t taken_bytes)
      : takes_head_(takes_head), taken_bytes_(taken_bytes) {}

  muster::net::HttpReceiver functions() {
    return {.head = [this](const HttpAnswerHead& head) { return OnHead(head); },
            .body = [this](std::string_view bytes) { return OnBody(bytes); },
            .max_body_bytes = kMaxBodyBytes};
  }
  const std::string& body() const { return body_; }
  bool refused() const { return refused_; }

 private:
  absl::Status OnHead(const HttpAnswerHead& head) {
    if (heads_++ > 0 || head.status < 200 || head.status > 999) std::abort();
    if (head.fields.size() > muster::net::internal::kMaxAnswerFields) std::abort();
    for (const muster::net::HttpField& field : head.fields) {
      if (field.name.empty() || field.value.find_first_of("\r\n") != field.value.npos) std::abort();
    }
    refused_ = !takes_head_;
    return takes_head_ ? absl::OkStatus() : absl::AbortedError("no head");
  }
  absl::Status OnBody(std::string_view bytes) {
    if (heads_ != 1 || refused_ || bytes.empty()) std::abort();
    body_ += bytes;
    refused_ = body_.size() > taken_bytes_;
    return refused_ ? absl::AbortedError("no more") : absl::OkStatus();
  }

  const bool takes_head_;
  const size_t taken_bytes_;
  int heads_ = 0;
  bool refused_ = false;
  std::string body_ = {};
};

// Feeds the bytes in pieces and then the end; returns how many were taken.
size_t Feed(HttpAnswerReader& reader, std::string_view bytes, size_t piece) {
  size_t sum = 0;
  while (!bytes.empty() && !reader.done() && reader.fault().ok()) {
    const size_t size = std::min(piece, bytes.size());
    const size_t taken = reader.Put(bytes.substr(0, size));
    if (taken < size && !reader.done() && reader.fault().ok()) std::abort();
    sum += taken;
    bytes.remove_prefix(size);
  }
  reader.PutEnd();
  if (reader.done() == !reader.fault().ok()) std::abort();
  return sum;
}

Outcome ReadAll(std::string_view bytes, size_t piece, bool to_head) {
  Receiver receiver(true, kMaxBodyBytes);
  HttpAnswerReader reader(to_head, receiver.functions());
  Outcome outcome;
  outcome.taken = Feed(reader, bytes, piece);
  if (receiver.body().size() > kMaxBodyBytes) std::abort();
  outcome.fault = reader.fault().code();
  if (!reader.done()) return {.fault = outcome.fault};
  outcome.done = true;
  outcome.status = reader.status();
  outcome.keep_alive = reader.keep_alive();
  outcome.fields = reader.head().fields;
  outcome.body = receiver.body();
  muster::net::ParseErrorResponse(outcome.status, outcome.body).IgnoreError();
  return outcome;
}

// The receiver's error is the reader's fault, and it aborts when it is called after it.
void ReadRefusing(std::string_view bytes, size_t piece, bool takes_head, size_t taken_bytes) {
  Receiver receiver(takes_head, taken_bytes);
  HttpAnswerReader reader(false, receiver.functions());
  Feed(reader, bytes, piece);
  if (receiver.refused() != absl::IsAborted(reader.fault())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool to_head = data[0] >= 128;
  if (ReadAll(bytes, data[0] % 128 + 1, to_head) != ReadAll(bytes, size, to_head)) std::abort();
  ReadRefusing(bytes, data[0] % 128 + 1, /*takes_head=*/true, data[0] % 16);
  ReadRefusing(bytes, data[0] % 128 + 1, /*takes_head=*/false, 0);
  return 0;
}
