#include "muster/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <span>

namespace muster {
namespace {

constexpr size_t kUsualWidth = 80;
constexpr size_t kLeastWidth = 20;
constexpr size_t kUsualHeight = 24;
constexpr size_t kLeastHeight = 5;
constexpr std::string_view kCut = "...";

std::string_view GetVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

// The character that begins at text[at]; a byte that is not UTF-8 is one by itself.
char32_t ReadCharacter(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const size_t more = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : byte >= 0xC0 ? 1 : 0;
  char32_t character = more == 0 ? byte : byte & (0x3FU >> more);
  for (size_t i = 1; i <= more && at + i < text.size() && !BeginsCharacter(text[at + i]); ++i) {
    character = character << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
  }
  return character;
}

struct Range {
  char32_t first, last;
};
// The blocks of characters that combine with the one before, or join two.
constexpr Range kNarrow[] = {{0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},   {0x610, 0x61A},
                             {0x64B, 0x65F},   {0x900, 0x902},   {0x93C, 0x93C},   {0x941, 0x948},
                             {0xE31, 0xE31},   {0xE34, 0xE3A},   {0xE47, 0xE4E},   {0x1AB0, 0x1AFF},
                             {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F},
                             {0xFE20, 0xFE2F}};
// The blocks whose characters are wide or full-width by Unicode's EastAsianWidth.txt.
constexpr Range kWide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2E80, 0x303E},   {0x3041, 0x33FF},
    {0x3400, 0x4DBF},   {0x4E00, 0xA4CF},   {0xA960, 0xA97C},   {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},
    {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};

bool IsIn(std::span<const Range> ranges, char32_t character) {
  return std::ranges::any_of(ranges, [character](const Range& range) {
    return range.first <= character && character <= range.last;
  });
}

// Columns of the character that begins at text[at].
size_t GetWidth(std::string_view text, size_t at) {
  const char32_t character = ReadCharacter(text, at);
  if (character < kNarrow[0].first) return 1;
  if (IsIn(kNarrow, character)) return 0;
  return IsIn(kWide, character) ? 2 : 1;
}

}  // namespace

bool CanRewrite(int fd) { return isatty(fd) == 1 && GetVariable("TERM") != "dumb"; }

bool WantsColor(int fd) { return CanRewrite(fd) && GetVariable("NO_COLOR").empty(); }

size_t TerminalWidth(int fd) {
  winsize size = {};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualWidth;
  return std::max<size_t>(kLeastWidth, size.ws_col);
}

size_t TerminalHeight(int fd) {
  winsize size = {};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return kUsualHeight;
  return std::max<size_t>(kLeastHeight, size.ws_row);
}

size_t CountColumns(std::string_view text) {
  size_t columns = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (BeginsCharacter(text[at])) columns += GetWidth(text, at);
  }
  return columns;
}

std::string PadColumns(std::string_view text, size_t columns) {
  std::string padded(text);
  const size_t taken = CountColumns(text);
  if (taken < columns) padded.append(columns - taken, ' ');
  return padded;
}

std::string FitColumns(std::string_view text, size_t columns) {
  if (CountColumns(text) <= columns) return std::string(text);
  if (columns <= kCut.size()) return std::string(kCut.substr(0, columns));
  size_t end = 0;
  for (size_t kept = 0; end < text.size(); ++end) {
    if (!BeginsCharacter(text[end])) continue;
    kept += GetWidth(text, end);
    if (kept > columns - kCut.size()) break;
  }
  return std::string(text.substr(0, end)).append(kCut);
}

std::string EscapeControls(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) {
      escaped += c;
    } else if (c == '\n' || c == '\t' || c == '\r') {
      escaped += c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
    } else {
      escaped.append("\\x").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
    }
  }
  return escaped;
}

}  // namespace muster
