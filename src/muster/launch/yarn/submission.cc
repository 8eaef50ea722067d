#include "muster/launch/yarn/submission.h"

#include <poll.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

#include "muster/control/job_run.h"
#include "muster/files/file_systems.h"
#include "muster/job/pod_template.h"
#include "muster/launch/local/staging.h"
#include "muster/launch/slots/slot_job.h"
#include "muster/launch/yarn/programs.h"
#include "muster/launch/yarn/staging.h"
#include "muster/launch/yarn/tar.h"
#include "muster/net/secret_file.h"
#include "muster/net/tls/certs.h"
#include "muster/process/deadline.h"

namespace muster::launch::yarn {
namespace {

using formats::Json;

// In a container: what is Muster's, beside the job's own files.
constexpr char kFolder[] = ".muster";
constexpr char kPrograms[] = "programs";  // a folder in kFolder
// Archives in kFolder, which a container's command unpacks there: a NodeManager takes some 50 ms
// for each file that it fetches.
constexpr char kTaskFiles[] = "task.tar", kMasterFiles[] = "master.tar";
constexpr char kMain[] = "muster.yarn.ApplicationMaster";
constexpr char kToken[] = "token", kDataKey[] = "data_key", kAuthority[] = "ca.pem";
constexpr int kMasterMegabytes = 512;
constexpr int kMasterAttempts = 5;
// An attempt that ran longer than this is not counted among these.
constexpr int64_t kAttemptMillis = 3'600'000;
constexpr double kLeaseSeconds = 60;  // the time in which another ApplicationMaster can start
constexpr double kAcceptSeconds = 30;
constexpr int kLookMillis = 100;
constexpr int kCertificateDays = 365;
constexpr uint64_t kMaxOwnBytes = uint64_t{16} << 20;  // of a file of Muster's or of Hadoop's
constexpr std::string_view kZipMagic = "PK\x03\x04", kGzipMagic = "\x1f\x8b", kTarMagic = "ustar";
constexpr size_t kTarMagicAt = 257;
constexpr int64_t kMebibyte = int64_t{1} << 20;

std::string In(std::string_view name) { return StrCat(kFolder, "/", name); }

// INVALID_ARGUMENT if a task of the job can never get a container.
absl::Status CheckSizes(const job::JobSpec& spec, const SubmitOptions& submit,
                        const NewApplication& made) {
  for (const auto& [type, replica] : spec.replicas) {
    MUSTER_ASSIGN_OR_RETURN(const job::Process process, job::ParseProcess(replica.pod_template));
    const int64_t bytes = process.memory_bytes > 0 ? process.memory_bytes : submit.memory_bytes;
    const int64_t megabytes = (bytes + kMebibyte - 1) / kMebibyte;
    const double cores = process.cpus > 0 ? process.cpus : submit.cores;
    if (megabytes > made.most_memory_mb) {
      return absl::InvalidArgumentError(
          StrCat("each ", job::TypeName(type), " wants ", megabytes,
                 " MiB of memory, and a container of this cluster has at most ",
                 made.most_memory_mb, " MiB"));
    }
    if (process.gpus > made.most_gpus) {
      return absl::InvalidArgumentError(StrCat("each ", job::TypeName(type), " wants ",
                                               process.gpus,
                                               " GPUs (yarn.io/gpu), and a container of this "
                                               "cluster has at most ",
                                               made.most_gpus));
    }
    if (cores > static_cast<double>(made.most_vcores)) {
      return absl::InvalidArgumentError(StrCat("each ", job::TypeName(type), " wants ", cores,
                                               " cores, and a container of this cluster has at "
                                               "most ",
                                               made.most_vcores));
    }
  }
  return absl::OkStatus();
}

// What a submission has put on HDFS.
struct Resources {
  std::vector<LocalResource> of_all = {};     // the ApplicationMaster and the tasks
  std::vector<LocalResource> of_master = {};  // the ApplicationMaster alone
  std::vector<LocalResource> of_tasks = {};   // the tasks alone
};

absl::Status AddFile(io::FileSystem& files, const std::string& path, const std::string& as,
                     std::vector<TarEntry>* entries) {
  MUSTER_ASSIGN_OR_RETURN(std::string bytes, io::ReadFile(files, path, kMaxOwnBytes));
  entries->push_back({.name = as, .bytes = std::move(bytes)});
  return absl::OkStatus();
}

absl::Status AddConfiguration(io::FileSystem& files, const std::string& folder,
                              std::vector<TarEntry>* entries) {
  for (const std::string& name : files::HadoopConfigFiles()) {
    const std::string path = io::JoinPath(folder, name);
    if (!files.Stat(path).ok()) continue;
    MUSTER_RETURN_IF_ERROR(AddFile(files, path, StrCat("conf/", name), entries));
  }
  return absl::OkStatus();
}

absl::Status AddKeytab(io::FileSystem& files, const SubmitOptions& submit, const YarnConfig& config,
                       std::vector<TarEntry>* entries) {
  if (submit.keytab.empty()) return absl::OkStatus();
  if (!config.is_secure()) {
    return absl::InvalidArgumentError(StrCat("--keytab ", submit.keytab,
                                             ": this Hadoop wants no Kerberos tickets (",
                                             config.folder, "/core-site.xml)"));
  }
  return AddFile(files, submit.keytab, "keytab", entries);
}

// INVALID_ARGUMENT for a file that no node could unpack.
absl::Status CheckArchive(io::FileSystem& files, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const auto file, files.OpenForRead(path));
  std::string head(kTarMagicAt + kTarMagic.size(), '\0');
  MUSTER_ASSIGN_OR_RETURN(const size_t size, file->Read(0, head.size(), head.data()));
  head.resize(size);
  const bool is_tar = head.size() > kTarMagicAt && head.substr(kTarMagicAt) == kTarMagic;
  if (is_tar || head.starts_with(kZipMagic) || head.starts_with(kGzipMagic)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat("--archive ", path, ": this is neither a zip file nor a tar file"));
}

absl::Status StageOwnFiles(io::FileSystem& files, const job::JobSpec& spec, const std::string& from,
                           Staging& staging, Resources* resources) {
  MUSTER_ASSIGN_OR_RETURN(const auto items, local::PlanStaging(spec, from));
  for (const local::StagedItem& item : items) {
    if (item.is_archive) MUSTER_RETURN_IF_ERROR(CheckArchive(files, item.source));
    const std::string name =
        StrCat("staged/", item.name, "/", io::Basename(item.source));  // its extension counts
    MUSTER_ASSIGN_OR_RETURN(auto copied, staging.Copy(item.source, name, item.name));
    copied.is_archive = item.is_archive;
    resources->of_tasks.push_back(std::move(copied));
  }
  return absl::OkStatus();
}

// A file, or a folder with all in it.
absl::Status StagePath(io::FileSystem& files, const std::string& from, const std::string& as,
                       Staging& staging, Resources* resources) {
  MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, files.Stat(from));
  if (!info.is_folder) {
    MUSTER_ASSIGN_OR_RETURN(auto copied, staging.Copy(from, StrCat("folders/", as), as));
    resources->of_tasks.push_back(std::move(copied));
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(const auto names, files.List(from));
  for (const std::string& name : names) {
    MUSTER_RETURN_IF_ERROR(
        StagePath(files, io::JoinPath(from, name), StrCat(as, "/", name), staging, resources));
  }
  return absl::OkStatus();
}

// JOB_ID is TonY's word for the application (job/tony_environment.h).
Json MakeMasterFile(const std::string& id, const job::JobSpec& spec, const SubmitOptions& submit,
                    const YarnConfig& config, const Staging& staging, const Resources& resources) {
  Json json = {
      {"staging", staging.url()},
      {"tasks", spec.total()},
      {"placement", submit.placement},
      {"labels", submit.labels},
      {"images", submit.images},
      {"renewer", config.renewer},
      {"memory_bytes", submit.memory_bytes},
      {"cores", submit.cores},
      // A coordinator that is cut off ends, and its agents after it, before the next begins.
      {"state_patience", config.master_expiry_seconds / 2},
      // Files are links into the nodes' caches, and Python looks beside what a link points to.
      {"environment", {{"HADOOP_USER_NAME", config.user}, {"JOB_ID", id}, {"PYTHONPATH", "."}}},
      {"resources", Json::array()}};
  for (const auto* const some : {&resources.of_all, &resources.of_tasks}) {
    for (const LocalResource& each : *some) json["resources"].push_back(ToJson(each));
  }
  return json;
}

// As which the ResourceManager, the NodeManagers and all processes of the job call HDFS.
Json MakeCredentials(const std::optional<files::HadoopToken>& token) {
  Json tokens = Json::array();
  if (token) {
    tokens.push_back({{"key", token->service}, {"value", files::PrintTokenText(*token)}});
  }
  return {{"tokens", {{"entry", tokens}}}, {"secrets", {{"entry", Json::array()}}}};
}

Json MakeSubmission(const std::string& id, const std::string& name, const SubmitOptions& submit,
                    const YarnConfig& config, const Resources& resources,
                    const std::optional<files::HadoopToken>& token) {
  Json files = Json::array();
  for (const auto* const some : {&resources.of_all, &resources.of_master}) {
    for (const LocalResource& each : *some) files.push_back(ToSubmissionEntry(each));
  }
  const Json environment = {
      {{"key", "CLASSPATH"},
       {"value", StrCat(In(kPrograms), "/muster-yarn.jar:", config.class_path, ":", In("conf"))}},
      {{"key", "HADOOP_USER_NAME"}, {"value", config.user}}};
  // Java's heap, and beside it the JVM itself and the coordinator.
  const std::string command = StrCat(
      "tar -xf ", In(kTaskFiles), " -C ", kFolder, " && tar -xf ", In(kMasterFiles), " -C ",
      kFolder, " && exec {{JAVA_HOME}}/bin/java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 ",
      kMain, " ", kFolder, " 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr");
  Json json = {{"application-id", id},
               {"application-name", name},
               {"application-type", kApplicationType},
               {"max-app-attempts", kMasterAttempts},
               {"attempt-failures-validity-interval", kAttemptMillis},
               {"keep-containers-across-application-attempts", true},
               {"resource", {{"memory", kMasterMegabytes}, {"vCores", 1}}},
               {"am-container-spec",
                {{"local-resources", {{"entry", files}}},
                 {"environment", {{"entry", environment}}},
                 {"commands", {{"command", command}}},
                 {"credentials", MakeCredentials(token)}}}};
  if (!submit.queue.empty()) json["queue"] = submit.queue;
  if (const auto of_all = submit.labels.find(""); of_all != submit.labels.end()) {
    json["app-node-label-expression"] = of_all->second;
    json["am-container-node-label-expression"] = of_all->second;
  }
  return json;
}

// Until the queue has the application, or has refused it.
absl::Status WaitUntilAccepted(YarnClient& client, const std::string& id) {
  const auto deadline = process::Deadline::After(kAcceptSeconds);
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const Application app, client.Get(id));
    if (app.has_ended() && app.final_status != "SUCCEEDED") {
      std::string why = app.diagnostics;
      std::replace(why.begin(), why.end(), '\n', ' ');
      return absl::InvalidArgumentError(StrCat("YARN refuses the job: ", why));
    }
    if (app.state == "ACCEPTED" || app.state == "RUNNING" || app.has_ended()) {
      return absl::OkStatus();
    }
    if (deadline.expired()) {
      return absl::UnavailableError(StrCat("the ResourceManager at ", client.url(),
                                           " has not accepted ", id, " within ", kAcceptSeconds,
                                           " s: it is ", app.state));
    }
    poll(nullptr, 0, kLookMillis);
  }
}

