#include "muster/launch/yarn/staging.h"

#include <utility>

#include "muster/base/strings.h"
#include "muster/files/hdfs/hadoop_environment.h"
#include "muster/io/path_scheme.h"
#include "muster/net/digest.h"

namespace muster::launch::yarn {
namespace {

using formats::Json;

constexpr size_t kPieceBytes = size_t{4} << 20;
constexpr int64_t kNanosPerMilli = 1'000'000;
constexpr char kFolderMode[] = "700", kFileMode[] = "600";
constexpr char kShared[] = "programs";  // the folder beside those of jobs

std::string GetPath(const YarnConfig& config, const std::string& name) {
  return StrCat(config.home, "/.muster/", name);
}

// A PRIVATE one is kept by a node for all applications of its user.
const char* GetVisibility(const LocalResource& resource) {
  return resource.is_shared ? "PRIVATE" : "APPLICATION";
}

LocalResource Describe(const io::FileInfo& info, const std::string& url, const std::string& as) {
  return {.name = as,
          .url = url,
          .size = info.size,
          .modified_millis = info.modified_ns / kNanosPerMilli};
}

const char* GetType(const LocalResource& resource) {
  return resource.is_archive ? "ARCHIVE" : "FILE";
}

absl::Status MakePrivateFolder(files::WebHdfs& calls, const std::string& path) {
  MUSTER_RETURN_IF_ERROR(calls
                             .Call({.method = "PUT",
                                    .op = "MKDIRS",
                                    .path = path,
                                    .parameters = {{"permission", kFolderMode}}})
                             .status());
  // A folder that was there, or a mask of the server, may have given it another mode.
  return calls
      .Call({.method = "PUT",
             .op = "SETPERMISSION",
             .path = path,
             .parameters = {{"permission", kFolderMode}}})
      .status();
}

// From that byte to the end of the file.
absl::Status CopyBytes(const io::RandomAccessFile& from, uint64_t offset, io::WritableFile& to) {
  std::string piece(kPieceBytes, '\0');
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const size_t size, from.Read(offset, piece.size(), piece.data()));
    if (size == 0) return to.Close();
    MUSTER_RETURN_IF_ERROR(to.Append(std::string_view(piece).substr(0, size)));
    offset += size;
  }
}

}  // namespace

Json ToJson(const LocalResource& resource) {
  return {{"name", resource.name},     {"url", resource.url},
          {"size", resource.size},     {"timestamp", resource.modified_millis},
          {"type", GetType(resource)}, {"visibility", GetVisibility(resource)}};
}

Json ToSubmissionEntry(const LocalResource& resource) {
  return {{"key", resource.name},
          {"value",
           {{"resource", resource.url},
            {"type", GetType(resource)},
            {"visibility", GetVisibility(resource)},
            {"size", resource.size},
            {"timestamp", resource.modified_millis}}}};
}

std::string GetStagingUrl(const YarnConfig& config, const std::string& name) {
  return StrCat(config.file_system, GetPath(config, name));
}

absl::StatusOr<std::unique_ptr<Staging>> Staging::Make(io::FileSystem& files,
                                                       const YarnConfig& config,
                                                       const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const auto hadoop, files::HadoopConfig::Read(files, config.folder));
  MUSTER_ASSIGN_OR_RETURN(auto nodes,
                          hadoop.OfHdfs(std::string(io::PathAuthority(config.file_system))));
  const std::string service = files::GetTokenService(nodes);
  MUSTER_ASSIGN_OR_RETURN(auto calls, files::WebHdfs::New(std::move(nodes), {.user = config.user}));
  const std::string path = GetPath(config, name);
  const absl::Status made = MakePrivateFolder(*calls, path);
  if (!made.ok()) {
    return Annotate(made, StrCat("cannot make the staging folder ", config.file_system, path));
  }
  return std::unique_ptr<Staging>(
      new Staging(files, std::move(calls), service, path, GetStagingUrl(config, name)));
}

absl::StatusOr<files::HadoopToken> Staging::GetToken(const std::string& renewer) {
  return calls_->GetToken(renewer, service_);
}

