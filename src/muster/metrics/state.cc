#include "muster/metrics/state.h"

#include <cstring>
#include <span>
#include <type_traits>

#include "muster/base/crc32c.h"

namespace muster::metrics {
namespace {

constexpr std::string_view kMagic = "MUSTERMS";
constexpr uint32_t kVersion = 2;  // 1: without bad_records
constexpr size_t kMaxHeadBytes = 4096;
static_assert(sizeof(ScoredRow) == 12);

// Little-endian, as all our machines are.
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

// Takes from the front; once something is not there, nothing is any more.
class StateReader {
 public:
  explicit StateReader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T Value() {
    T value{};
    const std::string_view bytes = Bytes(sizeof value);
    if (ok_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view Bytes(uint64_t size) {
    ok_ = ok_ && size <= rest_.size();
    if (!ok_) return {};
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  template <typename T>
  std::vector<T> List() {
    const auto count = Value<uint64_t>();
    ok_ = ok_ && count <= rest_.size() / sizeof(T);
    const std::string_view bytes = Bytes(ok_ ? count * sizeof(T) : 0);
    std::vector<T> list(ok_ ? count : 0);
    if (!list.empty()) std::memcpy(list.data(), bytes.data(), bytes.size());
    return list;
  }
  size_t left() const { return rest_.size(); }
  bool ok() const { return ok_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

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
  AppendValue(Crc32c(bytes), &bytes);
  return bytes;
}

absl::StatusOr<State> ParseState(std::string_view bytes, std::string_view where) {
  const auto wrong = [&](std::string_view why) {
    return absl::DataLossError(StrCat(where, ": ", why));
  };
  if (!bytes.starts_with(kMagic)) return wrong("is no state of metrics");
  uint32_t crc = 0;
  if (bytes.size() < kMagic.size() + sizeof crc) return wrong("is cut");
  std::memcpy(&crc, bytes.data() + bytes.size() - sizeof crc, sizeof crc);
  bytes.remove_suffix(sizeof crc);
  if (Crc32c(bytes) != crc) return wrong("is cut or has changed: its checksum is another");
  StateReader reader(bytes.substr(kMagic.size()));
  const auto version = reader.Value<uint32_t>();
  if (version < 1 || version > kVersion) {
    return wrong(StrCat("has version ", version, "; this program reads ", kVersion));
  }
  State state;
  const auto head_bytes = reader.Value<uint32_t>();
  if (head_bytes > kMaxHeadBytes) return wrong("names its head at length");
  state.head = reader.Bytes(head_bytes);
  state.step = reader.Value<int64_t>();
  state.rows = reader.Value<uint64_t>();
  if (version > 1) state.bad_records = reader.Value<uint64_t>();
  state.sums = reader.List<double>();
  const auto lists = reader.Value<uint64_t>();
  for (uint64_t i = 0; i < lists && reader.ok(); ++i) {
    state.scored.push_back(reader.List<ScoredRow>());
  }
  if (!reader.ok() || reader.left() > 0) return wrong("has other lengths than it says");
  return state;
}

}  // namespace muster::metrics
