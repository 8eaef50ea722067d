// YarnClient: the ResourceManager's REST interface
// (https://hadoop.apache.org/docs/r3.4.2/hadoop-yarn/hadoop-yarn-site/ResourceManagerRest.html).
//
// A call goes to the ResourceManager that is active, and is repeated while none answers or is
// active, for YarnClientOptions::patience. Errors name the ResourceManager and what it says:
//   NOT_FOUND          there is no such application
//   PERMISSION_DENIED, UNAUTHENTICATED   the user may not do that; there is no Kerberos ticket
//   INVALID_ARGUMENT   what else it refuses
//   UNAVAILABLE        none answers
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/formats/json_fields.h"
#include "muster/launch/yarn/ticket_caller.h"
#include "muster/launch/yarn/yarn_config.h"
#include "muster/net/http/exchange.h"

namespace muster::launch::yarn {

using formats::Json;

struct YarnClientOptions {
  double patience = 10;  // seconds; a person waits
  double call_seconds = 10;
};

struct NewApplication {
  std::string id = {};                                         // "application_1795224297403_0009"
  int64_t most_memory_mb = 0, most_vcores = 0, most_gpus = 0;  // of one container
};

// Containers that an application waits for, of one size.
struct WantedContainers {
  int64_t count = 0, memory_mb = 0, cores = 0;
};

struct Application {
  std::string id = {}, name = {}, queue = {}, user = {};
  std::string state = {};         // "ACCEPTED", "RUNNING", "FINISHED", ...
  std::string final_status = {};  // "SUCCEEDED", "FAILED", "KILLED"; "UNDEFINED" before
  std::string diagnostics = {};
  double started_seconds = 0, finished_seconds = 0;  // wall time; 0: not yet
  std::string log_aggregation = {};  // "NOT_START", "RUNNING", "SUCCEEDED", "DISABLED", ...
  std::vector<WantedContainers> wanted = {};  // of a running one; each size once

  bool has_ended() const { return state == "FINISHED" || state == "FAILED" || state == "KILLED"; }
  // Some nodes have yet to write what the containers printed to HDFS.
  bool aggregates_logs() const {
    return log_aggregation == "NOT_START" || log_aggregation.starts_with("RUNNING");
  }
};

// One owner thread.
class YarnClient {
 public:
  // Makes no connection.
  static absl::StatusOr<std::unique_ptr<YarnClient>> New(const YarnConfig& config,
                                                         YarnClientOptions options = {});

  absl::StatusOr<NewApplication> MakeApplication();
  absl::Status Submit(const Json& submission);
  absl::StatusOr<Application> Get(const std::string& id);
  // Muster's applications of this user, newest first.
  absl::StatusOr<std::vector<Application>> List();
  absl::Status Kill(const std::string& id);
  // The names of the queues that take applications.
  absl::StatusOr<std::vector<std::string>> ListQueues();

  // Of the ResourceManager that answered last.
  const std::string& url() const { return urls_[active_]; }

 private:
  YarnClient(std::vector<std::string> urls, std::string user, YarnClientOptions options,
             std::vector<std::unique_ptr<net::HttpExchange>> servers)
      : urls_(std::move(urls)),
        user_(std::move(user)),
        options_(options),
        servers_(std::move(servers)) {}
  absl::StatusOr<Json> Call(const std::string& method, const std::string& path, const Json& body);

  const std::vector<std::string> urls_;
  const std::string user_;
  const YarnClientOptions options_;
  const std::vector<std::unique_ptr<net::HttpExchange>> servers_;  // of urls_, in their order
  size_t active_ = 0;
  TicketCaller caller_;
};

// The queues that have none below themselves, in an answer of /ws/v1/cluster/scheduler of any
// scheduler.
std::vector<std::string> FindLeafQueues(const Json& scheduler);

// The type by which Muster's applications are known in the ResourceManager.
inline constexpr char kApplicationType[] = "MUSTER";

}  // namespace muster::launch::yarn
