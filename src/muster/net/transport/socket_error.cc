#include "muster/net/transport/socket_error.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace muster::net::transport {

absl::Status PeerGone(int error_number, const std::string& peer, const char* call) {
  return absl::UnavailableError(
      ErrnoStatus(error_number, StrCat(peer, " is gone: ", call)).message());
}

absl::Status PeerClosed(const std::string& peer) {
  return absl::UnavailableError(StrCat(peer, " closed the connection or has ended"));
}

bool PeerIsOurs(int socket) {
  ucred who = {};
  socklen_t size = sizeof who;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

absl::Status MakeNonBlocking(int socket, const std::string& peer) {
  const int flags = fcntl(socket, F_GETFL);
  if (flags < 0 || fcntl(socket, F_SETFL, flags | O_NONBLOCK) != 0 ||
      fcntl(socket, F_SETFD, FD_CLOEXEC) != 0) {
    return ErrnoStatus(errno, StrCat("prepare the socket for ", peer));
  }
  return absl::OkStatus();
}

}  // namespace muster::net::transport
