#include "muster/files/tensorflow/libhdfs.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/files/tensorflow/start_service.h"

namespace muster::files {

// The names are Hadoop's.
// NOLINTBEGIN(readability-identifier-naming)
struct hdfsBuilder {
  std::string root = "hdfs://";
};
struct hdfs_internal {
  std::string root;  // what stands before an absolute path: "hdfs://namenode:8020"
};
struct hdfsFile_internal {
  std::unique_ptr<ClientReader> reading = nullptr;
  std::unique_ptr<ClientWriter> writing = nullptr;
};
// NOLINTEND(readability-identifier-naming)

namespace {

constexpr int64_t kNanoseconds = 1'000'000'000;

int GetErrno(const Outcome& outcome) {
  switch (outcome.code) {
    case Outcome::kNotFound:
      return ENOENT;
    case Outcome::kPermissionDenied:
    case Outcome::kUnauthenticated:
      return EACCES;
    case Outcome::kResourceExhausted:
      return ENOSPC;
    case Outcome::kInvalidArgument:
      return EINVAL;
    case Outcome::kAlreadyExists:
      return EEXIST;
    case Outcome::kFailedPrecondition:
      return ENOTEMPTY;
    case Outcome::kUnavailable:
      return ECONNREFUSED;
    default:
      return EIO;
  }
}

// TensorFlow gets the number alone, so the words are printed.
bool Succeeds(const Outcome& outcome) {
  if (!outcome.ok() && outcome.code != Outcome::kNotFound) {
    std::fprintf(stderr, "muster: %s\n", outcome.message.c_str());
  }
  errno = outcome.ok() ? 0 : GetErrno(outcome);
  return outcome.ok();
}

int GetResult(const Outcome& outcome) { return Succeeds(outcome) ? 0 : -1; }

hdfsFileInfo* NewInfos(size_t count) {
  return static_cast<hdfsFileInfo*>(std::calloc(count, sizeof(hdfsFileInfo)));
}

}  // namespace

hdfsBuilder* hdfsNewBuilder() { return new hdfsBuilder; }

void hdfsBuilderSetNameNode(hdfsBuilder* builder, const char* name_node) {
  const std::string name = name_node == nullptr ? "" : name_node;
  if (name_node == nullptr || name.find("://") != std::string::npos) {
    builder->root = name;
  } else {
    builder->root = "hdfs://" + (name == "default" ? "" : name);
  }
}

void hdfsBuilderSetKerbTicketCachePath(hdfsBuilder* /*builder*/, const char* path) {
  setenv("KRB5CCNAME", path, /*replace=*/0);
}

// Makes no connection. What it returns lives to the end of the process: TensorFlow keeps it.
hdfsFS hdfsBuilderConnect(hdfsBuilder* builder) {
  const std::unique_ptr<hdfsBuilder> taken(builder);
  return new hdfs_internal{.root = taken->root};
}

// No value is known: TensorFlow asks for the one of viewfs:// only, which is not served.
int hdfsConfGetStr(const char* /*key*/, char** value) {
  *value = nullptr;
  return 0;
}

hdfsFile hdfsOpenFile(hdfsFS system, const char* path, int flags, int /*buffer_size*/,
                      short /*replication*/, int32_t /*block_size*/) {
  auto file = std::make_unique<hdfsFile_internal>();
  FileClient& client = ClientOfProcess();
  const Outcome outcome = (flags & O_ACCMODE) == O_RDONLY
                              ? ClientReader::Open(client, system->root + path, &file->reading)
                              : ClientWriter::Open(client, system->root + path,
                                                   (flags & O_APPEND) != 0, &file->writing);
  return Succeeds(outcome) ? file.release() : nullptr;
}

int hdfsCloseFile(hdfsFS /*system*/, hdfsFile file) {
  const std::unique_ptr<hdfsFile_internal> taken(file);
  return taken->writing == nullptr ? 0 : GetResult(taken->writing->Close());
}

int32_t hdfsPread(hdfsFS /*system*/, hdfsFile file, int64_t position, void* buffer,
                  int32_t length) {
  size_t count = 0;
  const Outcome outcome =
      file->reading->Read(static_cast<uint64_t>(position), static_cast<size_t>(length),
                          static_cast<char*>(buffer), &count);
  return Succeeds(outcome) ? static_cast<int32_t>(count) : -1;
}

int32_t hdfsWrite(hdfsFS /*system*/, hdfsFile file, const void* buffer, int32_t length) {
  const Outcome outcome =
      file->writing->Append({static_cast<const char*>(buffer), static_cast<size_t>(length)});
  return Succeeds(outcome) ? length : -1;
}

int64_t hdfsTell(hdfsFS /*system*/, hdfsFile file) { return file->writing->position(); }

int hdfsHFlush(hdfsFS /*system*/, hdfsFile file) { return GetResult(file->writing->Flush()); }

int hdfsHSync(hdfsFS /*system*/, hdfsFile file) { return GetResult(file->writing->Sync()); }

int hdfsExists(hdfsFS system, const char* path) {
  FileClient::Info info;
  return GetResult(ClientOfProcess().Stat(system->root + path, &info));
}

hdfsFileInfo* hdfsListDirectory(hdfsFS system, const char* path, int* count) {
  std::vector<std::string> names;
  const Outcome outcome = ClientOfProcess().List(system->root + path, &names);
  *count = 0;
  if (!Succeeds(outcome) || names.empty()) return nullptr;
  hdfsFileInfo* const infos = NewInfos(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    infos[i].mKind = kObjectKindFile;
    infos[i].mName = strdup(names[i].c_str());
  }
  *count = static_cast<int>(names.size());
  return infos;
}

hdfsFileInfo* hdfsGetPathInfo(hdfsFS system, const char* path) {
  FileClient::Info info;
  if (!Succeeds(ClientOfProcess().Stat(system->root + path, &info))) return nullptr;
  hdfsFileInfo* const told = NewInfos(1);
  told->mKind = info.is_folder ? kObjectKindDirectory : kObjectKindFile;
  told->mName = strdup(path);
  told->mLastMod = static_cast<time_t>(info.modified_ns / kNanoseconds);
  told->mSize = static_cast<int64_t>(info.size);
  return told;
}

void hdfsFreeFileInfo(hdfsFileInfo* infos, int count) {
  for (int i = 0; i < count; ++i) std::free(infos[i].mName);
  std::free(infos);
}

int hdfsDelete(hdfsFS system, const char* path, int recursive) {
  return GetResult(ClientOfProcess().Remove(system->root + path, recursive != 0));
}

int hdfsCreateDirectory(hdfsFS system, const char* path) {
  return GetResult(ClientOfProcess().MakeFolders(system->root + path));
}

int hdfsRename(hdfsFS system, const char* from, const char* to) {
  return GetResult(ClientOfProcess().Rename(system->root + from, system->root + to));
}

}  // namespace muster::files
