#include "muster/files/tensorflow/plugin.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace muster::files {
namespace {

// TensorFlow's calls carry no pointer of the plugin's own before a file system is made.
FileClient* plugin_client = nullptr;
TF_SetStatusFunction* set_status_function = nullptr;

void Tell(const Outcome& outcome, TF_Status* told) {
  set_status_function(told, static_cast<int>(outcome.code), outcome.message.c_str());
}

std::string GetPath(const char* uri) {
  constexpr std::string_view kDefault = "hdfs://default/";
  std::string path = uri;
  if (path.rfind(kDefault, 0) == 0) path.replace(0, kDefault.size(), "hdfs:///");
  return path;
}

char* Copy(const std::string& text) {
  char* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

Outcome Refuse(const std::string& path, const char* why) {
  return {Outcome::kFailedPrecondition, path + ": " + why};
}

const ClientReader& GetReader(const TF_RandomAccessFile* file) {
  return *static_cast<const ClientReader*>(file->plugin_file);
}

ClientWriter& GetWriter(const TF_WritableFile* file) {
  return *static_cast<ClientWriter*>(file->plugin_file);
}

void NewRandomAccessFile(const TF_Filesystem* /*system*/, const char* path,
                         TF_RandomAccessFile* file, TF_Status* told) {
  std::unique_ptr<ClientReader> reader;
  Tell(ClientReader::Open(*plugin_client, GetPath(path), &reader), told);
  file->plugin_file = reader.release();
}

void CleanUpReader(TF_RandomAccessFile* file) { delete &GetReader(file); }

int64_t Read(const TF_RandomAccessFile* file, uint64_t offset, size_t size, char* buffer,
             TF_Status* told) {
  const ClientReader& reader = GetReader(file);
  size_t count = 0;
  Outcome outcome = reader.Read(offset, size, buffer, &count);
  const bool is_read = outcome.ok();
  if (is_read && count < size) {
    outcome = {Outcome::kOutOfRange,
               reader.path() + ": it ends at byte " + std::to_string(offset + count)};
  }
  Tell(outcome, told);
  return is_read ? static_cast<int64_t>(count) : -1;
}

void OpenWriter(const char* path, bool append, TF_WritableFile* file, TF_Status* told) {
  std::unique_ptr<ClientWriter> writer;
  Tell(ClientWriter::Open(*plugin_client, GetPath(path), append, &writer), told);
  file->plugin_file = writer.release();
}

void NewWritableFile(const TF_Filesystem* /*system*/, const char* path, TF_WritableFile* file,
                     TF_Status* told) {
  OpenWriter(path, /*append=*/false, file, told);
}

void NewAppendableFile(const TF_Filesystem* /*system*/, const char* path, TF_WritableFile* file,
                       TF_Status* told) {
  OpenWriter(path, /*append=*/true, file, told);
}

void CleanUpWriter(TF_WritableFile* file) { delete &GetWriter(file); }

void Append(const TF_WritableFile* file, const char* bytes, size_t size, TF_Status* told) {
  Tell(GetWriter(file).Append({bytes, size}), told);
}

int64_t GetPosition(const TF_WritableFile* file, TF_Status* told) {
  Tell({}, told);
  return GetWriter(file).position();
}

void Flush(const TF_WritableFile* file, TF_Status* told) { Tell(GetWriter(file).Flush(), told); }

void Sync(const TF_WritableFile* file, TF_Status* told) { Tell(GetWriter(file).Sync(), told); }

void Close(const TF_WritableFile* file, TF_Status* told) { Tell(GetWriter(file).Close(), told); }

Outcome MakeFolder(const std::string& path) {
  FileClient::Info info;
  Outcome outcome = plugin_client->Stat(path, &info);
  if (outcome.ok()) return {Outcome::kAlreadyExists, path + " exists"};
  if (outcome.code != Outcome::kNotFound) return outcome;
  const size_t end = path.find_last_not_of('/');
  const std::string parent = path.substr(0, path.rfind('/', end));
  outcome = plugin_client->Stat(parent, &info);
  if (!outcome.ok()) return outcome;
  if (!info.is_folder) return Refuse(parent, "this is a file");
  return plugin_client->MakeFolders(path);
}

void CreateDir(const TF_Filesystem* /*system*/, const char* path, TF_Status* told) {
  Tell(MakeFolder(GetPath(path)), told);
}

void RecursivelyCreateDir(const TF_Filesystem* /*system*/, const char* path, TF_Status* told) {
  Tell(plugin_client->MakeFolders(GetPath(path)), told);
}

void DeleteFile(const TF_Filesystem* /*system*/, const char* path, TF_Status* told) {
  Tell(plugin_client->RemoveFile(GetPath(path)), told);
}

void DeleteDir(const TF_Filesystem* /*system*/, const char* uri, TF_Status* told) {
  const std::string path = GetPath(uri);
  FileClient::Info info;
  Outcome outcome = plugin_client->Stat(path, &info);
  if (outcome.ok() && !info.is_folder) outcome = Refuse(path, "this is a file, not a folder");
  if (outcome.ok()) outcome = plugin_client->Remove(path, /*recursive=*/false);
  Tell(outcome, told);
}

void DeleteRecursively(const TF_Filesystem* /*system*/, const char* path, uint64_t* undeleted_files,
                       uint64_t* undeleted_dirs, TF_Status* told) {
  const Outcome outcome = plugin_client->Remove(GetPath(path), /*recursive=*/true);
  *undeleted_files = 0;
  *undeleted_dirs = outcome.ok() ? 0 : 1;
  Tell(outcome, told);
}

void RenameFile(const TF_Filesystem* /*system*/, const char* from, const char* to,
                TF_Status* told) {
  Tell(plugin_client->Rename(GetPath(from), GetPath(to)), told);
}

void PathExists(const TF_Filesystem* /*system*/, const char* path, TF_Status* told) {
  FileClient::Info info;
  Tell(plugin_client->Stat(GetPath(path), &info), told);
}

void Stat(const TF_Filesystem* /*system*/, const char* path, TF_FileStatistics* stats,
          TF_Status* told) {
  FileClient::Info info;
  const Outcome outcome = plugin_client->Stat(GetPath(path), &info);
  if (outcome.ok()) {
    *stats = {.length = static_cast<int64_t>(info.size),
              .mtime_nsec = info.modified_ns,
              .is_directory = info.is_folder};
  }
  Tell(outcome, told);
}

// TensorFlow takes the status as the answer.
bool IsDirectory(const TF_Filesystem* /*system*/, const char* uri, TF_Status* told) {
  const std::string path = GetPath(uri);
  FileClient::Info info;
  Outcome outcome = plugin_client->Stat(path, &info);
  if (outcome.ok() && !info.is_folder) outcome = Refuse(path, "this is a file, not a folder");
  Tell(outcome, told);
  return outcome.ok();
}

int64_t GetFileSize(const TF_Filesystem* /*system*/, const char* uri, TF_Status* told) {
  const std::string path = GetPath(uri);
  FileClient::Info info;
  Outcome outcome = plugin_client->Stat(path, &info);
  if (outcome.ok() && info.is_folder) outcome = Refuse(path, "this is a folder");
  Tell(outcome, told);
  return outcome.ok() ? static_cast<int64_t>(info.size) : -1;
}

// What TensorFlow does where this is missing would lose the scheme.
char* TranslateName(const TF_Filesystem* /*system*/, const char* uri) { return Copy(uri); }

int GetChildren(const TF_Filesystem* /*system*/, const char* path, char*** entries,
                TF_Status* told) {
  std::vector<std::string> names;
  const Outcome outcome = plugin_client->List(GetPath(path), &names);
  Tell(outcome, told);
  if (!outcome.ok()) return -1;
  *entries = static_cast<char**>(std::calloc(names.size() + 1, sizeof(char*)));
  for (size_t i = 0; i < names.size(); ++i) (*entries)[i] = Copy(names[i]);
  return static_cast<int>(names.size());
}

void Init(TF_Filesystem* system, TF_Status* told) {
  system->plugin_filesystem = plugin_client;
  Tell({}, told);
}

// TensorFlow does not call it: file systems stay to the end of the process.
void CleanUp(TF_Filesystem* /*system*/) {}

template <typename Table>
Table* NewTable(const Table& table) {
  return new (std::malloc(sizeof(Table))) Table(table);
}

TF_FilesystemPluginOps Serve(const std::string& scheme) {
  TF_FilesystemPluginOps ops;  // version 0 of every table
  ops.scheme = Copy(scheme);
  ops.filesystem_ops_size = sizeof(TF_FilesystemOps);
  ops.filesystem_ops = NewTable<TF_FilesystemOps>({.init = Init,
                                                   .cleanup = CleanUp,
                                                   .new_random_access_file = NewRandomAccessFile,
                                                   .new_writable_file = NewWritableFile,
                                                   .new_appendable_file = NewAppendableFile,
                                                   .create_dir = CreateDir,
                                                   .recursively_create_dir = RecursivelyCreateDir,
                                                   .delete_file = DeleteFile,
                                                   .delete_dir = DeleteDir,
                                                   .delete_recursively = DeleteRecursively,
                                                   .rename_file = RenameFile,
                                                   .path_exists = PathExists,
                                                   .stat = Stat,
                                                   .is_directory = IsDirectory,
                                                   .get_file_size = GetFileSize,
                                                   .translate_name = TranslateName,
                                                   .get_children = GetChildren});
  ops.random_access_file_ops_size = sizeof(TF_RandomAccessFileOps);
  ops.random_access_file_ops =
      NewTable<TF_RandomAccessFileOps>({.cleanup = CleanUpReader, .read = Read});
  ops.writable_file_ops_size = sizeof(TF_WritableFileOps);
  ops.writable_file_ops = NewTable<TF_WritableFileOps>({.cleanup = CleanUpWriter,
                                                        .append = Append,
                                                        .tell = GetPosition,
                                                        .flush = Flush,
                                                        .sync = Sync,
                                                        .close = Close});
  return ops;
}

}  // namespace

void FillPlugin(FileClient& client, TF_SetStatusFunction* set_status,
                const std::vector<std::string>& schemes, TF_FilesystemPluginInfo* info) {
  plugin_client = &client;
  set_status_function = set_status;
  *info = {.num_schemes = schemes.size(),
           .ops = static_cast<TF_FilesystemPluginOps*>(
               std::calloc(schemes.size() + 1, sizeof(TF_FilesystemPluginOps))),
           .plugin_memory_allocate = std::malloc,
           .plugin_memory_free = std::free};
  for (size_t i = 0; i < schemes.size(); ++i) {
    new (&info->ops[i]) TF_FilesystemPluginOps(Serve(schemes[i]));
  }
}

}  // namespace muster::files
