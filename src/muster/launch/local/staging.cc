#include "muster/launch/local/staging.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"

#include "muster/files/file_systems.h"
#include "muster/io/local_file_system.h"
#include "muster/io/path_scheme.h"
#include "muster/job/pod_template.h"
#include "muster/process/capture.h"
#include "muster/process/descriptor.h"

namespace muster::launch::local {
namespace {

constexpr mode_t kFolderMode = 0700;
// HDFS does not say what may be executed.
constexpr mode_t kFetchedMode = 0700;
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr double kUnpackSeconds = 3600;
constexpr size_t kUnpackOutput = 2000;

struct ArchiveKind {
  std::string_view ending;
  std::string_view program;
};
constexpr ArchiveKind kArchiveKinds[] = {
    {".tar", "tar"},    {".tar.gz", "tar"},  {".tgz", "tar"},   {".tar.bz2", "tar"},
    {".tar.xz", "tar"}, {".tar.zst", "tar"}, {".zip", "unzip"},
};

// Returns null for a name with another ending.
const ArchiveKind* GetKind(const std::string& path) {
  const auto found =
      std::find_if(std::begin(kArchiveKinds), std::end(kArchiveKinds),
                   [&](const ArchiveKind& kind) { return path.ends_with(kind.ending); });
  return found == std::end(kArchiveKinds) ? nullptr : found;
}

absl::Status BadItem(const std::string& text, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("cannot stage '", text, "': ", why));
}

bool IsRemote(const std::string& path) { return !io::PathScheme(path).empty(); }

absl::Status CheckSource(const std::string& text, const std::string& source) {
  if (IsRemote(source)) {
    const auto info = files::OpenFileSystems()->Stat(source);
    if (!info.ok()) return BadItem(text, ToStd(info.status().message()));
    if (!info->is_folder) return absl::OkStatus();
    return BadItem(text, StrCat(source, " is a folder; give an archive"));
  }
  struct stat info;
  if (stat(source.c_str(), &info) != 0) {
    return BadItem(text, StrCat("there is no file ", source, " on this machine"));
  }
  if (!S_ISREG(info.st_mode)) {
    return BadItem(text, StrCat(source, " is no plain file; for a folder give an archive"));
  }
  return access(source.c_str(), R_OK) == 0 ? absl::OkStatus() : BadItem(text, "it may not be read");
}

absl::Status CheckItem(const std::string& text, const StagedItem& item) {
  MUSTER_RETURN_IF_ERROR(CheckSource(text, item.source));
  const std::string& name = item.name;
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    return BadItem(text,
                   "the name after '#', under which the task finds it, must be a plain file name");
  }
  if (item.is_archive && GetKind(item.source) == nullptr) {
    return BadItem(text, "no archive that is known (.zip, .tar, .tar.gz, .tgz, .tar.bz2, .tar.xz)");
  }
  return absl::OkStatus();
}

StagedItem MakeItem(const std::string& text, const std::string& folder, bool is_archive) {
  const size_t hash = text.rfind('#');
  const std::string path = text.substr(0, hash);
  StagedItem item{.source = io::JoinPath(folder, path), .is_archive = is_archive};
  if (hash != std::string::npos) {
    item.name = text.substr(hash + 1);
  } else {
    item.name = io::Basename(path);
    const ArchiveKind* const kind = is_archive ? GetKind(item.name) : nullptr;
    if (kind != nullptr) item.name.resize(item.name.size() - kind->ending.size());
  }
  return item;
}

absl::Status CheckWorkingDirectories(const job::JobSpec& spec) {
  for (const auto& [type, replica] : spec.replicas) {
    MUSTER_ASSIGN_OR_RETURN(const job::Process process, job::ParseProcess(replica.pod_template));
    if (process.working_directory.empty()) continue;
    return absl::InvalidArgumentError(
        StrCat(job::TypeFieldName(type), ": workingDir ", process.working_directory,
               ": tasks of a job with files or archives run in folders of their own; leave "
               "workingDir out"));
  }
  return absl::OkStatus();
}

absl::Status FileError(const std::error_code& error, std::string_view what) {
  return ErrnoStatus(error.value(), what);
}

// Only the owner has access to the copy. A file that could be executed still can.
absl::Status CopyFile(const std::string& source, const std::string& target) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::copy_file(source, target, error);
  if (error) return FileError(error, StrCat("cannot copy ", source, " to ", target));
  fs::permissions(target, fs::perms::group_all | fs::perms::others_all, fs::perm_options::remove,
                  error);
  if (error) return FileError(error, StrCat("cannot change the mode of ", target));
  return absl::OkStatus();
}

absl::Status MakeOwnFolder(const std::string& path) {
  if (mkdir(path.c_str(), kFolderMode) == 0 || errno == EEXIST) return absl::OkStatus();
  return ErrnoStatus(errno, StrCat("cannot make the folder ", path));
}

std::vector<std::string> UnpackCommand(const StagedItem& item, const std::string& target) {
  const std::string program(GetKind(item.source)->program);
  if (program == "tar") {
    return {program, "--extract", "--no-same-owner", "--file", item.source, "--directory", target};
  }
  return {program, "-q", item.source, "-d", target};
}

