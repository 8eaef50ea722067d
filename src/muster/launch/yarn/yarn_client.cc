#include "muster/launch/yarn/yarn_client.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "muster/base/strings.h"
#include "muster/net/http/message.h"
#include "muster/process/deadline.h"

namespace muster::launch::yarn {
namespace {

using formats::JsonFields;

constexpr size_t kMaxAnswerBytes = size_t{64} << 20;
constexpr int kPauseMillis = 200;
constexpr size_t kMaxText = 300;
constexpr char kGpu[] = "yarn.io/gpu";
constexpr char kApps[] = "/ws/v1/cluster/apps";

// A standby sends callers elsewhere; one that starts or stops says so.
bool IsInactive(const net::HttpAnswer& answer) {
  const int status = answer.head.status;
  return status == 302 || status == 307 || status == 502 || status == 503 || status == 504 ||
         answer.body.starts_with("This is standby RM");
}

absl::StatusCode GetCode(int status, const std::string& exception) {
  if (status == 401) return absl::StatusCode::kUnauthenticated;
  if (status == 404 || exception == "NotFoundException") return absl::StatusCode::kNotFound;
  if (status == 403) return absl::StatusCode::kPermissionDenied;
  return status >= 500 ? absl::StatusCode::kInternal : absl::StatusCode::kInvalidArgument;
}

absl::Status ToStatus(const net::HttpAnswer& answer, const std::string& url) {
  std::string exception, message;
  const auto json = formats::ParseJsonObject(answer.body, url);
  if (json.ok()) {
    JsonFields fields(*json, url);
    JsonFields remote(fields.Object("RemoteException"), url);
    exception = remote.Text("exception");
    message = remote.Text("message");
  }
  constexpr std::string_view kNoClass = "java.lang.Exception: ";
  if (message.starts_with(kNoClass)) message.erase(0, kNoClass.size());
  if (message.empty()) message = StrCat("HTTP status ", answer.head.status);
  return absl::Status(GetCode(answer.head.status, exception),
                      StrCat("the ResourceManager at ", url, ": ", message.substr(0, kMaxText)));
}

// YARN lists the wish for any node ("*") beside those for single nodes and racks.
std::vector<WantedContainers> ReadWanted(const Json& requests) {
  std::vector<WantedContainers> wanted;
  for (const Json& request : requests) {
    JsonFields fields(request, "resourceRequests");
    JsonFields size(fields.Object("capability"), "capability");
    const WantedContainers one = {.count = fields.Int("numContainers", 0, 0, INT32_MAX),
                                  .memory_mb = size.Int("memory", 0, 0, INT64_MAX),
                                  .cores = size.Int("vCores", 0, 0, INT32_MAX)};
    if (fields.Text("resourceName") != "*" || one.count == 0) continue;
    const auto same = std::ranges::find_if(wanted, [&one](const WantedContainers& other) {
      return other.memory_mb == one.memory_mb && other.cores == one.cores;
    });
    if (same == wanted.end()) {
      wanted.push_back(one);
    } else {
      same->count += one.count;
    }
  }
  return wanted;
}

Application ReadApplication(const Json& json) {
  JsonFields fields(json, "app");
  return {.id = fields.Text("id"),
          .name = fields.Text("name"),
          .queue = fields.Text("queue"),
          .user = fields.Text("user"),
          .state = fields.Text("state"),
          .final_status = fields.Text("finalStatus"),
          .diagnostics = fields.Text("diagnostics"),
          .started_seconds = fields.Number("startedTime", 0) / 1000,
          .finished_seconds = fields.Number("finishedTime", 0) / 1000,
          .log_aggregation = fields.Text("logAggregationStatus"),
          .wanted = ReadWanted(fields.List("resourceRequests"))};
}

bool AddLeafQueues(const Json& node, std::vector<std::string>* names) {
  bool has_more = false;
  if (!node.is_structured()) return false;
  for (const Json& part : node) has_more = AddLeafQueues(part, names) || has_more;
  if (has_more || !node.is_object()) return has_more;
  std::string name = JsonFields(node, "queue").Text("queueName");
  if (name.empty()) return false;
  names->push_back(std::move(name));
  return true;
}

}  // namespace

std::vector<std::string> FindLeafQueues(const Json& scheduler) {
  std::vector<std::string> names;
  AddLeafQueues(scheduler, &names);
  return names;
}

absl::StatusOr<std::unique_ptr<YarnClient>> YarnClient::New(const YarnConfig& config,
                                                            YarnClientOptions options) {
  const bool tls = config.managers[0].starts_with("https:");
  net::HttpPoolOptions pool_options;
  if (tls) {
    pool_options.tls = net::ClientTls{.machine_authorities = true, .allow_tls_1_2 = true};
  }
  MUSTER_ASSIGN_OR_RETURN(const auto pool, net::HttpPool::Create(std::move(pool_options)));
  std::vector<std::unique_ptr<net::HttpExchange>> servers;
  for (const std::string& url : config.managers) {
    auto server = net::HttpExchange::Create({.url = url, .pool = pool});
    if (!server.ok()) return Annotate(server.status(), StrCat(config.folder, "/yarn-site.xml"));
    servers.push_back(*std::move(server));
  }
  return std::unique_ptr<YarnClient>(
      new YarnClient(config.managers, config.user, options, std::move(servers)));
}

absl::StatusOr<Json> YarnClient::Call(const std::string& method, const std::string& path,
                                      const Json& body) {
  const auto deadline = process::Deadline::After(options_.patience);
  const char mark = path.find('?') == std::string::npos ? '?' : '&';
  absl::Status last;
  while (true) {
    for (size_t i = 0; i < servers_.size(); ++i) {
      net::HttpCall call = {
          .method = method,
          .target = StrCat(path, std::string(1, mark), "user.name=", net::EscapeForTarget(user_))};
      call.fields = {{"Accept", "application/json"}};
      if (!body.is_null()) {
        call.fields.push_back({"Content-Type", "application/json"});
        call.body = net::MakeTextBody(formats::PrintJson(body));
      }
      const auto answer = caller_.Fetch(*servers_[active_], url(), std::move(call), kMaxAnswerBytes,
                                        {.total_seconds = options_.call_seconds});
      if (answer.ok() && !IsInactive(*answer)) {
        if (answer->head.status >= 300) return ToStatus(*answer, url());
        if (answer->body.empty()) return Json::object();
        return formats::ParseJsonObject(answer->body, url());
      }
      last = answer.ok() ? absl::UnavailableError(
                               StrCat("the ResourceManager at ", url(), " is not the active one"))
                         : Annotate(answer.status(), "the ResourceManager");
      active_ = (active_ + 1) % servers_.size();
    }
    const bool may_come = absl::IsUnavailable(last) || absl::IsDeadlineExceeded(last);
    if (!may_come || deadline.expired()) break;
    poll(nullptr, 0, kPauseMillis);
  }
  return Annotate(last, "is the address in yarn-site.xml right, and does it run?");
}

absl::StatusOr<NewApplication> YarnClient::MakeApplication() {
  MUSTER_ASSIGN_OR_RETURN(const Json json,
                          Call("POST", StrCat(kApps, "/new-application"), Json::object()));
  JsonFields fields(json, url());
  NewApplication made = {.id = fields.Text("application-id")};
  JsonFields most(fields.Object("maximum-resource-capability"), url());
  made.most_memory_mb = most.Int("memory", 0, 0, INT64_MAX);
  made.most_vcores = most.Int("vCores", 0, 0, INT64_MAX);
  JsonFields all(most.Object("resourceInformations"), url());
  for (const Json& each : all.List("resourceInformation")) {
    JsonFields resource(each, url());
    if (resource.Text("name") == kGpu) made.most_gpus = resource.Int("value", 0, 0, INT64_MAX);
  }
  fields.Update(most.status());
  MUSTER_RETURN_IF_ERROR(fields.status());
  if (!made.id.empty()) return made;
  return absl::InvalidArgumentError(StrCat(url(), ": this is no ResourceManager"));
}

absl::Status YarnClient::Submit(const Json& submission) {
  return Call("POST", kApps, submission).status();
}

absl::StatusOr<Application> YarnClient::Get(const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(const Json json, Call("GET", StrCat(kApps, "/", id), Json()));
  JsonFields fields(json, url());
  return ReadApplication(fields.Object("app"));
}

absl::StatusOr<std::vector<Application>> YarnClient::List() {
  MUSTER_ASSIGN_OR_RETURN(const Json json,
                          Call("GET",
                               StrCat(kApps, "?applicationTypes=", kApplicationType,
                                      "&user=", net::EscapeForTarget(user_)),
                               Json()));
  JsonFields fields(json, url());
  JsonFields apps(fields.Object("apps"), url());
  std::vector<Application> all;
  for (const Json& app : apps.List("app")) all.push_back(ReadApplication(app));
  std::sort(all.begin(), all.end(), [](const Application& a, const Application& b) {
    return a.started_seconds > b.started_seconds;
  });
  return all;
}

absl::StatusOr<std::vector<std::string>> YarnClient::ListQueues() {
  MUSTER_ASSIGN_OR_RETURN(const Json json, Call("GET", "/ws/v1/cluster/scheduler", Json()));
  return FindLeafQueues(json);
}

absl::Status YarnClient::Kill(const std::string& id) {
  return Call("PUT", StrCat(kApps, "/", id, "/state"), {{"state", "KILLED"}}).status();
}

}  // namespace muster::launch::yarn
