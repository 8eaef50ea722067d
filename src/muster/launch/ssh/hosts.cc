#include "muster/launch/ssh/hosts.h"

#include <algorithm>

#include "absl/strings/str_split.h"

#include "muster/files/file_systems.h"
#include "muster/io/private_file_system.h"

namespace muster::launch::ssh {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr uint64_t kMaxBytes = uint64_t{1} << 20;

std::vector<std::string> Words(std::string_view text, char between) {
  return absl::StrSplit(std::string(text), between, absl::SkipWhitespace());
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseHostNames(std::string_view text) {
  std::vector<std::string> names = Words(text, ',');
  const auto fail = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        StrCat("--hosts '", text, "': ", why, "; give names as ssh knows them, as in a,b,me@c"));
  };
  if (names.empty()) return fail("it names no host");
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_name =
        names[i][0] != '-' && names[i].find_first_of(" \t\n'\"") == std::string::npos;
    if (!is_name) return fail(StrCat("'", names[i], "' is no host's name"));
    if (std::find(names.begin(), names.begin() + static_cast<ptrdiff_t>(i), names[i]) !=
        names.begin() + static_cast<ptrdiff_t>(i)) {
      return fail(StrCat(names[i], " is there twice"));
    }
  }
  return names;
}

absl::StatusOr<std::vector<std::string>> ParseSshCommand(std::string_view text) {
  std::vector<std::string> words = Words(text, ' ');
  if (!words.empty()) return words;
  return absl::InvalidArgumentError("--ssh '': give a command, as in --ssh 'ssh -p 2222 -i key'");
}

std::string HostsPath(const control::JobFolder& folder) { return folder.path + "/hosts.json"; }

std::string HostFolder(const control::JobFolder& folder, size_t number) {
  return StrCat(folder.path, "/hosts/", number);
}

std::string StagedArchive(const control::JobFolder& folder) { return folder.path + "/staged.tar"; }

absl::Status WriteHosts(const control::JobFolder& folder, const Hosts& hosts) {
  Json json = {{"ssh", hosts.ssh}, {"hosts", Json::array()}};
  for (const Host& host : hosts.all) {
    json["hosts"].push_back({{"name", host.name},
                             {"address", host.address},
                             {"coordinator", host.coordinator},
                             {"muster", host.muster}});
  }
  return io::WriteFileAtomically(*io::NewPrivateFileSystem(), HostsPath(folder),
                                 formats::PrintJson(json));
}

absl::StatusOr<Hosts> ReadHosts(const control::JobFolder& folder) {
  const std::string path = HostsPath(folder);
  MUSTER_ASSIGN_OR_RETURN(const std::string text,
                          io::ReadFile(*files::OpenFileSystems(), path, kMaxBytes));
  MUSTER_ASSIGN_OR_RETURN(const Json json, formats::ParseJsonObject(text, path));
  JsonFields fields(json, path);
  Hosts hosts;
  hosts.ssh = fields.Texts("ssh");
  for (const Json& each : fields.List("hosts")) {
    JsonFields host(each, path);
    hosts.all.push_back({.name = host.Text("name"),
                         .address = host.Text("address"),
                         .coordinator = host.Text("coordinator"),
                         .muster = host.Text("muster")});
    fields.Update(host.status());
  }
  if (hosts.ssh.empty() || hosts.all.empty()) fields.Fail("names no hosts");
  MUSTER_RETURN_IF_ERROR(fields.status());
  return hosts;
}

}  // namespace muster::launch::ssh
