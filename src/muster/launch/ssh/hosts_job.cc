#include "muster/launch/ssh/hosts_job.h"

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/files/file_systems.h"
#include "muster/io/private_file_system.h"
#include "muster/job/pod_template.h"
#include "muster/launch/ssh/ssh_command.h"
#include "muster/launch/ssh/ssh_launcher.h"
#include "muster/net/listen.h"
#include "muster/net/secret_file.h"
#include "muster/net/tls/certs.h"
#include "muster/process/capture.h"

namespace muster::launch::ssh {
namespace {

constexpr double kAskSeconds = 30;
constexpr size_t kMaxAnswerBytes = 64 << 10;
constexpr int kCertificateDays = 365;
constexpr double kPackSeconds = 3600;
constexpr char kAnyAddress[] = "0.0.0.0";

bool IsLoopback(const std::string& address) {
  const auto parsed = net::internal::ParseAddress(address);
  return parsed.ok() && parsed->is_loopback;
}

std::string Machine() {
  utsname name = {};
  uname(&name);
  return StrCat(name.sysname, " ", name.machine);
}

// Returns the names of the tasks' programs, without one that is sent along.
std::vector<std::string> GetPrograms(const job::JobSpec& spec) {
  std::set<std::string> names;
  for (const auto& [type, replica] : spec.replicas) {
    const auto process = job::ParseProcess(replica.pod_template);
    if (!process.ok() || process->command.empty()) continue;
    const std::string& program = process->command[0];
    const bool is_relative = program.find('/') != std::string::npos && program[0] != '/';
    if (!is_relative && program != "muster") names.insert(program);
  }
  return {names.begin(), names.end()};
}

// A pipe serves as the input, since RunCaptured gives none.
absl::StatusOr<process::CapturedRun> RunWithInput(std::vector<std::string> command,
                                                  const std::string& input) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  const process::Descriptor reader(ends[0]);
  process::Descriptor writer(ends[1]);
  // The script has a few lines and fits into a pipe.
  if (write(writer.get(), input.data(), input.size()) != static_cast<ssize_t>(input.size())) {
    return ErrnoStatus(errno, "cannot write to a pipe");
  }
  writer.Reset();
  process::ChildSpec spec;
  spec.argv = std::move(command);
  spec.environment = process::CurrentEnvironment();
  spec.stdin_fd = reader.get();
  return process::RunCaptured(nullptr, spec, kAskSeconds, kMaxAnswerBytes);
}

absl::StatusOr<Answer> Ask(const std::string& name, const std::vector<std::string>& ssh,
                           const std::string& script) {
  MUSTER_ASSIGN_OR_RETURN(const process::CapturedRun run,
                          RunWithInput(RunScript(ssh, name, script.size()), script));
  if (run.timed_out) {
    return absl::UnavailableError(StrCat("host ", name, ": nothing was heard of it within ",
                                         job::PrintDuration(kAskSeconds), ": ssh ", name,
                                         " true must work"));
  }
  if (run.exit.code == kSshFailed) {
    return absl::UnavailableError(DescribeSshFailure(name, run.output));
  }
  MUSTER_ASSIGN_OR_RETURN(Answer answer, ReadAnswer(name, run.output));
  if (answer.machine != Machine()) {
    answer.problems.push_back(StrCat("it is ", answer.machine, ", and this muster is for ",
                                     Machine(), ": install muster there"));
    if (!answer.host.muster.empty()) answer.problems.pop_back();
  }
  return answer;
}

// Asks all hosts at once. Returns the problems of all hosts, one line each.
absl::StatusOr<std::vector<Host>> AskAll(const HostsOptions& options, const Inquiry& inquiry) {
  const std::string script = InquiryScript(inquiry);
  std::vector<absl::StatusOr<Answer>> answers(options.names.size(), absl::UnknownError(""));
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < options.names.size(); ++i) {
      threads.emplace_back([&, i] { answers[i] = Ask(options.names[i], options.command, script); });
    }
  }
  std::vector<Host> hosts;
  std::vector<std::string> problems;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].ok()) {
      problems.emplace_back(ToStd(answers[i].status().message()));
      continue;
    }
    for (const std::string& problem : answers[i]->problems) {
      problems.push_back(StrCat("host ", options.names[i], ": ", problem));
    }
    hosts.push_back(answers[i]->host);
  }
  if (!problems.empty()) return absl::FailedPreconditionError(absl::StrJoin(problems, "\n"));
  return hosts;
}

struct Certificate {
  const char* name;
  net::CertificateUse use;
};

absl::Status WriteCertificates(const std::string& folder, const net::Credentials& authority,
                               const std::string& name, const std::vector<std::string>& hosts,
                               const std::vector<Certificate>& wanted) {
  MUSTER_RETURN_IF_ERROR(
      net::WriteSecretFile(io::JoinPath(folder, "ca.pem"), authority.certificate));
  for (const Certificate& each : wanted) {
    net::CertificateOptions options{.name = name, .use = each.use, .days = kCertificateDays};
    if (each.use == net::CertificateUse::kServer) options.hosts = hosts;
    MUSTER_ASSIGN_OR_RETURN(const net::Credentials made, net::MakeCertificate(authority, options));
    MUSTER_RETURN_IF_ERROR(net::WriteCredentials(folder, each.name, made));
  }
  return absl::OkStatus();
}

