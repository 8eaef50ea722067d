// Files that only their owner may read: tokens and private keys.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "muster/base/status.h"

namespace muster::net {

// Mode 0600 from its first byte; another name, synced and renamed, so that a reader finds the old
// file or the new. The folder must exist.
absl::Status WriteSecretFile(const std::string& path, std::string_view contents);

// A regular file of ours (or of root) that neither group nor others may touch; any other is refused
// with PERMISSION_DENIED and what to do. Looks at the descriptor it reads from, not at the name.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path, size_t max_bytes = 64 << 10);

// All of a descriptor that was inherited for this purpose (a pipe, a memfd), which is closed.
// `name` is for messages.
absl::StatusOr<std::string> ReadSecretDescriptor(int descriptor, const std::string& name,
                                                 size_t max_bytes = 64 << 10);

}  // namespace muster::net
