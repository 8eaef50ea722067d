#include "muster/net/transport/kernel_tls.h"

#include <fcntl.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>

#include "muster/net/transport/dial.h"
#include "muster/net/transport/listener.h"
#include "muster/net/transport/socket_error.h"

namespace muster::net::transport {
namespace {

constexpr char kTls[] = "tls";
constexpr double kDialSeconds = 1;  // over loopback

absl::Status Refusal(int error, const std::string& peer) {
  if (error == ENOTCONN) return PeerClosed(peer);
  return absl::FailedPreconditionError(
      StrCat("the kernel does not encrypt what goes to ", peer, ": ", strerror(error),
             "; start without MUSTER_KERNEL_TLS, and OpenSSL encrypts"));
}

// `Info` is one of the kernel's tls12_crypto_info_.... Some ciphers call the first bytes of what
// TLS calls the iv a salt.
template <typename Info>
absl::Status SetKey(int socket, uint16_t cipher, const TlsKey& key, const std::string& peer) {
  Info info = {};
  info.info.version = TLS_1_3_VERSION;
  info.info.cipher_type = cipher;
  constexpr size_t kSaltBytes = sizeof info.salt;
  if (key.key.size() != sizeof info.key || key.iv.size() != kSaltBytes + sizeof info.iv) {
    return absl::InternalError("TLS: a key has another size than its cipher");
  }
  std::memcpy(info.key, key.key.data(), sizeof info.key);
  if constexpr (kSaltBytes > 0) std::memcpy(info.salt, key.iv.data(), kSaltBytes);
  std::memcpy(info.iv, key.iv.data() + kSaltBytes, sizeof info.iv);
  const int set = setsockopt(socket, SOL_TLS, TLS_TX, &info, sizeof info);
  const int error = errno;
  OPENSSL_cleanse(&info, sizeof info);
  if (set == 0) return absl::OkStatus();
  return Refusal(error, peer);
}

// Calls that send wait for room from now on, for so many seconds.
void WaitInCalls(int socket, double seconds) {
  timeval most = {};
  most.tv_sec = static_cast<time_t>(seconds);
  most.tv_usec = static_cast<suseconds_t>((seconds - static_cast<double>(most.tv_sec)) * 1e6);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) & ~O_NONBLOCK);
}

// A connection of this process to itself shows it.
bool TakesTwoKeys() {
  const auto listener = Listener::Listen(Address::Tcp("127.0.0.1", 0));
  const auto interrupt = Interrupt::Create();
  if (!listener.ok() || !interrupt.ok()) return false;
  const auto stream =
      Dial((*listener)->address(), {}, process::Deadline::After(kDialSeconds), **interrupt);
  if (!stream.ok()) return false;
  TlsKey key;
  key.suite = kAes128Suite;
  key.iv.resize(12);
  for (const char byte : {'1', '2'}) {
    key.key.assign(16, byte);
    if (!(*stream)->SetTlsKey(key).ok()) return false;
  }
  return true;
}

}  // namespace

bool KernelChangesTlsKeys() {
  static const bool kDoes = TakesTwoKeys();
  return kDoes;
}

absl::Status SetKernelTlsKey(int socket, const TlsKey& key, const std::string& peer) {
  // Once a socket has it, the kernel says that it exists.
  if (setsockopt(socket, IPPROTO_TCP, TCP_ULP, kTls, sizeof kTls) != 0 && errno != EEXIST) {
    return Refusal(errno, peer);
  }
  switch (key.suite) {
    case kAes128Suite:
      return SetKey<tls12_crypto_info_aes_gcm_128>(socket, TLS_CIPHER_AES_GCM_128, key, peer);
    case kAes256Suite:
      return SetKey<tls12_crypto_info_aes_gcm_256>(socket, TLS_CIPHER_AES_GCM_256, key, peer);
    case kChaCha20Suite:
      return SetKey<tls12_crypto_info_chacha20_poly1305>(socket, TLS_CIPHER_CHACHA20_POLY1305, key,
                                                         peer);
    default:
      return absl::FailedPreconditionError(StrCat("TLS: no cipher ", key.suite));
  }
}

absl::StatusOr<bool> SendKernelTlsRecord(int socket, uint8_t type, ConstBytes record,
                                         double seconds, const std::string& peer) {
  if (seconds > 0) WaitInCalls(socket, seconds);
  iovec part = {.iov_base = const_cast<std::byte*>(record.data()), .iov_len = record.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof type)] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_TLS;
  header->cmsg_type = TLS_SET_RECORD_TYPE;
  header->cmsg_len = CMSG_LEN(sizeof type);
  std::memcpy(CMSG_DATA(header), &type, sizeof type);
  while (true) {
    const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL | (seconds > 0 ? 0 : MSG_DONTWAIT));
    if (sent >= 0) return static_cast<size_t>(sent) == record.size();
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return PeerGone(errno, peer, "send");
  }
}

}  // namespace muster::net::transport
