// What Hadoop's configuration files say: core-site.xml, hdfs-site.xml and yarn-site.xml of the
// folder HADOOP_CONF_DIR, or HADOOP_HOME/etc/hadoop. The properties are those of Hadoop's
// core-default.xml, hdfs-default.xml and yarn-default.xml; this class knows what they mean for the
// NameNodes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/io/file_system.h"

namespace muster::files {

// One HDFS, as the host and port or the nameservice of a path say.
struct NameNodes {
  // The one form of all authorities that mean this HDFS: "namenode:8020", or a nameservice's name.
  std::string authority = {};
  // Where each of its NameNodes answers to WebHDFS: "http://namenode:9870". At least one.
  std::vector<std::string> urls = {};
};

// Immutable: any thread.
class HadoopConfig {
 public:
  // Reads the files of `folder`, each of which may be missing; "" for no configuration.
  // INVALID_ARGUMENT, which names the file, for one that is not Hadoop's XML.
  static absl::StatusOr<HadoopConfig> Read(io::FileSystem& files, const std::string& folder);

  // The NameNodes of paths "hdfs://AUTHORITY/...": a nameservice, HOST:PORT of the NameNode's RPC
  // server (port 8020 if it is left out), or "" for fs.defaultFS. INVALID_ARGUMENT if there is no
  // such default, or a nameservice has no addresses.
  absl::StatusOr<NameNodes> OfHdfs(const std::string& authority) const;
  // Those of "webhdfs://AUTHORITY/..." or, if `tls`, of "swebhdfs://AUTHORITY/...": a nameservice,
  // HOST:PORT of the HTTP server (port 9870, by TLS 9871), or "" for fs.defaultFS, whose scheme may
  // be this one or hdfs.
  absl::StatusOr<NameNodes> OfWebHdfs(const std::string& authority, bool tls) const;

  // A property's value with ${other.property} replaced, or "".
  std::string Get(const std::string& name) const;

 private:
  absl::Status ReadFile(io::FileSystem& files, const std::string& path);
  // fs.defaultFS, which is of this scheme or of hdfs. INVALID_ARGUMENT if it is not, or not set.
  absl::StatusOr<std::string> GetDefault(std::string_view scheme) const;
  NameNodes OfRpcAddress(const std::string& authority, bool tls) const;
  absl::StatusOr<NameNodes> OfNameService(const std::string& name, bool tls) const;
  bool IsNameService(std::string_view name) const;
  bool WantsTls() const;

  std::string folder_;
  std::map<std::string, std::string> values_;
};

// HADOOP_CONF_DIR, or HADOOP_HOME/etc/hadoop, or "".
std::string HadoopConfigFolder();

// The names of the files that Read() reads.
const std::vector<std::string>& HadoopConfigFiles();

// As whom this process calls Hadoop without Kerberos: HADOOP_USER_NAME, or its own user.
std::string HadoopUser();
// For whom that user, which HDFS must allow to, calls: HADOOP_PROXY_USER, or "" for itself.
std::string HadoopProxyUser();

}  // namespace muster::files
