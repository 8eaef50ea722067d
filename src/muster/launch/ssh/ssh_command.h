// The commands for ssh and the scripts for the shell on a host, as text. docs/hosts.md says what a
// host must have: sshd, a POSIX shell, head, mktemp and, for staged files, tar.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/control/launcher.h"
#include "muster/launch/ssh/hosts.h"

namespace muster::launch::ssh {

// ssh's exit code when it could not reach the host or lost it.
inline constexpr int kSshFailed = 255;

// Quotes text as one word for a POSIX shell.
std::string Quote(std::string_view text);

// The command that runs the first `script_bytes` bytes of its input as a script on the host, with
// what follows as the script's input. The script is sent as input because a command line can be
// read by every user of both machines. ssh must not ask for anything (BatchMode).
std::vector<std::string> RunScript(const std::vector<std::string>& ssh, const std::string& host,
                                   size_t script_bytes);

// What a job asks a host before it begins. Each answer is a line: "muster-host: ...".
struct Inquiry {
  std::vector<std::string> programs = {};  // that must be there
  std::string folder = {};                 // a folder that must be there; "": none
  std::string version = {};                // of this muster, as --version prints it
};
std::string InquiryScript(const Inquiry& inquiry);

// What a host reported about itself.
struct Answer {
  Host host = {};
  std::string machine = {};                // "Linux x86_64"
  std::vector<std::string> problems = {};  // each a phrase that says what to do
};
// UNKNOWN if the output has no answer.
absl::StatusOr<Answer> ReadAnswer(const std::string& name, std::string_view output);

// A file that follows a script in its input, for the host's folder.
struct SentFile {
  std::string name = {};
  size_t bytes = 0;
};

// The script that makes a private folder, takes the files into it and runs one agent. It removes
// everything when the agent has ended; it ends the agent when its own input ends. Its last line on
// stderr is kEndLine and the agent's end as JSON, if the agent wrote one.
struct AgentScript {
  std::string job = {};
  job::TaskId task = {};
  int64_t incarnation = 0;
  std::vector<SentFile> files = {};     // secrets first; kProgramFile and kStagedFile are special
  std::string program = {};             // muster's path on the host; "": kProgramFile
  std::vector<std::string> flags = {};  // of `muster agent`, without --bundle
};
inline constexpr char kProgramFile[] = "bin/muster";
inline constexpr char kStagedFile[] = "staged.tar";
inline constexpr char kStartedLine[] = "muster-host: started";
inline constexpr char kEndLine[] = "muster-host: ended ";
std::string ScriptFor(const AgentScript& script);

// Why ssh could not reach a host, in one line with what to do, from what it wrote to stderr.
std::string DescribeSshFailure(const std::string& host, std::string_view said);

}  // namespace muster::launch::ssh
