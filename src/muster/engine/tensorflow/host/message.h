// The messages between a host process and its owner: docs/formats/tensorflow_host.md.
//
// A request and its answer lie at the beginning of the memory that both processes map; an eventfd
// tells the other side about each of them. Their data (texts, shapes, places of tensors) lies in
// that memory too, as fields of 8 bytes each. Both sides check every length before they use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/byte_reader.h"
#include "muster/base/status.h"

namespace muster::engine::tensorflow::host {

inline constexpr uint32_t kMagic = 0x4854554d;  // "MUTH"
inline constexpr uint16_t kVersion = 1;
// The descriptors that the host is started with.
inline constexpr int kSocketFd = 3;
inline constexpr int kMemoryFd = 4;
inline constexpr int kRequestEventFd = 5;
inline constexpr int kAnswerEventFd = 6;

enum class RequestKind : uint16_t {
  kOpen = 1,     // folder of the library -> TensorFlow's version
  kLoad = 2,     // folder of a SavedModel, ConfigProto -> nothing
  kDefine = 3,   // feeds and fetches -> number of the function
  kRun = 4,      // function, feeds -> fetches
  kCollect = 5,  // the fetches of the last kRun, whose reply did not fit
  kEnd = 6,      // the host exits, without an answer
};

struct Request {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  RequestKind kind = RequestKind::kOpen;
  uint64_t sequence = 0;       // 1, 2, 3...
  uint64_t segment_bytes = 0;  // how many bytes the owner has mapped
  uint64_t body = 0, body_bytes = 0;
  uint64_t reply = 0, reply_room = 0;
};
static_assert(sizeof(Request) == 56);

struct Answer {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  uint16_t kind = 0;
  uint64_t sequence = 0;
  uint64_t code = 0;         // an absl::StatusCode; if not 0, the reply is a text
  uint64_t reply_bytes = 0;  // if larger than reply_room, nothing was written
};
static_assert(sizeof(Answer) == 32);

// The beginning of the shared memory.
struct Control {
  alignas(64) Request request;
  alignas(64) Answer answer;
};
static_assert(sizeof(Control) == 128);

// DATA_LOSS if `answer` does not answer this request. The reply itself is not read.
absl::Status CheckAnswer(const Answer& answer, const Request& request);

// Writes a sequence of fields, fixed or variable in number.
class FieldWriter {
 public:
  void Number(uint64_t value) { Numbers({&value, 1}); }
  void Numbers(std::span<const uint64_t> values);
  // Writes the length, the bytes, and zeros up to a multiple of 8.
  void Text(std::string_view text);
  void Clear() { bytes_.clear(); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : reader_(bytes) {}

  bool Number(uint64_t* value) { return reader_.Read(value); }
  // Reads a number that must be at most `most`.
  bool Count(uint64_t most, uint64_t* value) { return Number(value) && *value <= most; }
  // The text is not copied.
  bool Text(std::string_view* text);
  bool done() const { return reader_.done(); }

 private:
  ByteReader reader_;
};

// Where a tensor lies in the memory. The bytes of a string tensor are elements + 1 u64s (where each
// string begins and where the last one ends, counted from the end of these u64s), followed by the
// strings' bytes.
struct TensorPlace {
  static constexpr uint64_t kMaxRank = 16;
  uint64_t type = 0;  // TensorFlow's DataType
  uint64_t offset = 0, bytes = 0;
  uint64_t rank = 0;
  uint64_t dims[kMaxRank] = {};

  bool Read(FieldReader& reader);
  void Write(FieldWriter& writer) const;
  // Computes the product of the dimensions; false if it is more than 2^48.
  bool Elements(uint64_t* elements) const;
  friend bool operator==(const TensorPlace&, const TensorPlace&) = default;
};

inline constexpr uint64_t kStringType = 7;

// Whether the elements + 1 offsets at the beginning fit the bytes that follow them.
bool GoodStrings(std::span<const std::byte> bytes, uint64_t elements);

}  // namespace muster::engine::tensorflow::host