// What YARN says of a queue or a label, with what can be given instead.
absl::Status AddAdvice(const absl::Status& refused, const SubmitOptions& submit,
                       YarnClient& client) {
  const std::string said(ToStd(refused.message()));
  if (!submit.queue.empty() && said.find("queue") != said.npos) {
    const auto queues = client.ListQueues();
    if (queues.ok() && !queues->empty()) {
      return absl::Status(refused.code(),
                          StrCat("--queue ", submit.queue, ": ", said, "; its queues are ",
                                 absl::StrJoin(*queues, ", ")));
    }
  }
  if (!submit.labels.empty() && said.find("label") != said.npos) {
    return Annotate(refused, "--node-label (yarn cluster --list-node-labels shows the labels)");
  }
  return refused;
}

struct Submitting {
  const job::JobSpec& spec;
  const control::CoordinatorOptions& options;
  const SubmitOptions& submit;
  const YarnConfig& config;
  const control::JobFolder& folder;
  std::string jar = {};
};

absl::Status Stage(const std::vector<TarEntry>& entries, const std::string& name, Staging& staging,
                   std::vector<LocalResource>* resources) {
  MUSTER_ASSIGN_OR_RETURN(const std::string tar, MakeTar(entries));
  MUSTER_ASSIGN_OR_RETURN(auto written, staging.Write(tar, name, In(name)));
  resources->push_back(std::move(written));
  return absl::OkStatus();
}

