// HadoopEnvironment: what the environment of this process says about HDFS: the configuration
// (HADOOP_CONF_DIR), the user (HADOOP_USER_NAME, HADOOP_PROXY_USER) and delegation tokens
// (HADOOP_TOKEN_FILE_LOCATION).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "muster/base/status.h"
#include "muster/files/hdfs/hadoop_config.h"
#include "muster/files/hdfs/web_hdfs.h"
#include "muster/io/file_system.h"

namespace muster::files {

// Any thread.
class HadoopEnvironment {
 public:
  // `local` has the files of this machine. `note` is told what a call waits for
  // (WebHdfsOptions::note).
  HadoopEnvironment(std::unique_ptr<io::FileSystem> local,
                    std::function<void(const std::string& text)> note)
      : local_(std::move(local)), note_(std::move(note)) {}

  // The NameNodes of paths SCHEME://AUTHORITY/..., by the configuration, which is read at the first
  // call. INVALID_ARGUMENT as HadoopConfig says, and for another scheme than hdfs, webhdfs and
  // swebhdfs.
  absl::StatusOr<NameNodes> Resolve(std::string_view scheme, const std::string& authority);

  // Makes a client, which calls as the user or by the token for these NameNodes; no connection.
  absl::StatusOr<std::unique_ptr<WebHdfs>> Open(NameNodes nodes) const;

 private:
  // The text of the token for these NameNodes; "" if there is none.
  absl::StatusOr<std::string> FindToken(const NameNodes& nodes) const;

  const std::unique_ptr<io::FileSystem> local_;
  const std::function<void(const std::string& text)> note_;
  std::once_flag once_;
  absl::StatusOr<HadoopConfig> config_ = absl::UnknownError("not read");
};

// The name of an HDFS in its tokens (HadoopToken::service): "ha-hdfs:NAMESERVICE", or the address
// and port of its NameNode in numbers, as Hadoop writes them.
std::string GetTokenService(const NameNodes& nodes);

}  // namespace muster::files
