// Files that only their owner may read: tokens and private keys.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "muster/base/status.h"

namespace muster::net {

// Writes a file that has mode 0600 from its first byte. It is written under another name, synced
// and renamed, so that a reader finds the old file or the new one. The folder must exist.
absl::Status WriteSecretFile(const std::string& path, std::string_view contents);

// Reads a regular file of this user (or of root) that neither group nor others may access, or one
// of root's that a group of this user may read and nobody may write (mode 0440), as Kubernetes
// mounts a Secret. Any other file is refused with PERMISSION_DENIED and advice. Checks the
// descriptor it reads from, not the name.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path, size_t max_bytes = 64 << 10);

// Reads a regular file of this user or of root that nobody else may write, even if others may read
// it: for secrets that the platform mounts with a mode which the user cannot change, where no other
// user sees the mount, and for certificates, which are no secrets. A pod's ServiceAccount token,
// for instance, has mode 0644 in a folder of mode 01777, and the pod is the boundary. Any other
// file is refused with PERMISSION_DENIED. Checks the descriptor it reads from, not the name or its
// folders.
absl::StatusOr<std::string> ReadMountedSecretFile(const std::string& path,
                                                  size_t max_bytes = 64 << 10);

// Reads all of a descriptor that was inherited for this purpose (a pipe, a memfd) and closes it.
// `name` is for messages.
absl::StatusOr<std::string> ReadSecretDescriptor(int descriptor, const std::string& name,
                                                 size_t max_bytes = 64 << 10);

}  // namespace muster::net
