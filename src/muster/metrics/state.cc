#include "muster/metrics/state.h"

#include <cstring>
#include <span>
#include <type_traits>

#include "muster/base/byte_reader.h"
#include "muster/base/crc32c.h"

namespace muster::metrics {
namespace {

constexpr std::string_view kMagic = "MUSTERMS";
constexpr uint32_t kVersion = 3;  // version 2 had no groups, version 1 no bad_records either
constexpr size_t kMaxHeadBytes = 4096;
static_assert(sizeof(ScoredRow) == 12);

// Little-endian, as all supported machines are.
template <typename T>
void AppendValue(const T& value, std::string* out) {
  static_assert(std::is_trivially_copyable_v<T>);
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
void AppendList(const std::vector<T>& list, std::string* out) {
  AppendValue(static_cast<uint64_t>(list.size()), out);
  out->append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(T));
}

template <typename T>
bool ReadList(ByteReader& reader, std::vector<T>* list) {
  uint64_t count = 0;
  std::string_view bytes;
  if (!reader.Read(&count) || !reader.Fits(count, sizeof(T))) return false;
  if (!reader.ReadBytes(count * sizeof(T), &bytes)) return false;
  list->resize(count);
  if (count > 0) std::memcpy(list->data(), bytes.data(), bytes.size());
  return true;
}

}  // namespace

std::string Serialize(const State& state) {
  std::string bytes(kMagic);
  AppendValue(kVersion, &bytes);
  AppendValue(static_cast<uint32_t>(state.head.size()), &bytes);
  bytes += state.head;
  AppendValue(state.step, &bytes);
  AppendValue(state.rows, &bytes);
  AppendValue(state.bad_records, &bytes);
  AppendList(state.sums, &bytes);
  AppendValue(static_cast<uint64_t>(state.scored.size()), &bytes);
  for (const auto& rows : state.scored) AppendList(rows, &bytes);
  AppendList(state.groups, &bytes);
  AppendValue(Crc32c(bytes), &bytes);
  return bytes;
}

absl::StatusOr<State> ParseState(std::string_view bytes, std::string_view where) {
  const auto wrong = [&](std::string_view why) {
    return absl::DataLossError(StrCat(where, ": ", why));
  };
  if (!bytes.starts_with(kMagic)) return wrong("is not a state of metrics");
  uint32_t crc = 0;
  if (bytes.size() < kMagic.size() + sizeof crc) return wrong("is cut");
  std::memcpy(&crc, bytes.data() + bytes.size() - sizeof crc, sizeof crc);
  bytes.remove_suffix(sizeof crc);
  if (Crc32c(bytes) != crc) return wrong("is cut or has changed: its checksum does not match");
  ByteReader reader(bytes.substr(kMagic.size()));
  uint32_t version = 0, head_bytes = 0;
  reader.Read(&version);
  if (version < 1 || version > kVersion) {
    return wrong(StrCat("has version ", version, "; this program reads ", kVersion));
  }
  State state;
  reader.Read(&head_bytes);
  if (head_bytes > kMaxHeadBytes) return wrong("has a head name that is too long");
  std::string_view head;
  reader.ReadBytes(head_bytes, &head);
  state.head = head;
  reader.Read(&state.step);
  reader.Read(&state.rows);
  if (version > 1) reader.Read(&state.bad_records);
  ReadList(reader, &state.sums);
  uint64_t lists = 0;
  reader.Read(&lists);
  for (uint64_t i = 0; i < lists && reader.ok(); ++i) {
    ReadList(reader, &state.scored.emplace_back());
  }
  if (version > 2) ReadList(reader, &state.groups);
  if (!reader.done()) return wrong("does not have the lengths that it announces");
  return state;
}

}  // namespace muster::metrics
