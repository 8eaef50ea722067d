#include "muster/features/fingerprint.h"

#include <farmhash.h>

#include <charconv>

namespace muster::features {

uint64_t Fingerprint64(std::string_view bytes) {
  return util::Fingerprint64(bytes.data(), bytes.size());
}

uint64_t Fingerprint64(int64_t value) {
  char text[20];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return util::Fingerprint64(text, static_cast<size_t>(end - text));
}

}  // namespace muster::features
