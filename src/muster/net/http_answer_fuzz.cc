// Any bytes as what a server answers: the first byte says in what pieces they arrive, and whether
// the request was HEAD. What is read is the same whatever the pieces are, and never more than is
// accepted.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "muster/net/http_answer_reader.h"
#include "muster/net/http_message.h"

namespace {

constexpr size_t kMaxBodyBytes = 256;

struct Outcome {
  bool done = false;
  size_t taken = 0;
  int status = 0;
  bool keep_alive = false;
  std::string body = {};
  absl::StatusCode fault = absl::StatusCode::kOk;

  bool operator==(const Outcome&) const = default;
};

Outcome ReadAll(std::string_view bytes, size_t piece, bool to_head) {
  muster::net::internal::HttpAnswerReader reader(to_head, kMaxBodyBytes);
  Outcome outcome;
  while (!bytes.empty() && !reader.done() && reader.fault().ok()) {
    const size_t size = std::min(piece, bytes.size());
    const size_t taken = reader.Put(bytes.substr(0, size));
    if (taken < size && !reader.done() && reader.fault().ok()) std::abort();
    outcome.taken += taken;
    bytes.remove_prefix(size);
  }
  reader.PutEnd();
  if (reader.done() == !reader.fault().ok()) std::abort();
  if (reader.body().size() > kMaxBodyBytes) std::abort();
  outcome.fault = reader.fault().code();
  if (!reader.done()) return {.fault = outcome.fault};
  outcome.done = true;
  outcome.status = reader.status();
  outcome.keep_alive = reader.keep_alive();
  outcome.body = reader.body();
  muster::net::StatusOfAnswer(outcome.status, outcome.body).IgnoreError();
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool to_head = data[0] >= 128;
  if (ReadAll(bytes, data[0] % 128 + 1, to_head) != ReadAll(bytes, size, to_head)) std::abort();
  return 0;
}