absl::Status Unpack(const StagedItem& item, const std::string& target) {
  MUSTER_RETURN_IF_ERROR(MakeOwnFolder(target));
  MUSTER_ASSIGN_OR_RETURN(const auto tree, process::ProcessTree::Create());
  process::ChildSpec spec;
  spec.argv = UnpackCommand(item, target);
  spec.environment = process::CurrentEnvironment();
  const auto run = process::RunCaptured(tree.get(), spec, kUnpackSeconds, kUnpackOutput);
  if (!run.ok()) {
    return absl::FailedPreconditionError(StrCat("cannot unpack ", item.source, ": install ",
                                                spec.argv[0], " (", ToStd(run.status().message()),
                                                ")"));
  }
  if (run->exit.ok()) return absl::OkStatus();
  const std::string said(absl::StripAsciiWhitespace(run->output));
  return absl::DataLossError(StrCat("cannot unpack ", item.source, ": ", spec.argv[0], ": ",
                                    process::DescribeExit(run->exit),
                                    said.empty() ? "" : StrCat(": ", said)));
}

absl::Status MakeTaskFolder(const std::vector<StagedItem>& items, const std::string& folder) {
  MUSTER_RETURN_IF_ERROR(MakeOwnFolder(folder));
  for (const StagedItem& item : items) {
    const std::string link = io::JoinPath(folder, item.name);
    if (symlink(StrCat("../../staged/", item.name).c_str(), link.c_str()) != 0) {
      return ErrnoStatus(errno, StrCat("cannot make the link ", link));
    }
  }
  return absl::OkStatus();
}

// Copies a file of another machine to one of this machine, which only the owner may read.
absl::Status Fetch(const std::string& source, const std::string& target) {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const auto from, files->OpenForRead(source));
  const process::Descriptor to(
      open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFetchedMode));
  if (!to.valid()) return ErrnoStatus(errno, StrCat("cannot write ", target));
  std::vector<char> piece(kPieceBytes);
  for (uint64_t done = 0;;) {
    MUSTER_ASSIGN_OR_RETURN(const size_t count, from->Read(done, piece.size(), piece.data()));
    if (count == 0) return absl::OkStatus();
    done += count;
    for (size_t written = 0; written < count;) {
      const ssize_t taken = write(to.get(), piece.data() + written, count - written);
      if (taken < 0 && errno == EINTR) continue;
      if (taken < 0) return ErrnoStatus(errno, StrCat("cannot write ", target));
      written += static_cast<size_t>(taken);
    }
  }
}

absl::Status StageItem(const StagedItem& item, const std::string& target) {
  if (!IsRemote(item.source)) {
    return item.is_archive ? Unpack(item, target) : CopyFile(item.source, target);
  }
  if (!item.is_archive) return Fetch(item.source, target);
  StagedItem fetched = item;  // its name tells how to unpack it
  fetched.source = StrCat(target, ".fetched", io::Basename(item.source));
  MUSTER_RETURN_IF_ERROR(Fetch(item.source, fetched.source));
  MUSTER_RETURN_IF_ERROR(Unpack(fetched, target));
  return unlink(fetched.source.c_str()) == 0
             ? absl::OkStatus()
             : ErrnoStatus(errno, StrCat("cannot remove ", fetched.source));
}

}  // namespace

absl::StatusOr<std::vector<StagedItem>> PlanStaging(const job::JobSpec& spec,
                                                    const std::string& folder) {
  std::vector<StagedItem> items;
  const auto add = [&](const std::vector<std::string>& texts, bool is_archive) -> absl::Status {
    for (const std::string& text : texts) {
      StagedItem item = MakeItem(text, folder, is_archive);
      MUSTER_RETURN_IF_ERROR(CheckItem(text, item));
      const bool taken = std::any_of(items.begin(), items.end(), [&](const StagedItem& other) {
        return other.name == item.name;
      });
      if (taken) {
        return BadItem(text, StrCat("two are called ", item.name, "; name one with PATH#NAME"));
      }
      items.push_back(std::move(item));
    }
    return absl::OkStatus();
  };
  MUSTER_RETURN_IF_ERROR(add(spec.files, false));
  MUSTER_RETURN_IF_ERROR(add(spec.archives, true));
  if (!items.empty()) MUSTER_RETURN_IF_ERROR(CheckWorkingDirectories(spec));
  return items;
}

absl::Status Stage(const std::vector<StagedItem>& items, const job::JobSpec& spec,
                   const control::JobFolder& folder) {
  MUSTER_RETURN_IF_ERROR(MakeOwnFolder(folder.staged()));
  MUSTER_RETURN_IF_ERROR(MakeOwnFolder(folder.work()));
  for (const StagedItem& item : items) {
    const std::string target = io::JoinPath(folder.staged(), item.name);
    MUSTER_RETURN_IF_ERROR(StageItem(item, target));
  }
  for (const auto& [type, replica] : spec.replicas) {
    for (int index = 0; index < replica.replicas; ++index) {
      const std::string name = job::TaskName({type, index});
      MUSTER_RETURN_IF_ERROR(MakeTaskFolder(items, io::JoinPath(folder.work(), name)));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::launch::local
