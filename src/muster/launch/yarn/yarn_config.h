// What a submission needs of Hadoop's configuration: where the ResourceManagers are, which HDFS is
// the default one, and what an ApplicationMaster's class path is.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/files/hdfs/hadoop_config.h"
#include "muster/io/file_system.h"

namespace muster::launch::yarn {

struct YarnConfig {
  std::string folder = {};                 // of the configuration
  std::vector<std::string> managers = {};  // "http://rm:8088" of each ResourceManager
  std::string proxy = {};                  // "http://host:9046" of a web proxy; "": the managers
  std::string file_system = {};            // "hdfs://namenode:8020", without a path
  std::string class_path = {};             // as Hadoop has it, with ":"; the nodes expand it
  std::string user = {};
  std::string home = {};     // the user's folder on the HDFS, "/user/me"
  std::string renewer = {};  // the ResourceManager's principal; "": without Kerberos

  bool is_secure() const { return !renewer.empty(); }
  // Where NodeManagers aggregate the containers' output: with a scheme; a part of its folders'
  // names.
  std::string log_folder = {}, log_suffix = {};
  // After how long without a word from an ApplicationMaster another attempt is started.
  double master_expiry_seconds = 600;
};

// Reads the configuration of this process (files/hdfs/hadoop_config.h). Where Hadoop wants Kerberos
// tickets, the NameNode is asked whose this process has. FAILED_PRECONDITION, which says what to
// do, if there is none, or if it names no ResourceManager or no HDFS.
absl::StatusOr<YarnConfig> ReadYarnConfig(io::FileSystem& files);

// What `config` says; `folder` is for messages.
absl::StatusOr<YarnConfig> GetYarnConfig(const files::HadoopConfig& config,
                                         const std::string& folder);

}  // namespace muster::launch::yarn
