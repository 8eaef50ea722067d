#include "muster/engine/tensorflow/host/message.h"

namespace muster::engine::tensorflow::host {
namespace {

constexpr uint64_t kMaxElements = uint64_t{1} << 48;
constexpr uint64_t kFieldBytes = sizeof(uint64_t);

}  // namespace

absl::Status CheckAnswer(const Answer& answer, const Request& request) {
  if (answer.magic == kMagic && answer.version == kVersion &&
      answer.kind == static_cast<uint16_t>(request.kind) && answer.sequence == request.sequence) {
    return absl::OkStatus();
  }
  return absl::DataLossError(StrCat(
      "the TensorFlow host answers request ", request.sequence, " of kind ",
      static_cast<int>(request.kind), " as ", answer.sequence, " of kind ", answer.kind,
      ", version ", answer.version, ": is muster-tensorflow of another version than muster?"));
}

void FieldWriter::Numbers(std::span<const uint64_t> values) {
  const auto from = std::as_bytes(values);
  bytes_.insert(bytes_.end(), from.begin(), from.end());
}

void FieldWriter::Text(std::string_view text) {
  Number(text.size());
  const auto* const from = reinterpret_cast<const std::byte*>(text.data());
  bytes_.insert(bytes_.end(), from, from + text.size());
  bytes_.resize((bytes_.size() + kFieldBytes - 1) / kFieldBytes * kFieldBytes);
}

bool FieldReader::Text(std::string_view* text) {
  uint64_t size = 0;
  std::string_view padded;
  if (!Number(&size) || !reader_.Fits(size, 1)) return false;
  if (!reader_.ReadBytes((size + kFieldBytes - 1) / kFieldBytes * kFieldBytes, &padded)) {
    return false;
  }
  *text = padded.substr(0, size);
  return true;
}

bool TensorPlace::Read(FieldReader& reader) {
  *this = {};
  if (!reader.Number(&type) || !reader.Number(&offset) || !reader.Number(&bytes) ||
      !reader.Count(kMaxRank, &rank)) {
    return false;
  }
  for (uint64_t i = 0; i < rank; ++i) {
    if (!reader.Number(&dims[i])) return false;
  }
  return true;
}

void TensorPlace::Write(FieldWriter& writer) const {
  const uint64_t head[] = {type, offset, bytes, rank};
  writer.Numbers(head);
  writer.Numbers({dims, rank});
}

bool TensorPlace::Elements(uint64_t* elements) const {
  *elements = 1;
  for (uint64_t i = 0; i < rank; ++i) {
    // The limit is checked even if an earlier dimension is 0, since the other dimensions must not
    // overflow elsewhere.
    if (dims[i] > kMaxElements || __builtin_mul_overflow(*elements, dims[i], elements) ||
        *elements > kMaxElements) {
      return false;
    }
  }
  return true;
}

bool GoodStrings(std::span<const std::byte> bytes, uint64_t elements) {
  if (bytes.size() / kFieldBytes <= elements) return false;
  const uint64_t texts = bytes.size() - (elements + 1) * kFieldBytes;
  uint64_t before = 0;
  for (uint64_t i = 0; i <= elements; ++i) {
    uint64_t offset;
    std::memcpy(&offset, bytes.data() + i * kFieldBytes, sizeof offset);
    if (offset < before || offset > texts || (i == 0 && offset != 0)) return false;
    before = offset;
  }
  return before == texts;
}

}  // namespace muster::engine::tensorflow::host
