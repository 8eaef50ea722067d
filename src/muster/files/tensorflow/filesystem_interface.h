// The binary interface between TensorFlow and a file system plugin, in declarations of our own: the
// names, the order and the meaning are those of TensorFlow's
// tensorflow/c/experimental/filesystem/filesystem_interface.h, tf_file_statistics.h and
// tf_status.h. Version 0 of each table is that of TensorFlow 2.4 to 2.21, whose headers in the
// Python packages were compared: since 2.6 the table of the file system has more entries at its
// end, which are left out here. TensorFlow copies as many bytes of a table as the plugin says that
// it has, and takes null for what is missing; a null entry means that TensorFlow has a default for
// it, or that the operation is not supported.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::files {

// The names are TensorFlow's.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

struct TF_Status;
// The codes are those of absl::StatusCode.
using TF_SetStatusFunction = void(TF_Status* status, int code, const char* message);

struct TF_FileStatistics {
  int64_t length;
  int64_t mtime_nsec;
  bool is_directory;
};

struct TF_RandomAccessFile {
  void* plugin_file;
};
struct TF_WritableFile {
  void* plugin_file;
};
struct TF_Filesystem {
  void* plugin_filesystem;
};
struct TF_ReadOnlyMemoryRegion;
struct TF_TransactionToken;

struct TF_RandomAccessFileOps {
  void (*cleanup)(TF_RandomAccessFile* file) = nullptr;
  int64_t (*read)(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                  TF_Status* status) = nullptr;
};

struct TF_WritableFileOps {
  void (*cleanup)(TF_WritableFile* file) = nullptr;
  void (*append)(const TF_WritableFile* file, const char* buffer, size_t n,
                 TF_Status* status) = nullptr;
  int64_t (*tell)(const TF_WritableFile* file, TF_Status* status) = nullptr;
  void (*flush)(const TF_WritableFile* file, TF_Status* status) = nullptr;
  void (*sync)(const TF_WritableFile* file, TF_Status* status) = nullptr;
  void (*close)(const TF_WritableFile* file, TF_Status* status) = nullptr;
};

struct TF_FilesystemOps {
  void (*init)(TF_Filesystem* filesystem, TF_Status* status) = nullptr;
  void (*cleanup)(TF_Filesystem* filesystem) = nullptr;
  void (*new_random_access_file)(const TF_Filesystem* filesystem, const char* path,
                                 TF_RandomAccessFile* file, TF_Status* status) = nullptr;
  void (*new_writable_file)(const TF_Filesystem* filesystem, const char* path,
                            TF_WritableFile* file, TF_Status* status) = nullptr;
  void (*new_appendable_file)(const TF_Filesystem* filesystem, const char* path,
                              TF_WritableFile* file, TF_Status* status) = nullptr;
  void (*new_read_only_memory_region_from_file)(const TF_Filesystem* filesystem, const char* path,
                                                TF_ReadOnlyMemoryRegion* region,
                                                TF_Status* status) = nullptr;
  void (*create_dir)(const TF_Filesystem* filesystem, const char* path,
                     TF_Status* status) = nullptr;
  void (*recursively_create_dir)(const TF_Filesystem* filesystem, const char* path,
                                 TF_Status* status) = nullptr;
  void (*delete_file)(const TF_Filesystem* filesystem, const char* path,
                      TF_Status* status) = nullptr;
  void (*delete_dir)(const TF_Filesystem* filesystem, const char* path,
                     TF_Status* status) = nullptr;
  void (*delete_recursively)(const TF_Filesystem* filesystem, const char* path,
                             uint64_t* undeleted_files, uint64_t* undeleted_dirs,
                             TF_Status* status) = nullptr;
  void (*rename_file)(const TF_Filesystem* filesystem, const char* src, const char* dst,
                      TF_Status* status) = nullptr;
  void (*copy_file)(const TF_Filesystem* filesystem, const char* src, const char* dst,
                    TF_Status* status) = nullptr;
  void (*path_exists)(const TF_Filesystem* filesystem, const char* path,
                      TF_Status* status) = nullptr;
  bool (*paths_exist)(const TF_Filesystem* filesystem, char** paths, int num_files,
                      TF_Status** statuses) = nullptr;
  void (*stat)(const TF_Filesystem* filesystem, const char* path, TF_FileStatistics* stats,
               TF_Status* status) = nullptr;
  bool (*is_directory)(const TF_Filesystem* filesystem, const char* path,
                       TF_Status* status) = nullptr;
  int64_t (*get_file_size)(const TF_Filesystem* filesystem, const char* path,
                           TF_Status* status) = nullptr;
  char* (*translate_name)(const TF_Filesystem* filesystem, const char* uri) = nullptr;
  int (*get_children)(const TF_Filesystem* filesystem, const char* path, char*** entries,
                      TF_Status* status) = nullptr;
  int (*get_matching_paths)(const TF_Filesystem* filesystem, const char* glob, char*** entries,
                            TF_Status* status) = nullptr;
};

// One scheme that the plugin serves.
struct TF_FilesystemPluginOps {
  char* scheme = nullptr;
  int filesystem_ops_abi = 0;
  int filesystem_ops_api = 0;
  size_t filesystem_ops_size = 0;
  TF_FilesystemOps* filesystem_ops = nullptr;
  int random_access_file_ops_abi = 0;
  int random_access_file_ops_api = 0;
  size_t random_access_file_ops_size = 0;
  TF_RandomAccessFileOps* random_access_file_ops = nullptr;
  int writable_file_ops_abi = 0;
  int writable_file_ops_api = 0;
  size_t writable_file_ops_size = 0;
  TF_WritableFileOps* writable_file_ops = nullptr;
  int read_only_memory_region_ops_abi = 0;
  int read_only_memory_region_ops_api = 0;
  size_t read_only_memory_region_ops_size = 0;
  void* read_only_memory_region_ops = nullptr;
};

// TensorFlow frees `ops`, and in it the schemes and the tables, by plugin_memory_free.
struct TF_FilesystemPluginInfo {
  size_t num_schemes = 0;
  TF_FilesystemPluginOps* ops = nullptr;
  void* (*plugin_memory_allocate)(size_t size) = nullptr;
  void (*plugin_memory_free)(void* memory) = nullptr;
};

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

}  // namespace muster::files