// Makes the job's one authority, whose key is written nowhere.
absl::Status MakeCertificates(const control::JobFolder& folder, const Hosts& hosts,
                              const control::ListenPlace& place) {
  using net::CertificateUse;
  const std::string name = io::Basename(folder.path).substr(0, 64);
  MUSTER_ASSIGN_OR_RETURN(const net::Credentials authority,
                          net::MakeAuthority(name, kCertificateDays));
  std::set<std::string> own = {control::LocalAddress(place), "127.0.0.1"};
  for (const Host& host : hosts.all) own.insert(host.coordinator);
  MUSTER_RETURN_IF_ERROR(WriteCertificates(folder.path, authority, name, {own.begin(), own.end()},
                                           {{"server", CertificateUse::kServer}}));
  const auto files = io::NewPrivateFileSystem();
  for (size_t i = 0; i < hosts.all.size(); ++i) {
    const std::string place_of_host = HostFolder(folder, i);
    MUSTER_RETURN_IF_ERROR(files->MakeFolders(place_of_host));
    MUSTER_RETURN_IF_ERROR(WriteCertificates(
        place_of_host, authority, name, {hosts.all[i].address},
        {{"server", CertificateUse::kServer}, {"client", CertificateUse::kClient}}));
  }
  return absl::OkStatus();
}

// Packs what is staged here into one file for the hosts.
absl::Status PackStaged(const control::JobFolder& folder) {
  if (!files::OpenFileSystems()->Stat(folder.staged()).ok()) return absl::OkStatus();
  process::ChildSpec spec;
  spec.argv = {"tar", "-cf", StagedArchive(folder), "-C", folder.staged(), "."};
  spec.environment = process::CurrentEnvironment();
  MUSTER_ASSIGN_OR_RETURN(const auto run,
                          process::RunCaptured(nullptr, spec, kPackSeconds, kMaxAnswerBytes));
  if (run.exit.ok()) return absl::OkStatus();
  return absl::DataLossError(StrCat("cannot pack ", folder.staged(),
                                    ": tar: ", process::DescribeExit(run.exit), ": ", run.output));
}

}  // namespace

control::ListenPlace PlaceFor(std::vector<Host>* all) {
  std::string seen;  // of this machine, by another one
  for (const Host& host : *all) {
    if (seen.empty() && !IsLoopback(host.address)) seen = host.coordinator;
  }
  std::set<std::string> places;
  for (Host& host : *all) {
    if (!seen.empty() && IsLoopback(host.address)) host.address = host.coordinator = seen;
    places.insert(host.coordinator);
  }
  return {.address = places.size() == 1 ? *places.begin() : kAnyAddress, .tls = true};
}

absl::StatusOr<control::JobFolder> CreateJob(const std::string& jobs, const job::JobSpec& spec,
                                             const control::CoordinatorOptions& options,
                                             local::LocalJobOptions local,
                                             const HostsOptions& hosts) {
  if (hosts.names.empty()) return local::CreateJob(jobs, spec, options, local);
  const bool is_staged = !spec.files.empty() || !spec.archives.empty();
  Hosts found{.ssh = hosts.command};
  MUSTER_ASSIGN_OR_RETURN(found.all,
                          AskAll(hosts, {.programs = GetPrograms(spec),
                                         .folder = is_staged ? "" : options.working_directory,
                                         .version = hosts.version}));
  local.listen = PlaceFor(&found.all);
  if (!hosts.listen.empty()) {
    MUSTER_ASSIGN_OR_RETURN(local.listen, control::ParseListenPlace(hosts.listen, /*tls=*/true));
    const std::string& address = local.listen.address;
    if (address != kAnyAddress && address != "::") {
      for (Host& host : found.all) host.coordinator = address;
    }
  }
  local.prepare = [&](const control::JobFolder& folder) -> absl::Status {
    MUSTER_RETURN_IF_ERROR(MakeCertificates(folder, found, local.listen));
    MUSTER_RETURN_IF_ERROR(PackStaged(folder));
    return WriteHosts(folder, found);
  };
  return local::CreateJob(jobs, spec, options, local);
}

bool HasHosts(const control::JobFolder& folder) {
  return files::OpenFileSystems()->Stat(HostsPath(folder)).ok();
}

absl::StatusOr<std::unique_ptr<local::LocalJob>> RunJob(const control::JobFolder& folder,
                                                        const std::string& program,
                                                        const std::string& cancelled) {
  if (!HasHosts(folder)) return local::LocalJob::Run(folder, program, cancelled);
  MUSTER_ASSIGN_OR_RETURN(Hosts hosts, ReadHosts(folder));
  return local::LocalJob::Run(
      folder, program, cancelled,
      [&hosts](local::LocalLauncherOptions options,
               const job::JobSpec& spec) -> absl::StatusOr<std::unique_ptr<control::Launcher>> {
        return SshLauncher::Create(std::move(options), spec, hosts);
      });
}

}  // namespace muster::launch::ssh
