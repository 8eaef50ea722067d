#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"

#include "CLI/CLI.hpp"
#include "muster/base/strings.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/jobs/verbs.h"
#include "muster/net/tls/certs.h"

namespace muster::cli {
namespace {

constexpr mode_t kPrivate = 0700;

struct CertsFlags {
  std::string out;
  std::string name = "muster";
  std::vector<std::string> hosts;
  int days = 365;
};

absl::Status MakeFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), kPrivate) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, StrCat("cannot make the folder ", folder));
  }
  for (const char* const name : {"ca", "server", "client"}) {
    const std::string path = StrCat(folder, "/", name, ".pem");
    if (access(path.c_str(), F_OK) != 0) continue;
    return absl::AlreadyExistsError(
        StrCat(path, " exists already: jobs may use it; name another folder with --out"));
  }
  return absl::OkStatus();
}

// Programs on this machine use loopback to reach a coordinator that listens on all interfaces.
std::vector<std::string> GetHosts(const CertsFlags& flags) {
  std::vector<std::string> hosts = {"localhost", "127.0.0.1", "::1"};
  for (const std::string& host : flags.hosts) {
    if (!absl::c_linear_search(hosts, host)) hosts.push_back(host);
  }
  return hosts;
}

absl::Status MakeCertificates(const CertsFlags& flags) {
  const std::vector<std::string> hosts = GetHosts(flags);
  MUSTER_RETURN_IF_ERROR(MakeFolder(flags.out));
  MUSTER_RETURN_IF_ERROR(net::MakeJobCertificates(flags.out, flags.name, hosts, flags.days));
  std::printf("%s: ca, server (%s) and client, for %d days\n", flags.out.c_str(),
              absl::StrJoin(hosts, ", ").c_str(), flags.days);
  return absl::OkStatus();
}

}  // namespace

void AddCerts(CLI::App& app) {
  const auto flags = std::make_shared<CertsFlags>();
  CLI::App* const verb = app.add_subcommand(
      "certs", "Make a job's own certificate authority and certificates, for TLS");
  verb->footer(
      "Example:\n"
      "  muster certs --out certs --host 10.0.0.5\n"
      "  muster run --listen 10.0.0.5:7000 --certs certs job.yaml\n"
      "  muster certs --out all --host 10.0.0.5 --host 10.0.0.6  # for muster worker\n"
      "Each of ca, server and client is NAME.pem and its key NAME-key.pem, for their owner alone\n"
      "(0600). Keep ca-key.pem in a separate place: anyone who has it can pretend to be the\n"
      "coordinator of any job that was started with these certificates.");
  verb->add_option("--out", flags->out, "The folder to write them to, made if it does not exist")
      ->required();
  verb->add_option(
          "--host", flags->hosts,
          "A name or address by which the coordinator or a task is reached, besides loopback; "
          "may be repeated")
      ->allow_extra_args(false);
  verb->add_option("--days", flags->days, "Days for which they are valid (default: 365)")
      ->check(CLI::Range(1, 3650));
  verb->add_option("--name", flags->name, "The common name, for people (default: muster)");
  verb->callback([flags] {
    const absl::Status status = MakeCertificates(*flags);
    if (absl::IsInvalidArgument(status)) {
      throw CLI::ValidationError("certs", std::string(ToStd(status.message())));
    }
    FailUnlessOk(status);
  });
}

}  // namespace muster::cli