// `authority`: the certificate by which the job's processes know each other.
absl::Status StageTaskFiles(const Submitting& job, const std::string& authority,
                            io::FileSystem& files, Staging& staging, Resources* resources) {
  MUSTER_RETURN_IF_ERROR(control::MakeKeys(job.folder));
  MUSTER_RETURN_IF_ERROR(
      net::WriteSecretFile(io::JoinPath(job.folder.path, kAuthority), authority));
  std::vector<TarEntry> entries;
  for (const char* const name : {kToken, kDataKey, kAuthority}) {
    MUSTER_RETURN_IF_ERROR(AddFile(files, io::JoinPath(job.folder.path, name), name, &entries));
  }
  MUSTER_RETURN_IF_ERROR(AddKeytab(files, job.submit, job.config, &entries));
  MUSTER_RETURN_IF_ERROR(AddConfiguration(files, job.config.folder, &entries));
  return Stage(entries, kTaskFiles, staging, &resources->of_all);
}

absl::Status StageAndSubmit(const Submitting& job, const std::string& id, io::FileSystem& files,
                            YarnClient& client, Staging& staging) {
  // Each file that HDFS closes may cost it 0.4 s: what nothing else refers to is written meanwhile.
  MUSTER_RETURN_IF_ERROR(staging.MakeFolder("state"));
  auto first_state = std::async(std::launch::async, [&job, &files, url = staging.url()] {
    return slots::WriteFirstState(files, StrCat(url, "/state"), job.spec, job.options);
  });
  Resources resources;
  MUSTER_ASSIGN_OR_RETURN(const std::string packed,
                          PackPrograms(files, job.submit.program, job.jar));
  MUSTER_ASSIGN_OR_RETURN(auto programs, staging.Share(packed, In(kPrograms)));
  resources.of_all.push_back(std::move(programs));
  MUSTER_ASSIGN_OR_RETURN(const net::Credentials authority,
                          net::MakeAuthority(job.spec.name, kCertificateDays));
  MUSTER_RETURN_IF_ERROR(StageTaskFiles(job, authority.certificate, files, staging, &resources));
  MUSTER_RETURN_IF_ERROR(StageOwnFiles(files, job.spec, job.submit.from, staging, &resources));
  for (const auto& [from, as] : job.submit.folders) {
    MUSTER_RETURN_IF_ERROR(StagePath(files, from, as, staging, &resources));
  }
  const Json master = MakeMasterFile(id, job.spec, job.submit, job.config, staging, resources);
  MUSTER_RETURN_IF_ERROR(Stage({{.name = "ca-key.pem", .bytes = authority.key},
                                {.name = "am.json", .bytes = formats::PrintJson(master) + "\n"}},
                               kMasterFiles, staging, &resources.of_master));
  MUSTER_RETURN_IF_ERROR(first_state.get());
  std::optional<files::HadoopToken> token;
  if (job.config.is_secure()) {
    MUSTER_ASSIGN_OR_RETURN(token, staging.GetToken(job.config.renewer));
  }
  absl::Status submitted =
      client.Submit(MakeSubmission(id, job.spec.name, job.submit, job.config, resources, token));
  if (submitted.ok()) {
    submitted = WaitUntilAccepted(client, id);
    if (!submitted.ok()) (void)client.Kill(id);  // the first error counts
  }
  if (!submitted.ok() && token) (void)staging.Cancel(*token);
  return submitted.ok() ? submitted : AddAdvice(submitted, job.submit, client);
}

}  // namespace

