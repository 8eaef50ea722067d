#include "muster/process/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bitset>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "muster/process/port_lock.h"
#include "muster/process/proc.h"

namespace muster::process {
namespace {

constexpr int kFirstChosen = 10000;  // below live the services that people know by number
constexpr int kLastPort = 65535;
constexpr char kSharedFolder[] = "/tmp/muster-ports";
constexpr char kSettings[] = "/proc/sys/net/ipv4/";

using PortSet = std::bitset<kLastPort + 1>;

void Remove(int first, int last, PortSet* ports) {
  for (int port = std::max(first, 0); port <= std::min(last, kLastPort); ++port) ports->reset(port);
}

// Parses "8080,9000-9010".
void RemoveListed(std::string_view list, PortSet* ports) {
  for (absl::string_view part :
       absl::StrSplit(ToAbsl(list), absl::ByAnyChar(", \n\t"), absl::SkipEmpty())) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int first = 0, last = 0;
    if (absl::SimpleAtoi(ends.front(), &first) && absl::SimpleAtoi(ends.back(), &last)) {
      Remove(first, last, ports);
    }
  }
}

std::vector<PortRange> Ranges(const PortSet& ports) {
  std::vector<PortRange> ranges;
  for (int port = 0; port <= kLastPort; ++port) {
    if (!ports[port]) continue;
    if (!ranges.empty() && ranges.back().last == port - 1) {
      ranges.back().last = port;
    } else {
      ranges.push_back({.first = port, .last = port});
    }
  }
  return ranges;
}

struct Address {
  sockaddr_storage storage = {};
  socklen_t size = 0;
};

absl::StatusOr<Address> MakeAddress(const std::string& text, int port, bool any_is_ipv4) {
  Address address;
  const uint16_t number = htons(static_cast<uint16_t>(port));
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_port = number;
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = number;
  v6.sin6_addr = in6addr_any;
  if ((text.empty() && any_is_ipv4) || inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    memcpy(&address.storage, &v4, sizeof v4);
    address.size = sizeof v4;
  } else if (text.empty() || inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    memcpy(&address.storage, &v6, sizeof v6);
    address.size = sizeof v6;
  } else {
    return absl::InvalidArgumentError(StrCat("hold port ", port, ": '", text,
                                             "' is no numeric address such as 127.0.0.1 or ::1"));
  }
  return address;
}

// Returns 0 or errno. A shared socket has SO_REUSEADDR: it may be bound beside others that have it
// too.
int BindTo(const Address& address, bool shared, Descriptor* bound) {
  Descriptor fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno;
  const int yes = 1, no = 0;
  if (shared) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (address.storage.ss_family == AF_INET6) {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  }
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0) {
    return errno;
  }
  *bound = std::move(fd);
  return 0;
}

absl::Status Bind(const std::string& text, int port, bool shared, Descriptor* bound) {
  int error = 0;
  for (const bool any_is_ipv4 : {false, true}) {  // the second for a kernel without IPv6
    MUSTER_ASSIGN_OR_RETURN(const Address address, MakeAddress(text, port, any_is_ipv4));
    error = BindTo(address, shared, bound);
    if (error == 0) return absl::OkStatus();
    if (!text.empty() || (error != EAFNOSUPPORT && error != EADDRNOTAVAIL)) break;
  }
  if (error == EADDRINUSE) return absl::FailedPreconditionError("in use");
  return ErrnoStatus(error, StrCat("bind port ", port, text.empty() ? "" : " of ", text));
}

absl::Status TakenStatus(int port, const std::string& holder) {
  return absl::FailedPreconditionError(
      StrCat("port ", port, " is taken",
             holder.empty() ? " (by whom, /proc does not tell)" : StrCat(" by ", holder),
             ": end that, or choose another port"));
}

absl::StatusOr<std::string> Folder(const PortOptions& options) {
  if (options.folder.empty()) return DefaultLockFolder();
  if (mkdir(options.folder.c_str(), 0700) != 0 && errno != EEXIST) {
    const int error = errno;
    return ErrnoStatus(error, StrCat("make the folder of port locks ", options.folder));
  }
  return options.folder;
}

// Whether the path is a folder, not a link, in which this user may make files.
bool IsUsable(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         access(path.c_str(), R_OK | W_OK | X_OK) == 0;
}

