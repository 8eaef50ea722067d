// An open file of HDFS.
#pragma once

#include <memory>
#include <string>

#include "muster/files/hdfs/web_hdfs.h"
#include "muster/io/file_system.h"

namespace muster::files {

// `path` is what the caller opened, for messages. `calls` must outlive the file. `status` is the
// file's when it was opened; what was appended since is read, too.
std::unique_ptr<io::RandomAccessFile> NewHdfsReader(WebHdfs& calls, std::string path,
                                                    const HdfsFileStatus& status);

// `name` is the path without its scheme. A file is made, or replaced, when the first bytes are
// sent.
std::unique_ptr<io::WritableFile> NewHdfsWriter(WebHdfs& calls, std::string path, std::string name);
// Continues a file of `length` bytes.
std::unique_ptr<io::WritableFile> NewHdfsAppender(WebHdfs& calls, std::string path,
                                                  std::string name, uint64_t length);

}  // namespace muster::files
