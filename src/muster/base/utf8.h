// Whether bytes are UTF-8 text (RFC 3629).
#pragma once

#include <string_view>

namespace muster {

// True for well-formed UTF-8: no surrogates, nothing over U+10FFFF, no longer form than needed.
bool IsUtf8(std::string_view text);

}  // namespace muster
