// A job's staging folder on HDFS: what its containers get as files (local resources, as YARN calls
// them), and the state of its coordinator. The folder is its owner's alone (0700).
//
//   task.tar     for all processes of the job: token, data_key and ca.pem as in a job's folder
//                (control/job_folder.h), keytab, and in conf/ Hadoop's configuration, as the
//                submitter has it
//   master.tar   for the ApplicationMaster alone (java/yarn): am.json, and ca-key.pem, with which
//                coordinators make their certificates
//   staged/, folders/             files and archives of the job
//   state/                        launch/slots/shared_state.h
//   coordinator                   the URL of the coordinator that runs
//
// What all jobs of this Muster share lies beside it, in .muster/programs (programs.h), under a name
// that its contents give, so that it is written once, and that NodeManagers fetch it once for a
// user.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/files/hdfs/web_hdfs.h"
#include "muster/formats/json_fields.h"
#include "muster/io/file_system.h"
#include "muster/launch/yarn/yarn_config.h"

namespace muster::launch::yarn {

// A file that YARN puts into a container's folder.
struct LocalResource {
  std::string name = {};  // its path there
  std::string url = {};
  uint64_t size = 0;
  int64_t modified_millis = 0;
  bool is_archive = false;  // unpacked into a folder of that name
  bool is_shared = false;   // by the jobs of its user: the nodes keep it
};

formats::Json ToJson(const LocalResource& resource);             // for am.json
formats::Json ToSubmissionEntry(const LocalResource& resource);  // for the REST submission

// The staging folder of that name: .muster/NAME in the user's home folder.
std::string GetStagingUrl(const YarnConfig& config, const std::string& name);

// One owner thread. `files` must outlive it.
class Staging {
 public:
  // Makes the folder.
  static absl::StatusOr<std::unique_ptr<Staging>> Make(io::FileSystem& files,
                                                       const YarnConfig& config,
                                                       const std::string& name);

  const std::string& url() const { return url_; }  // of the folder

  // Copies a file of this machine, which its owner alone may read there; `name` is its path in the
  // staging folder and `as` that in the container.
  absl::StatusOr<LocalResource> Copy(const std::string& from, const std::string& name,
                                     const std::string& as);
  absl::StatusOr<LocalResource> Write(const std::string& bytes, const std::string& name,
                                      const std::string& as);
  // Finds an archive with these bytes beside the staging folder, or writes it there.
  absl::StatusOr<LocalResource> Share(const std::string& bytes, const std::string& as);
  // A delegation token for its HDFS, for the job's processes.
  absl::StatusOr<files::HadoopToken> GetToken(const std::string& renewer);
  absl::Status Cancel(const files::HadoopToken& token) { return calls_->CancelToken(token); }
  // Makes a folder below it.
  absl::Status MakeFolder(const std::string& name);

 private:
  Staging(io::FileSystem& files, std::unique_ptr<files::WebHdfs> calls, std::string service,
          std::string path, std::string url)
      : files_(files),
        calls_(std::move(calls)),
        service_(std::move(service)),
        path_(std::move(path)),
        url_(std::move(url)) {}
  std::string GetRoot() const;  // the file system's URL
  absl::Status SetPrivate(const std::string& path);
  absl::Status WriteShared(const std::string& bytes, const std::string& path);
  absl::StatusOr<LocalResource> Finish(const std::string& name, const std::string& as);

  io::FileSystem& files_;
  const std::unique_ptr<files::WebHdfs> calls_;
  const std::string service_;  // the HDFS's name in tokens
  const std::string path_, url_;
};

}  // namespace muster::launch::yarn
