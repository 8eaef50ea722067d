// The files of one HDFS, read and written by WebHDFS. It passes io/file_system_conformance.h.
//
// A file that is read is named by its inode, so that bytes of two files are never mixed: when it
// was replaced or removed, Read is NOT_FOUND. Names are durable when a call returns. Writing an
// existing file replaces it by another file. Bytes are sent when kWriteBytes have gathered, and at
// Flush; Sync does not wait for disks of the DataNodes, since WebHDFS cannot ask for that: the
// bytes are then in the memory of as many DataNodes as the file's replication says.
#pragma once

#include <memory>

#include "muster/files/hdfs/web_hdfs.h"
#include "muster/io/file_system.h"

namespace muster::files {

std::unique_ptr<io::FileSystem> NewHdfsFileSystem(std::unique_ptr<WebHdfs> calls);

}  // namespace muster::files
