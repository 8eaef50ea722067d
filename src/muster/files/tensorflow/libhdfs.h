// The functions of Hadoop's libhdfs (its hdfs.h) that TensorFlow 1 and 2 up to 2.5 call for paths
// hdfs://, done by a FileClient: these releases know the scheme themselves, and load a libhdfs.so,
// which would start a Java machine. The library that they find by that name depends on the one that
// exports these functions.
//
// What fails returns -1 or null and sets errno, and prints why to stderr unless a path merely does
// not exist. Of an hdfsFileInfo, TensorFlow reads the kind, the name, the time and the size; what
// hdfsListDirectory returns has the names alone.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>

namespace muster::files {

// The names are Hadoop's.
// NOLINTBEGIN(readability-identifier-naming)
#pragma GCC visibility push(default)
extern "C" {

struct hdfsBuilder;
struct hdfs_internal;
struct hdfsFile_internal;
using hdfsFS = hdfs_internal*;
using hdfsFile = hdfsFile_internal*;

enum tObjectKind { kObjectKindFile = 'F', kObjectKindDirectory = 'D' };
struct hdfsFileInfo {
  tObjectKind mKind;
  char* mName;
  time_t mLastMod;
  int64_t mSize;
  short mReplication;
  int64_t mBlockSize;
  char* mOwner;
  char* mGroup;
  short mPermissions;
  time_t mLastAccess;
};

hdfsBuilder* hdfsNewBuilder();
// "host:port", a nameservice, "default", or null for files of this machine.
void hdfsBuilderSetNameNode(hdfsBuilder* builder, const char* name_node);
void hdfsBuilderSetKerbTicketCachePath(hdfsBuilder* builder, const char* path);
hdfsFS hdfsBuilderConnect(hdfsBuilder* builder);
int hdfsConfGetStr(const char* key, char** value);
hdfsFile hdfsOpenFile(hdfsFS system, const char* path, int flags, int buffer_size,
                      short replication, int32_t block_size);
int hdfsCloseFile(hdfsFS system, hdfsFile file);
int32_t hdfsPread(hdfsFS system, hdfsFile file, int64_t position, void* buffer, int32_t length);
int32_t hdfsWrite(hdfsFS system, hdfsFile file, const void* buffer, int32_t length);
int64_t hdfsTell(hdfsFS system, hdfsFile file);
int hdfsHFlush(hdfsFS system, hdfsFile file);
int hdfsHSync(hdfsFS system, hdfsFile file);
int hdfsExists(hdfsFS system, const char* path);
hdfsFileInfo* hdfsListDirectory(hdfsFS system, const char* path, int* count);
hdfsFileInfo* hdfsGetPathInfo(hdfsFS system, const char* path);
void hdfsFreeFileInfo(hdfsFileInfo* infos, int count);
int hdfsDelete(hdfsFS system, const char* path, int recursive);
int hdfsCreateDirectory(hdfsFS system, const char* path);
int hdfsRename(hdfsFS system, const char* from, const char* to);

}  // extern "C"
#pragma GCC visibility pop
// NOLINTEND(readability-identifier-naming)

}  // namespace muster::files
