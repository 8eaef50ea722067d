// Any bytes as what a peer sends: the first byte says in what pieces they arrive. Requests are read
// one after the other as a connection does it, their targets and bodies parsed. What is read is the
// same whatever the pieces are; only where a header near its limit is given up may differ.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "muster/net/http/message.h"
#include "muster/net/http/request_reader.h"

namespace {

constexpr size_t kMaxRequests = 16;

muster::net::HttpLimits SmallLimits() {
  muster::net::HttpLimits limits;
  limits.header_bytes = 512;
  limits.body_bytes = 256;
  return limits;
}

// One line a request: what a handler would see of it.
std::string Describe(const muster::net::HttpRequestReader& reader) {
  const auto target = muster::net::ParseTarget(reader.target());
  const auto body = muster::net::ParseJson(reader.body(), "body");
  std::string line(reader.method());
  line += target.ok() ? " " + target->path : " bad target";
  line += body.ok() ? muster::net::JsonResponse(*body).body : reader.body();
  line += reader.Field("Authorization");
  line += reader.keep_alive() ? " keep" : " close";
  return line;
}

std::vector<std::string> ReadAll(std::string_view bytes, size_t piece) {
  const muster::net::HttpLimits limits = SmallLimits();
  std::vector<std::string> requests;
  std::string buffer;
  while (requests.size() < kMaxRequests) {
    muster::net::HttpRequestReader reader(limits);
    while (!reader.done()) {
      buffer.erase(0, reader.Put(buffer));
      if (reader.fault()) return requests;
      if (reader.header_done() && !reader.done()) {
        reader.AcceptBody();
        buffer.erase(0, reader.Put(buffer));
        if (reader.fault()) return requests;
      }
      if (reader.done()) break;
      if (bytes.empty() || buffer.size() >= limits.header_bytes) return requests;
      buffer.append(bytes.substr(0, piece));
      bytes.remove_prefix(std::min(piece, bytes.size()));
    }
    if (reader.body().size() > limits.body_bytes) std::abort();
    requests.push_back(Describe(reader));
  }
  return requests;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece = data[0] % 64 + 1;
  const std::vector<std::string> some = ReadAll(bytes, piece), others = ReadAll(bytes, 64);
  const auto both = static_cast<int64_t>(std::min(some.size(), others.size()));
  if (!std::equal(some.begin(), some.begin() + both, others.begin())) std::abort();
  return 0;
}
