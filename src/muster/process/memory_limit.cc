#include "muster/process/memory_limit.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "muster/process/proc.h"

namespace muster::process {
namespace {

constexpr size_t kMostText = size_t{64} << 10;
constexpr int kRemoveTries = 500;  // a millisecond apart

// The names of the files of one version of cgroups.
struct Version {
  const char* limit;
  const char* swap;        // limit of swap; may be missing
  const char* swap_value;  // none: the limit itself, which counts memory and swap together
  const char* whole_group;
  const char* events;
};
constexpr Version kVersion2 = {"memory.max", "memory.swap.max", "0", "memory.oom.group",
                               "memory.events"};
constexpr Version kVersion1 = {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", nullptr,
                               nullptr, "memory.oom_control"};

// The folder of this process's own group, and the hierarchy's root above it.
struct Hierarchy {
  const Version* version = nullptr;
  std::string root, own;
};

bool HasWord(const std::string& path, absl::string_view word) {
  const auto text = ReadSmallFile(path);
  if (!text) return false;
  const std::vector<absl::string_view> words = absl::StrSplit(*text, absl::ByAnyChar(" \n"));
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Returns what follows "ID:CONTROLLERS:" in the line that names the controller; "" is version 2.
std::string GroupPath(const std::string& membership, absl::string_view controller) {
  for (absl::string_view line : absl::StrSplit(membership, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<absl::string_view> names = absl::StrSplit(parts[1], ',');
    if (std::find(names.begin(), names.end(), controller) != names.end()) {
      return std::string(ToStd(parts[2]));
    }
  }
  return "";
}

// The number that follows a line's first word.
std::optional<uint64_t> FindNumber(const std::string& text, absl::string_view name) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t number = 0;
    if (words.size() >= 2 && words[0] == name && absl::SimpleAtoi(words[1], &number)) return number;
  }
  return std::nullopt;
}

absl::StatusOr<Hierarchy> FindHierarchy(const CgroupPlaces& places) {
  const std::string membership = ReadSmallFile(places.membership).value_or("");
  if (HasWord(places.root + "/cgroup.controllers", "memory")) {
    const std::string path = GroupPath(membership, "");
    if (!path.empty()) return Hierarchy{&kVersion2, places.root, places.root + path};
  }
  const std::string path = GroupPath(membership, "memory");
  const std::string root = places.root + "/memory";
  if (!path.empty() && access(root.c_str(), F_OK) == 0) {
    return Hierarchy{&kVersion1, root, root + path};
  }
  return absl::FailedPreconditionError(
      StrCat("no cgroup hierarchy with a memory controller under ", places.root));
}

// cgroupfs has all its files from the start and makes no others, so O_CREAT changes nothing there.
// A folder that stands for it in a test needs O_CREAT.
bool WriteText(const std::string& path, const std::string& text) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  return file.valid() &&
         write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Whether a group made in this folder would have a memory controller.
bool GivesMemoryController(const Version& version, const std::string& folder) {
  if (&version == &kVersion1) return true;
  const std::string control = folder + "/cgroup.subtree_control";
  return HasWord(control, "memory") ||
         (HasWord(folder + "/cgroup.controllers", "memory") && WriteText(control, "+memory"));
}

bool SetLimit(const Version& version, const std::string& folder, int64_t bytes) {
  const std::string limit = StrCat(bytes);
  if (!WriteText(StrCat(folder, "/", version.limit), limit)) return false;
  // Both files may be missing: in a kernel without accounting of swap, or in an old one.
  WriteText(StrCat(folder, "/", version.swap),
            version.swap_value != nullptr ? version.swap_value : limit);
  if (version.whole_group != nullptr) WriteText(StrCat(folder, "/", version.whole_group), "1");
  return true;
}

// Makes the group in one folder. Returns nothing if that is not possible there.
Descriptor MakeGroup(const Version& version, const std::string& parent, const std::string& folder,
                     int64_t bytes) {
  // Moving a process into the group needs the right to write to the folder above both.
  if (access((parent + "/cgroup.procs").c_str(), W_OK) != 0) return Descriptor();
  if (!GivesMemoryController(version, parent)) return Descriptor();
  if (mkdir(folder.c_str(), 0755) != 0) return Descriptor();
  Descriptor procs;
  if (SetLimit(version, folder, bytes)) {
    procs.Reset(open((folder + "/cgroup.procs").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  }
  if (!procs.valid()) rmdir(folder.c_str());
  return procs;
}

// Returns the folders in which a group may be made: this process's own and those above it, the
// nearest first.
std::vector<std::string> GetParents(const Hierarchy& hierarchy) {
  std::vector<std::string> parents;
  std::string parent = hierarchy.own;
  while (parent.size() > 1 && parent.back() == '/') parent.pop_back();
  for (; parent.size() >= hierarchy.root.size(); parent.resize(parent.rfind('/'))) {
    parents.push_back(parent);
  }
  return parents;
}

std::string GroupFolder(const std::string& parent, const std::string& name, int creator) {
  return StrCat(parent, "/muster-", name, "-", creator);
}

// A process that was killed stays in its group for a moment after it can no longer be seen.
bool RemoveSoon(const std::string& folder) {
  for (int i = 0; i < kRemoveTries; ++i) {
    if (rmdir(folder.c_str()) == 0) return true;
    if (errno != EBUSY) return false;
    poll(nullptr, 0, 1);  // nothing announces it
  }
  return false;
}

bool IsPlainName(const std::string& name) {
  return !name.empty() && name.size() <= 100 &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
}

}  // namespace

uint64_t GetFreeMemory(const CgroupPlaces& places) {
  uint64_t free = std::numeric_limits<uint64_t>::max();
  const std::string machine = ReadSmallFile(places.machine, kMostText).value_or("");
  if (const auto available = FindNumber(machine, "MemAvailable:")) free = *available << 10;
  const auto hierarchy = FindHierarchy(places);
  if (!hierarchy.ok()) return free;
  const bool is_second = hierarchy->version == &kVersion2;
  // A limit of any group above counts too. In a container its own group is the root.
  for (std::string folder = hierarchy->own;; folder = folder.substr(0, folder.rfind('/'))) {
    uint64_t limit = 0;
    const std::string text =
        ReadSmallFile(StrCat(folder, "/", hierarchy->version->limit)).value_or("");
    const std::string stat = ReadSmallFile(folder + "/memory.stat", kMostText).value_or("");
    const auto used = FindNumber(stat, is_second ? "anon" : "total_rss");
    if (absl::SimpleAtoi(text, &limit) && used) {
      free = std::min(free, limit - std::min(limit, *used));
    }
    if (folder.size() <= hierarchy->root.size()) return free;
  }
}

absl::StatusOr<std::unique_ptr<MemoryLimit>> MemoryLimit::Create(const std::string& name,
                                                                 int64_t bytes,
                                                                 const CgroupPlaces& places) {
  if (!IsPlainName(name) || bytes <= 0) {
    return absl::InvalidArgumentError(StrCat("limit memory of '", name, "' to ", bytes,
                                             " bytes: give a name of letters, digits, "
                                             "- and _, and a positive number"));
  }
  const std::string context = "memory limits are not enforced here";
  auto hierarchy = FindHierarchy(places);
  if (!hierarchy.ok()) return Annotate(hierarchy.status(), context);
  for (const std::string& parent : GetParents(*hierarchy)) {
    const std::string folder = GroupFolder(parent, name, getpid());
    Descriptor procs = MakeGroup(*hierarchy->version, parent, folder, bytes);
    if (procs.valid()) {
      // NOLINTNEXTLINE(modernize-make-unique): the constructor is private
      return std::unique_ptr<MemoryLimit>(new MemoryLimit(
          folder, StrCat(folder, "/", hierarchy->version->events), std::move(procs)));
    }
  }
  return absl::FailedPreconditionError(
      StrCat(context, ": this user may make no cgroup with a memory controller in ", hierarchy->own,
             " or above: have the cgroup delegated (systemd-run --user --scope -p Delegate=yes) or "
             "run as root"));
}

void MemoryLimit::RemoveLeft(const std::string& name, int creator, const CgroupPlaces& places) {
  const auto hierarchy = FindHierarchy(places);
  if (!hierarchy.ok() || !IsPlainName(name)) return;
  for (const std::string& parent : GetParents(*hierarchy)) {
    if (RemoveSoon(GroupFolder(parent, name, creator))) return;
  }
}

MemoryLimit::MemoryLimit(std::string folder, std::string events, Descriptor procs)
    : folder_(std::move(folder)), events_(std::move(events)), procs_(std::move(procs)) {}

MemoryLimit::~MemoryLimit() { Close().IgnoreError(); }

absl::StatusOr<int64_t> MemoryLimit::OutOfMemoryKills() const {
  const auto text = ReadSmallFile(events_);
  if (!text) return absl::NotFoundError(StrCat("read ", events_, ": the group is gone"));
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    int64_t count = 0;
    if (words.size() == 2 && words[0] == "oom_kill" && absl::SimpleAtoi(words[1], &count)) {
      return count;
    }
  }
  return absl::UnimplementedError(
      StrCat("read ", events_, ": this kernel (before 4.13) does not count what it ended"));
}

absl::Status MemoryLimit::Close() {
  if (folder_.empty()) return absl::OkStatus();
  procs_.Reset();
  if (rmdir(folder_.c_str()) != 0 && errno != ENOENT) {
    const int error = errno;
    if (error == EBUSY) {
      return absl::FailedPreconditionError(
          StrCat("remove the cgroup ", folder_, ": processes are in it: end them first"));
    }
    return ErrnoStatus(error, StrCat("remove the cgroup ", folder_));
  }
  folder_.clear();
  return absl::OkStatus();
}

}  // namespace muster::process
