// Checks how deep a JSON text nests before a library parses it recursively.
#pragma once

#include <cstddef>
#include <string_view>

namespace muster {

// The byte of the first '[' or '{', outside strings, that opens more than `levels`; npos if none
// does. The text need not be JSON.
size_t FindDeeperJson(std::string_view text, int levels);

}  // namespace muster
