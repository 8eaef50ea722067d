// Whether bytes are UTF-8 text (RFC 3629), and text made of bytes that are not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

// True for well-formed UTF-8: no surrogates, nothing over U+10FFFF, no longer form than needed.
bool IsUtf8(std::string_view text);

// The number of bytes before the first that is not part of a well-formed character; text.size() if
// there is none.
size_t Utf8PrefixSize(std::string_view text);

// `text` with U+FFFD in the place of each byte that is not part of a well-formed character.
std::string ReplaceNonUtf8(std::string_view text);

// The UTF-8 form of text in Latin-1 (ISO 8859-1), in which every byte is a character.
std::string Latin1ToUtf8(std::string_view text);

}  // namespace muster
