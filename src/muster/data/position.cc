#include <charconv>
#include <cstdio>

#include "muster/base/crc32c.h"
#include "muster/data/reader.h"

namespace muster::data {
namespace {

constexpr std::string_view kPositionMark = "muster-position-1";
constexpr size_t kMaxOpenCursors = 1 << 20;

// Reads " name=value" pairs from the beginning of a text.
class PositionText {
 public:
  explicit PositionText(std::string_view text) : text_(text) {}

  bool ConsumeText(std::string_view mark) {
    if (!text_.starts_with(mark)) return false;
    text_.remove_prefix(mark.size());
    return true;
  }
  template <typename Number>
  bool Consume(Number* value, int base = 10) {
    const auto [stop, error] =
        std::from_chars(text_.data(), text_.data() + text_.size(), *value, base);
    if (error != std::errc()) return false;
    text_.remove_prefix(stop - text_.data());
    return true;
  }
  bool empty() const { return text_.empty(); }

 private:
  std::string_view text_;
};

std::string Checksum(std::string_view text) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "%08x", Crc32c(text));
  return buffer;
}

}  // namespace

std::string SerializePosition(const Position& position) {
  char fingerprint[20];
  std::snprintf(fingerprint, sizeof fingerprint, "%016llx",
                static_cast<unsigned long long>(position.source_fingerprint));
  std::string text =
      StrCat(kPositionMark, " data=", fingerprint, " seed=", position.seed,
             " epoch=", position.epoch, " emitted=", position.emitted,
             " next=", position.next_ordinal, " bad=", position.bad_records, " open=");
  for (const Position::Cursor& cursor : position.open) {
    if (!text.ends_with('=')) text += ',';
    text += StrCat(cursor.ordinal, ":", cursor.consumed);
  }
  return StrCat(text, " crc32c=", Checksum(text));
}

absl::StatusOr<Position> ParsePosition(std::string_view bytes) {
  const auto broken = [](std::string_view what) {
    return absl::DataLossError(StrCat("a saved position of the data: ", what));
  };
  constexpr std::string_view kChecksumMark = " crc32c=";
  const size_t mark = bytes.rfind(kChecksumMark);
  if (mark == std::string_view::npos) return broken("cut short");
  if (bytes.substr(mark + kChecksumMark.size()) != Checksum(bytes.substr(0, mark))) {
    return broken("wrong checksum");
  }
  PositionText text(bytes.substr(0, mark));
  Position position;
  const bool sound = text.ConsumeText(kPositionMark) && text.ConsumeText(" data=") &&
                     text.Consume(&position.source_fingerprint, 16) && text.ConsumeText(" seed=") &&
                     text.Consume(&position.seed) && text.ConsumeText(" epoch=") &&
                     text.Consume(&position.epoch) && text.ConsumeText(" emitted=") &&
                     text.Consume(&position.emitted) && text.ConsumeText(" next=") &&
                     text.Consume(&position.next_ordinal) && text.ConsumeText(" bad=") &&
                     text.Consume(&position.bad_records) && text.ConsumeText(" open=");
  if (!sound || position.epoch < 0) return broken("it is not of this version");
  while (!text.empty() && position.open.size() < kMaxOpenCursors) {
    Position::Cursor cursor;
    if (!position.open.empty() && !text.ConsumeText(","))
      return broken("it is not of this version");
    if (!text.Consume(&cursor.ordinal) || !text.ConsumeText(":") ||
        !text.Consume(&cursor.consumed)) {
      return broken("it is not of this version");
    }
    position.open.push_back(cursor);
  }
  if (!text.empty()) return broken("it has too many open chunks");
  return position;
}

}  // namespace muster::data
