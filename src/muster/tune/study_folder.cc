#include "muster/tune/study_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <random>
#include <system_error>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

#include "muster/io/file_system.h"
#include "muster/io/path_scheme.h"

namespace muster::tune {
namespace {

constexpr double kLookSeconds = 0.05;
constexpr uint64_t kMostIdBytes = 256;
constexpr size_t kMostNameBytes = 30;  // a job's name has at most 63, with the numbers of its pods

}  // namespace

absl::StatusOr<std::unique_ptr<StudyFolder>> StudyFolder::Open(const std::string& path,
                                                               double wait_seconds) {
  if (!io::PathScheme(path).empty()) {
    return absl::InvalidArgumentError(
        StrCat(path, ": a study is kept on a local disk; give a local folder"));
  }
  std::unique_ptr<StudyFolder> folder(new StudyFolder(path));
  for (const char* name : {"checkpoint", "model.yaml"}) {
    if (!std::filesystem::exists(io::JoinPath(path, name))) continue;
    return absl::FailedPreconditionError(
        StrCat(path, " is a model folder: give the study a folder of its own"));
  }
  for (const std::string& made : {folder->trials(), folder->logs(), folder->hparams()}) {
    std::error_code error;
    std::filesystem::create_directories(made, error);
    if (error) return ErrnoStatus(error.value(), StrCat("making the folder ", made));
  }
  const std::string lock = io::JoinPath(path, "lock");
  folder->lock_ = process::Descriptor(open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!folder->lock_.valid()) return ErrnoStatus(errno, StrCat("opening ", lock));
  for (double waited = 0;; waited += kLookSeconds) {
    if (flock(folder->lock_.get(), LOCK_EX | LOCK_NB) == 0) return folder;
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, StrCat("locking ", lock));
    if (waited >= wait_seconds) break;
    std::this_thread::sleep_for(std::chrono::duration<double>(kLookSeconds));
  }
  return absl::FailedPreconditionError(
      StrCat("the study in ", path,
             " is run by another process; wait for it, or give another "
             "study folder"));
}

std::string StudyFolder::journal() const { return io::JoinPath(path_, "study.log"); }
std::string StudyFolder::trials() const { return io::JoinPath(path_, "trials"); }
std::string StudyFolder::logs() const { return io::JoinPath(path_, "logs"); }
std::string StudyFolder::hparams() const { return io::JoinPath(path_, "hparams"); }
std::string StudyFolder::best() const { return io::JoinPath(path_, "best"); }

std::string StudyFolder::trial(int64_t number) const {
  return io::JoinPath(trials(), absl::StrFormat("%04d", number));
}

absl::StatusOr<std::string> StudyFolder::GetId(io::FileSystem& files) const {
  const std::string path = io::JoinPath(path_, "id");
  auto kept = io::ReadFile(files, path, kMostIdBytes);
  if (kept.ok() || !absl::IsNotFound(kept.status())) return kept;
  std::string id;
  for (const char c : io::Basename(path_).substr(0, kMostNameBytes)) {
    const bool is_plain = absl::ascii_isalnum(static_cast<unsigned char>(c));
    if (is_plain) id += absl::ascii_tolower(static_cast<unsigned char>(c));
    if (!is_plain && !id.empty() && !id.ends_with('-')) id += '-';
  }
  if (id.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(id.front())))
    id = "study-" + id;
  if (!id.ends_with('-')) id += '-';
  id += absl::StrFormat("%05x", std::random_device()() % 0x100000);
  MUSTER_RETURN_IF_ERROR(io::WriteFileAtomically(files, path, id));
  return id;
}

}  // namespace muster::tune
