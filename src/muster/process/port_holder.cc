// Finds the process that has a port, from /proc/net/tcp and the descriptors of processes.
#include <dirent.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "muster/process/ports.h"
#include "muster/process/proc.h"

namespace muster::process {
namespace {

constexpr absl::string_view kListening = "0A";

struct SocketEntry {
  std::string inode;
  std::string user;
  bool listening = false;
};

// Parses a line such as "0: 0100007F:08AE 00000000:0000 0A 00000000:00000000 00:00000000 00000000
// UID 0 INODE".
std::optional<SocketEntry> ParseEntry(absl::string_view line, int port) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.size() < 10) return std::nullopt;
  const size_t colon = words[1].rfind(':');
  uint32_t number = 0;
  if (colon == absl::string_view::npos ||
      !absl::SimpleHexAtoi(words[1].substr(colon + 1), &number) ||
      number != static_cast<uint32_t>(port)) {
    return std::nullopt;
  }
  return SocketEntry{.inode = std::string(ToStd(words[9])),
                     .user = std::string(ToStd(words[7])),
                     .listening = words[3] == kListening};
}

// Returns the listening socket of a port or, if there is none, any socket of it.
std::optional<SocketEntry> FindSocket(int port) {
  std::optional<SocketEntry> found;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const auto text = ReadSmallFile(table, size_t{16} << 20);
    if (!text) continue;
    for (absl::string_view line : absl::StrSplit(*text, '\n')) {
      const auto entry = ParseEntry(line, port);
      if (!entry || entry->inode == "0") continue;  // 0: nobody's any more, in TIME_WAIT
      if (!found || entry->listening) found = entry;
    }
  }
  return found;
}

bool HasDescriptor(pid_t pid, const std::string& target) {
  const std::string folder = StrCat("/proc/", pid, "/fd");
  const std::unique_ptr<DIR, int (*)(DIR*)> descriptors(opendir(folder.c_str()), closedir);
  if (descriptors == nullptr) return false;
  while (const dirent* entry = readdir(descriptors.get())) {
    char link[64];
    const ssize_t size = readlink(StrCat(folder, "/", entry->d_name).c_str(), link, sizeof link);
    if (size > 0 && std::string_view(link, static_cast<size_t>(size)) == target) return true;
  }
  return false;
}

}  // namespace

std::string DescribePortHolder(int port) {
  const auto entry = FindSocket(port);
  if (!entry) return "";
  const std::string target = StrCat("socket:[", entry->inode, "]");
  for (const auto& [pid, stat] : ReadAllStats()) {
    if (HasDescriptor(pid, target)) return StrCat("process ", pid, " (", CommandLine(pid), ")");
  }
  return StrCat("a process of user ", entry->user);
}

}  // namespace muster::process
