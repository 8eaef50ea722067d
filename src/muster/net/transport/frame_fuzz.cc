// Any bytes as what a peer sends. The first byte says in what pieces they come and whether the rest
// is the wire itself or a list of frames with good checksums and any fields. What is received is
// the same whatever the pieces are, and never above the bound. The bytes also come after this side
// has begun generation 1 on the connection.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "muster/net/transport/channel.h"
#include "muster/net/transport/fuzz_stream.h"

namespace {

using muster::net::transport::Channel;
using muster::net::transport::ConstBytes;
using muster::net::transport::EncodeFrameHeader;
using muster::net::transport::EncodeFrameTail;
using muster::net::transport::ExtendChecksum;
using muster::net::transport::FrameHeader;
using muster::net::transport::FrameTailSize;
using muster::net::transport::FuzzStream;
using muster::net::transport::Interrupt;
using muster::net::transport::Message;
using muster::process::Deadline;

constexpr size_t kBound = 4096;
constexpr size_t kMaxMessages = 64;

// What a frame is made from: 12 bytes, then its payload.
struct Recipe {
  uint16_t type;
  uint8_t flags;
  uint8_t
      faults;  // bit 0: sequence, 1: generation, 2: checksum, 3: given up, 4: message's size + 2^40
  uint32_t message_bytes;
  uint32_t payload_bytes;
};

std::string Frames(std::string_view recipes) {
  std::string wire;
  for (uint64_t sequence = 0; recipes.size() >= sizeof(Recipe); ++sequence) {
    Recipe recipe;
    std::memcpy(&recipe, recipes.data(), sizeof recipe);
    recipes.remove_prefix(sizeof recipe);
    FrameHeader header = {.type = recipe.type,
                          .flags = static_cast<uint16_t>(recipe.flags % 8),
                          .generation = recipe.faults >> 1 & 1U,
                          .sequence = sequence + (recipe.faults & 1),
                          .message_bytes = recipe.message_bytes,
                          .payload_bytes = recipe.payload_bytes};
    if ((recipe.faults & 16) != 0) header.message_bytes += uint64_t{1} << 40;
    const auto bytes = EncodeFrameHeader(header);
    wire.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::string_view payload = recipes.substr(0, recipe.payload_bytes);
    recipes.remove_prefix(payload.size());
    wire.append(payload);
    uint32_t crc =
        (header.flags & 2) != 0 ? ExtendChecksum(0, std::as_bytes(std::span(payload))) : 0;
    crc ^= recipe.faults >> 2 & 1U;
    const auto tail =
        EncodeFrameTail(payload.size(), {.crc = crc, .given_up = (recipe.faults & 8) != 0});
    wire.append(reinterpret_cast<const char*>(tail.data()), FrameTailSize(payload.size()));
  }
  return wire;
}

// A line a message, and the error at the end.
std::vector<std::string> ReceiveAll(const std::string& wire, size_t piece, bool checksum,
                                    const Interrupt& never, bool renew = false) {
  Channel channel(std::make_unique<FuzzStream>(wire, piece),
                  {.checksum = checksum, .max_message_bytes = kBound});
  std::vector<std::string> received;
  if (renew) {
    const absl::Status renewed = channel.Renew(1, Deadline::After(60), never);
    if (!renewed.ok()) return {renewed.ToString()};
  }
  while (received.size() < kMaxMessages) {
    const absl::StatusOr<Message> message = channel.Receive(Deadline::After(60), never);
    if (!message.ok()) {
      received.push_back(message.status().ToString());
      break;
    }
    if (message->size > kBound) std::abort();
    received.emplace_back(reinterpret_cast<const char*>(message->data.get()), message->size);
  }
  return received;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const auto never = Interrupt::Create().value();
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string wire = (data[0] & 0x80) != 0 ? Frames(rest) : std::string(rest);
  const size_t piece = 1 + data[0] % 128;
  const auto all = ReceiveAll(wire, piece, false, *never);
  if (all != ReceiveAll(wire, 1 << 20, false, *never)) std::abort();
  if (ReceiveAll(wire, piece, false, *never, true) !=
      ReceiveAll(wire, 1 << 20, false, *never, true)) {
    std::abort();
  }
  // Where checksums are agreed on, the same comes up to the first frame that has none.
  auto checked = ReceiveAll(wire, piece, true, *never);
  if (checked != ReceiveAll(wire, 1 << 20, true, *never)) std::abort();
  checked.pop_back();
  if (checked.size() > all.size() || !std::equal(checked.begin(), checked.end(), all.begin())) {
    std::abort();
  }
  return 0;
}
