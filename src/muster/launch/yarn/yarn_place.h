// YarnPlace: an application of a YARN cluster as a place (control/job_place.h). The coordinator
// beside its ApplicationMaster is asked; where it does not answer, the journal on HDFS and the
// ResourceManager say how the job is.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/control/job_folder.h"
#include "muster/control/job_place.h"
#include "muster/control/place_record.h"
#include "muster/io/file_system.h"
#include "muster/launch/yarn/container_log.h"
#include "muster/launch/yarn/yarn_client.h"
#include "muster/net/http/client.h"

namespace muster::launch::yarn {

class YarnPlace : public control::JobPlace, private ContainerLookup {
 public:
  // `folder` has the job's token and ca.pem. Makes no connection.
  static absl::StatusOr<std::unique_ptr<YarnPlace>> Open(const control::JobFolder& folder,
                                                         const control::PlaceRecord& record,
                                                         const YarnConfig& config);

  // Beside the members of control::DescribeJob(): "application", its id, and "page", where a
  // browser finds the application's own page.
  absl::StatusOr<formats::Json> Describe() override;
  // An application that waits in a queue, or whose coordinator does not answer, is killed.
  absl::Status Stop(const std::string& why) override;
  absl::Status Suspend(bool suspended) override;
  absl::Status Resume() override;
  absl::StatusOr<std::string> Remove(bool with_work) override;
  absl::StatusOr<std::unique_ptr<control::LogSource>> OpenLog(job::TaskId task) override;
  bool WaitForEnd(double seconds) override;

 private:
  YarnPlace(control::JobFolder folder, control::PlaceRecord record, std::string page,
            AggregatedPlace logs, std::unique_ptr<io::FileSystem> files,
            std::unique_ptr<YarnClient> client)
      : folder_(std::move(folder)),
        record_(std::move(record)),
        page_(std::move(page)),
        logs_(std::move(logs)),
        files_(std::move(files)),
        client_(std::move(client)) {}
  absl::StatusOr<std::optional<ContainerInfo>> FindContainer(const std::string& task) override;
  bool HasEnded() const override;
  bool IsAggregating() override;
  absl::StatusOr<std::vector<KeptOutput>> ReadKept(const std::string& task) override;
  absl::Status FindCoordinator();
  absl::StatusOr<Json> Ask(const std::string& method, const std::string& path, const Json& body);
  absl::StatusOr<Json> DescribeJournal();
  absl::StatusOr<Json> DescribeWithout(const absl::Status& silence);
  absl::Status ExplainDenied();
  void RememberContainer(const Json& described);
  void ExplainLacking(Json* job);

  const control::JobFolder folder_;
  const control::PlaceRecord record_;
  const std::string page_;  // its URL
  const AggregatedPlace logs_;
  const std::unique_ptr<io::FileSystem> files_;
  const std::unique_ptr<YarnClient> client_;
  std::string url_;                               // of the coordinator that was found last
  std::unique_ptr<net::HttpClient> coordinator_;  // at url_; null: none was found
  Json described_;                                // as it was described last
  std::chrono::steady_clock::time_point described_at_ = {};
  // Since when tasks have no container; none: all have one.
  std::optional<std::chrono::steady_clock::time_point> lacking_since_ = {};
  // By task: where its newest incarnation was seen.
  std::map<std::string, ContainerInfo> containers_;
};

// Why an application that YARN has accepted does not run yet. It changes only if something has
// happened.
std::string DescribeWaiting(const Application& app);

// Which containers a running application has asked for and not got; "" if it has all.
std::string DescribeWanted(const Application& app);

// What the ResourceManager says of an application, as the description of a job without its tasks.
formats::Json Describe(const Application& app);

}  // namespace muster::launch::yarn
