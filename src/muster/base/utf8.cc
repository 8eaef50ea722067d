#include "muster/base/utf8.h"

#include <cstdint>

namespace muster {
namespace {

// Returns the size of the character with which `text` begins; 0 if it is not well-formed. `text` is
// not empty.
size_t CharacterSize(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  const int more = lead < 0x80 ? 0 : lead < 0xc2 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
  if (more < 0 || lead > 0xf4 || static_cast<size_t>(more) >= text.size()) return 0;
  uint32_t code = more == 0 ? lead : lead & (0x3f >> more);
  for (int k = 1; k <= more; ++k) {
    const auto byte = static_cast<uint8_t>(text[static_cast<size_t>(k)]);
    if ((byte & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  if (code < kLeast[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
  return static_cast<size_t>(more) + 1;
}

}  // namespace

size_t Utf8PrefixSize(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t size = CharacterSize(text.substr(i));
    if (size == 0) return i;
    i += size;
  }
  return text.size();
}

bool IsUtf8(std::string_view text) { return Utf8PrefixSize(text) == text.size(); }

std::string ReplaceNonUtf8(std::string_view text) {
  std::string replaced;
  while (true) {
    const size_t sound = Utf8PrefixSize(text);
    replaced.append(text.substr(0, sound));
    if (sound == text.size()) return replaced;
    replaced.append("\xef\xbf\xbd");
    text.remove_prefix(sound + 1);
  }
}

std::string Latin1ToUtf8(std::string_view text) {
  std::string utf8;
  for (const char c : text) {
    const auto code = static_cast<uint8_t>(c);
    if (code < 0x80) {
      utf8.push_back(c);
    } else {
      utf8.push_back(static_cast<char>(0xc0 | code >> 6));
      utf8.push_back(static_cast<char>(0x80 | (code & 0x3f)));
    }
  }
  return utf8;
}

}  // namespace muster