absl::Status Staging::MakeFolder(const std::string& name) {
  return MakePrivateFolder(*calls_, StrCat(path_, "/", name));
}

absl::StatusOr<LocalResource> Staging::Copy(const std::string& from, const std::string& name,
                                            const std::string& as) {
  MUSTER_ASSIGN_OR_RETURN(const auto source, files_.OpenForRead(from));
  std::string piece(kPieceBytes, '\0');
  MUSTER_ASSIGN_OR_RETURN(const size_t size, source->Read(0, piece.size(), piece.data()));
  piece.resize(size);
  if (size < kPieceBytes) return Write(piece, name, as);
  MUSTER_ASSIGN_OR_RETURN(const auto target, files_.OpenForWrite(StrCat(url_, "/", name)));
  MUSTER_RETURN_IF_ERROR(target->Append(piece));
  MUSTER_RETURN_IF_ERROR(CopyBytes(*source, size, *target));
  return Finish(name, as);
}

absl::StatusOr<LocalResource> Staging::Write(const std::string& bytes, const std::string& name,
                                             const std::string& as) {
  const std::string path = StrCat(path_, "/", name);
  MUSTER_RETURN_IF_ERROR(calls_->Create(path, bytes, kFileMode));
  MUSTER_ASSIGN_OR_RETURN(const files::HdfsFileStatus status, calls_->GetStatus(path));
  if (status.info.size == bytes.size()) return Describe(status.info, StrCat(url_, "/", name), as);
  return absl::DataLossError(StrCat("write ", url_, "/", name, ": ", status.info.size, " of ",
                                    bytes.size(), " bytes are there"));
}

std::string Staging::GetRoot() const { return url_.substr(0, url_.size() - path_.size()); }

absl::Status Staging::SetPrivate(const std::string& path) {
  return calls_
      ->Call({.method = "PUT",
              .op = "SETPERMISSION",
              .path = path,
              .parameters = {{"permission", kFileMode}}})
      .status();
}

absl::StatusOr<LocalResource> Staging::Finish(const std::string& name, const std::string& as) {
  const std::string url = StrCat(url_, "/", name);
  MUSTER_RETURN_IF_ERROR(SetPrivate(StrCat(path_, "/", name)));
  MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, files_.Stat(url));
  return Describe(info, url, as);
}

// A file of that name is never replaced: a node that finds another time than it was told refuses
// it.
absl::Status Staging::WriteShared(const std::string& bytes, const std::string& path) {
  const std::string temporary =
      StrCat(io::Dirname(path), "/.", io::Basename(path), ".", io::Basename(path_));
  const std::string url = StrCat(GetRoot(), temporary);
  MUSTER_RETURN_IF_ERROR(MakePrivateFolder(*calls_, io::Dirname(path)));
  MUSTER_ASSIGN_OR_RETURN(const auto target, files_.OpenForWrite(url));
  MUSTER_RETURN_IF_ERROR(target->Append(bytes));
  MUSTER_RETURN_IF_ERROR(target->Close());
  MUSTER_RETURN_IF_ERROR(SetPrivate(temporary));
  const absl::Status renamed = calls_
                                   ->Call({.method = "PUT",
                                           .op = "RENAME",
                                           .path = temporary,
                                           .parameters = {{"destination", path}}})
                                   .status();
  (void)files_.Remove(url);  // it is still there if another submission was faster
  return renamed;
}

absl::StatusOr<LocalResource> Staging::Share(const std::string& bytes, const std::string& as) {
  const std::string path =
      StrCat(io::Dirname(path_), "/", kShared, "/", net::GetSha256(bytes), ".tar");
  const std::string url = StrCat(GetRoot(), path);
  auto info = files_.Stat(url);
  if (!info.ok() || info->size != bytes.size()) {
    MUSTER_RETURN_IF_ERROR(WriteShared(bytes, path));
    info = files_.Stat(url);
  }
  MUSTER_RETURN_IF_ERROR(info.status());
  LocalResource shared = Describe(*info, url, as);
  shared.is_archive = shared.is_shared = true;
  return shared;
}

}  // namespace muster::launch::yarn