absl::StatusOr<control::PlaceRecord> SubmitJob(const job::JobSpec& spec,
                                               control::CoordinatorOptions options,
                                               const SubmitOptions& submit,
                                               const YarnConfig& config,
                                               const control::JobFolder& folder) {
  options.lease_seconds = std::max(options.lease_seconds, kLeaseSeconds);
  options.rendezvous_seconds = 0;  // containers may wait in a queue for any time
  options.working_directory.clear();
  options.gang_seconds = submit.gang_seconds;
  options.tony_environment = true;
  Submitting job = {spec, options, submit, config, folder};
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(job.jar, FindJar(*files, submit.program));
  MUSTER_ASSIGN_OR_RETURN(const auto client, YarnClient::New(config));
  MUSTER_ASSIGN_OR_RETURN(const NewApplication made, client->MakeApplication());
  MUSTER_RETURN_IF_ERROR(CheckSizes(spec, submit, made));
  MUSTER_ASSIGN_OR_RETURN(const auto staging, Staging::Make(*files, config, made.id));
  const absl::Status submitted = StageAndSubmit(job, made.id, *files, *client, *staging);
  if (!submitted.ok()) {
    (void)files->RemoveAll(staging->url());  // the first error counts
    return submitted;
  }
  return control::PlaceRecord{.kind = kYarnKind,
                              .id = made.id,
                              .url = client->url(),
                              .staging = staging->url(),
                              .config = config.folder};
}

absl::StatusOr<control::PlaceRecord> FetchRecord(const std::string& id, const YarnConfig& config,
                                                 const YarnClient& client,
                                                 const control::JobFolder& folder) {
  const auto files = files::OpenFileSystems();
  const std::string staging = GetStagingUrl(config, id);
  MUSTER_ASSIGN_OR_RETURN(const std::string tar,
                          io::ReadFile(*files, StrCat(staging, "/", kTaskFiles), kMaxOwnBytes));
  for (const char* const name : {kToken, kAuthority}) {
    MUSTER_ASSIGN_OR_RETURN(const std::string secret, ReadFromTar(tar, name));
    MUSTER_RETURN_IF_ERROR(net::WriteSecretFile(io::JoinPath(folder.path, name), secret));
  }
  return control::PlaceRecord{.kind = kYarnKind,
                              .id = id,
                              .url = client.url(),
                              .staging = staging,
                              .config = config.folder};
}

}  // namespace muster::launch::yarn
