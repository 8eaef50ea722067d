#include "muster/engine/tensorflow/local_copy.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "muster/base/strings.h"
#include "muster/io/path_scheme.h"

namespace muster::engine::tensorflow {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{4} << 30;

absl::Status CopyFolder(io::FileSystem& files, const std::string& from, const std::string& to) {
  MUSTER_ASSIGN_OR_RETURN(const auto names, files.List(from));
  for (const std::string& name : names) {
    const std::string source = io::JoinPath(from, name), target = io::JoinPath(to, name);
    MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, files.Stat(source));
    std::error_code error;
    if (info.is_folder) {
      std::filesystem::create_directory(target, error);
      if (error) return ErrnoStatus(error.value(), StrCat("make the folder ", target));
      MUSTER_RETURN_IF_ERROR(CopyFolder(files, source, target));
      continue;
    }
    MUSTER_ASSIGN_OR_RETURN(const std::string bytes, io::ReadFile(files, source, kMaxFileBytes));
    std::ofstream out(target, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) return absl::UnavailableError(StrCat("cannot write ", target, ": is its disk full?"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalCopy>> LocalCopy::MakeIfElsewhere(io::FileSystem& files,
                                                                      const std::string& folder) {
  const std::string_view scheme = io::PathScheme(folder);
  if (scheme.empty() || scheme == io::kFileScheme) return nullptr;
  std::error_code error;
  std::string path =
      io::JoinPath(std::filesystem::temp_directory_path(error).string(), "muster-export-XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return ErrnoStatus(errno, StrCat("make the folder ", path));
  std::unique_ptr<LocalCopy> copy(new LocalCopy(std::move(path)));
  MUSTER_RETURN_IF_ERROR(CopyFolder(files, folder, copy->path()));
  return copy;
}

LocalCopy::~LocalCopy() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace muster::engine::tensorflow
