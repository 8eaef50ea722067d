#include "muster/train/allreduce/replica_state.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"

#include "muster/base/byte_reader.h"
#include "muster/collective/collectives.h"

namespace muster::train {
namespace {

using collective::Group;

constexpr uint64_t kMaxPositions = uint64_t{64} << 20;  // bytes
constexpr uint64_t kMaxRanks = 1'000'000;
constexpr uint64_t kLargeState = uint64_t{64} << 20;  // bytes: copying it may take a second

uint64_t GetBytes(const std::vector<checkpoint::Tensor>& tensors) {
  uint64_t bytes = 0;
  for (const checkpoint::Tensor& tensor : tensors) bytes += tensor.bytes.size();
  return bytes;
}

// As many of the donors as the pieces of the largest variable.
std::span<const int> GetDonors(const StateTransfer& transfer,
                               const std::vector<checkpoint::Tensor>& tensors) {
  size_t pieces = 1;
  for (const checkpoint::Tensor& tensor : tensors) {
    const size_t up = tensor.bytes.size() + collective::kBroadcastPiece - 1;
    pieces = std::max(pieces, up / collective::kBroadcastPiece);
  }
  return std::span(transfer.donors).first(std::min(pieces, transfer.donors.size()));
}

// Connects the first receiver to each donor at once: no donor waits long for its first turn.
absl::Status Meet(Group& group, std::span<const int> donors, int receiver) {
  for (const int donor : donors) {
    if (group.rank() == donor) MUSTER_RETURN_IF_ERROR(group.Send(receiver, {}));
    if (group.rank() == receiver) {
      MUSTER_RETURN_IF_ERROR(group.Receive(donor, 0, [](collective::ConstBytes, size_t) {}));
    }
  }
  return absl::OkStatus();
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
  ByteReader reader(bytes);
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t size = 0;
    std::string_view text;
    if (!reader.Read(&size) || !reader.ReadBytes(size, &text)) {
      return absl::DataLossError("a position is cut off");
    }
    texts.emplace_back(text);
  }
  if (!reader.done()) return absl::DataLossError("there are bytes after its positions");
  return texts;
}

// Returns what is wrong with the header; "" if nothing is.
std::string WhyRefused(const StateHeader& header, int64_t step, uint64_t bytes) {
  if (header.bytes != bytes) {
    return StrCat("has a state of ", header.bytes, " bytes, but this replica's model has ", bytes);
  }
  if (header.step != step) {
    return StrCat("sends the state of step ", header.step, ", but announced step ", step);
  }
  if (header.positions > kMaxPositions || header.ranks > kMaxRanks) {
    return StrCat("announces ", header.ranks, " positions in ", header.positions,
                  " bytes; the most are ", kMaxRanks, " in ", kMaxPositions, " bytes");
  }
  const auto& [trained, dropped, repeated] = header.records;
  if (trained < 0 || dropped < 0 || repeated < 0 || header.has_records > 1) {
    return StrCat("has counted records as [", Print(header.records), "]");
  }
  return "";
}

StateHeader MakeHeader(const Session& session, uint64_t bytes, const std::string& positions) {
  return {.step = session.step,
          .bytes = bytes,
          .ranks = session.data.positions.size(),
          .positions = positions.size(),
          .records = session.data.records.value_or(RecordCounts()),
          .has_records = session.data.records.has_value()};
}

// A large state takes a while, in which there are no steps.
void NoteCopy(const Group& group, std::span<const int> donors, uint64_t bytes, Progress& progress) {
  if (bytes < kLargeState) return;
  std::vector<std::string> names;
  for (const int donor : donors) names.push_back(group.names()[static_cast<size_t>(donor)]);
  progress.Note(
      StrCat("copies a state of ", bytes >> 20, " MiB from ", absl::StrJoin(names, ", ")));
}

}  // namespace

absl::StatusOr<bool> ShareState(Group& group, const StateTransfer& transfer, int64_t step,
                                Session& session, bool* overwritten) {
  const auto is_in = [&group](std::span<const int> ranks) {
    return std::ranges::find(ranks, group.rank()) != ranks.end();
  };
  const bool is_receiver = is_in(transfer.receivers);
  if (transfer.receivers.empty() || (!is_receiver && !is_in(transfer.donors))) return false;
  const auto tensors = session.variables.Tensors(/*with_slots=*/true);
  const std::span<const int> donors = GetDonors(transfer, tensors), first = donors.first(1);
  const int owner = donors.front();
  const auto share = [&](std::span<const int> from, std::span<std::byte> bytes) {
    return collective::Broadcast(group, from, transfer.receivers, bytes);
  };
  const auto share_variables = [&] {
    absl::Status status = Meet(group, donors.subspan(1), transfer.receivers.front());
    for (size_t i = 0; i < tensors.size() && status.ok(); ++i) {
      status = share(donors, std::as_writable_bytes(tensors[i].bytes));
    }
    return status;
  };
  if (!is_receiver && !is_in(donors)) return false;
  if (!is_receiver && group.rank() != owner) {
    MUSTER_RETURN_IF_ERROR(share_variables());
    return false;
  }
  std::string positions;
  StateHeader header;
  if (!is_receiver) {
    positions = Pack(session.data.positions);
    header = MakeHeader(session, GetBytes(tensors), positions);
  }
  MUSTER_RETURN_IF_ERROR(share(first, std::as_writable_bytes(std::span(&header, 1))));
  if (const std::string why = WhyRefused(header, step, GetBytes(tensors)); !why.empty()) {
    return group.Accuse(owner, why);
  }
  positions.resize(header.positions);
  MUSTER_RETURN_IF_ERROR(share(first, std::as_writable_bytes(std::span(positions))));
  auto unpacked = Unpack(positions, header.ranks);
  if (!unpacked.ok()) return group.Accuse(owner, ToStd(unpacked.status().message()));
  if (is_receiver) {
    NoteCopy(group, donors, header.bytes, session.progress);
    *overwritten = true;
    session.variables.BeforeChange();
  }
  MUSTER_RETURN_IF_ERROR(share_variables());
  session.step = header.step;
  session.data.records.reset();
  if (header.has_records != 0) session.data.records = header.records;
  session.data.positions = *std::move(unpacked);
  return is_receiver;
}

}  // namespace muster::train
