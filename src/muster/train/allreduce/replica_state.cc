#include "muster/train/allreduce/replica_state.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace muster::train {
namespace {

using collective::Group;

constexpr uint64_t kMaxPositions = uint64_t{64} << 20;  // bytes
constexpr uint64_t kMaxRanks = 1'000'000;

uint64_t BytesOf(const std::vector<checkpoint::Tensor>& tensors) {
  uint64_t bytes = 0;
  for (const checkpoint::Tensor& tensor : tensors) bytes += tensor.bytes.size();
  return bytes;
}

std::string Pack(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) {
    const auto size = static_cast<uint32_t>(text.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += text;
  }
  return bytes;
}

absl::StatusOr<std::vector<std::string>> Unpack(std::string_view bytes, uint64_t count) {
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t size = 0;
    if (bytes.size() < sizeof size) return absl::DataLossError("a position is cut");
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    if (bytes.size() < size) return absl::DataLossError("a position is cut");
    texts.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  if (!bytes.empty()) return absl::DataLossError("there is more than its positions");
  return texts;
}

// What is wrong with the header; "" if nothing is.
std::string WhyRefused(const StateHeader& header, int64_t step, uint64_t bytes) {
  if (header.bytes != bytes) {
    return StrCat("has a state of ", header.bytes, " bytes, this replica's model one of ", bytes);
  }
  if (header.step != step) {
    return StrCat("sends the state of step ", header.step, ", and told of step ", step);
  }
  if (header.positions > kMaxPositions || header.ranks > kMaxRanks) {
    return StrCat("announces ", header.ranks, " positions in ", header.positions,
                  " bytes; at most ", kMaxRanks, " in ", kMaxPositions, " can be");
  }
  const auto& [trained, dropped, repeated] = header.records;
  if (trained < 0 || dropped < 0 || repeated < 0 || header.has_records > 1) {
    return StrCat("has counted records as [", Print(header.records), "]");
  }
  return "";
}

absl::Status ReceiveInto(Group& group, int from, std::span<std::byte> to) {
  return group.Receive(from, to.size(), [&](std::span<const std::byte> part, size_t offset) {
    std::memcpy(to.data() + offset, part.data(), part.size());
  });
}

}  // namespace

absl::Status SendState(Group& group, int to, const Session& session) {
  const auto tensors = session.variables.Tensors(/*with_slots=*/true);
  const std::string positions = Pack(session.data.positions);
  const StateHeader header = {.step = session.step,
                              .bytes = BytesOf(tensors),
                              .ranks = session.data.positions.size(),
                              .positions = positions.size(),
                              .records = session.data.records.value_or(RecordCounts()),
                              .has_records = session.data.records.has_value()};
  MUSTER_RETURN_IF_ERROR(group.Send(to, std::as_bytes(std::span(&header, 1))));
  MUSTER_RETURN_IF_ERROR(group.Send(to, std::as_bytes(std::span(positions))));
  for (const checkpoint::Tensor& tensor : tensors) {
    MUSTER_RETURN_IF_ERROR(group.Send(to, std::as_bytes(tensor.bytes)));
  }
  return absl::OkStatus();
}

absl::Status ReceiveState(Group& group, int from, int64_t step, Session& session,
                          bool* overwritten) {
  StateHeader header;
  MUSTER_RETURN_IF_ERROR(ReceiveInto(group, from, std::as_writable_bytes(std::span(&header, 1))));
  const auto tensors = session.variables.Tensors(/*with_slots=*/true);
  if (const std::string why = WhyRefused(header, step, BytesOf(tensors)); !why.empty()) {
    return group.Accuse(from, why);
  }
  std::string positions(header.positions, '\0');
  MUSTER_RETURN_IF_ERROR(ReceiveInto(group, from, std::as_writable_bytes(std::span(positions))));
  auto unpacked = Unpack(positions, header.ranks);
  if (!unpacked.ok()) return group.Accuse(from, ToStd(unpacked.status().message()));
  *overwritten = true;
  session.variables.BeforeChange();
  for (const checkpoint::Tensor& tensor : tensors) {
    MUSTER_RETURN_IF_ERROR(ReceiveInto(group, from, std::as_writable_bytes(tensor.bytes)));
  }
  session.step = header.step;
  session.data.records.reset();
  if (header.has_records != 0) session.data.records = header.records;
  session.data.positions = *std::move(unpacked);
  return absl::OkStatus();
}

}  // namespace muster::train