size_t RandomBelow(size_t n) {
  uint64_t bits = 0;
  // The number only spreads jobs over the range; the locks keep them apart.
  if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != sizeof bits) {
    bits = static_cast<uint64_t>(getpid());
  }
  return bits % n;
}

std::vector<int> Candidates() {
  const std::string settings = kSettings;
  std::vector<int> ports;
  for (const PortRange& range :
       ChooseFrom(ReadSmallFile(settings + "ip_local_port_range").value_or(""),
                  ReadSmallFile(settings + "ip_local_reserved_ports").value_or(""))) {
    for (int port = range.first; port <= range.last; ++port) ports.push_back(port);
  }
  if (!ports.empty()) {
    std::rotate(ports.begin(), ports.begin() + static_cast<ptrdiff_t>(RandomBelow(ports.size())),
                ports.end());
  }
  return ports;
}

}  // namespace

std::vector<PortRange> ChooseFrom(std::string_view ephemeral, std::string_view reserved) {
  PortSet open;
  open.set();
  Remove(0, kFirstChosen - 1, &open);
  RemoveListed(reserved, &open);
  PortSet calm = open;
  const std::vector<absl::string_view> ends =
      absl::StrSplit(ToAbsl(ephemeral), absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
  int first = 0, last = 0;
  if (ends.size() == 2 && absl::SimpleAtoi(ends[0], &first) && absl::SimpleAtoi(ends[1], &last)) {
    Remove(first, last, &calm);
  }
  return Ranges(calm.any() ? calm : open);
}

absl::StatusOr<std::string> DefaultLockFolder() {
  const std::string shared = kSharedFolder;
  // The mode is not given to mkdir, since the umask would remove bits of it.
  if (mkdir(shared.c_str(), 0700) == 0) chmod(shared.c_str(), S_ISVTX | 0777);
  if (IsUsable(shared)) return shared;
  const std::string own = StrCat(kSharedFolder, "-", getuid());
  mkdir(own.c_str(), 0700);
  if (IsUsable(own)) return own;
  return absl::FailedPreconditionError(
      StrCat("lock ports: neither ", shared, " nor ", own,
             " is a folder that this user may write to: remove them, or name another folder"));
}

absl::StatusOr<HeldPort> HeldPort::Any(const PortOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const std::string folder, Folder(options));
  for (int port : Candidates()) {
    MUSTER_ASSIGN_OR_RETURN(PortLock lock, LockPort(folder, port));
    if (lock.state != LockState::kLocked) continue;
    HeldPort held(port, options.address);
    held.lock_path_ = PortLockPath(folder, port);
    held.lock_ = std::move(lock.file);
    // The port is first bound alone: a shared bind would succeed beside a server that is about to
    // listen.
    Descriptor alone;
    absl::Status status = Bind(options.address, port, /*shared=*/false, &alone);
    alone.Reset();
    if (status.ok()) status = Bind(options.address, port, /*shared=*/true, &held.socket_);
    if (status.ok()) return held;
    if (!absl::IsFailedPrecondition(status)) return status;
  }
  return absl::UnavailableError(
      StrCat("find a free port: all are taken from ", kFirstChosen,
             " up outside of ip_local_port_range and ip_local_reserved_ports (", kSettings,
             "): end what holds them, or name a port"));
}

absl::StatusOr<HeldPort> HeldPort::Fixed(int port, const PortOptions& options) {
  if (port < 1 || port > kLastPort) {
    return absl::InvalidArgumentError(StrCat("port ", port, " is none: choose 1 to ", kLastPort));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string folder, Folder(options));
  MUSTER_ASSIGN_OR_RETURN(PortLock lock, LockPort(folder, port));
  if (lock.state == LockState::kTaken) {
    const std::string server = DescribePortHolder(port);
    return TakenStatus(port, server.empty() ? lock.holder : server);
  }
  HeldPort held(port, options.address);
  held.lock_path_ = PortLockPath(folder, port);
  held.lock_ = std::move(lock.file);
  MUSTER_RETURN_IF_ERROR(held.HoldSocket());
  return held;
}

HeldPort::~HeldPort() { UnlockPort(lock_path_, std::move(lock_)); }

absl::Status HeldPort::HoldSocket() {
  if (socket_.valid()) return absl::OkStatus();
  const absl::Status status = Bind(address_, port_, /*shared=*/true, &socket_);
  return absl::IsFailedPrecondition(status) ? TakenStatus(port_, DescribePortHolder(port_))
                                            : status;
}

}  // namespace muster::process
