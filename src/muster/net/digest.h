// SHA-256 (FIPS 180-4) of bytes, by which equal contents have one name.
#pragma once

#include <string>
#include <string_view>

namespace muster::net {

// As 64 digits of hexadecimal, in small letters.
std::string GetSha256(std::string_view bytes);

}  // namespace muster::net
