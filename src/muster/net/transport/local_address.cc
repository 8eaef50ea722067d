#include "muster/net/transport/local_address.h"

#include "absl/strings/escaping.h"

#include "muster/net/transport/handshake_message.h"

namespace muster::net::transport {
namespace {

constexpr std::string_view kLabel = "muster local address";
constexpr size_t kNameBytes = 16;  // of the proof: nobody guesses them

}  // namespace

Address LocalAddress(const Token& key, std::string_view task) {
  const std::string name = Proof(key, kLabel, task).substr(0, kNameBytes);
  return {.kind = Address::Kind::kSharedMemory,
          .path = StrCat("@muster-", absl::BytesToHexString(name))};
}

}  // namespace muster::net::transport
