// Matches one path component against a pattern of *, ? and [..]; used by Glob().
#pragma once

#include <string_view>

namespace muster::io {

bool HasWildcard(std::string_view pattern);

// * is any run of characters, ? one character (a byte), [a-z_] one of a set, [!a-z] one that is not
// in it; a '[' without its ']' stands for itself. A name that starts with '.' or '_' matches only a
// pattern that starts with the same character. Takes time in proportion to the product of the
// lengths at most.
bool MatchesWildcards(std::string_view pattern, std::string_view name);

}  // namespace muster::io
