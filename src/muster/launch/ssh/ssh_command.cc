#include "muster/launch/ssh/ssh_command.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "muster/control/coordinator.h"

namespace muster::launch::ssh {
namespace {

constexpr char kLine[] = "muster-host: ";
// The coordinator gives up a host that vanishes; this only keeps ssh from waiting indefinitely.
constexpr char kConnectSeconds[] = "ConnectTimeout=10";
constexpr char kAliveSeconds[] = "ServerAliveInterval=30";

// Returns 10.0.0.5 for "::ffff:10.0.0.5", which is how a dual-stack server writes that address.
std::string Plain(const std::string& address) {
  constexpr std::string_view kMapped = "::ffff:";
  return address.starts_with(kMapped) ? address.substr(kMapped.size()) : address;
}

// The script's part after the agent: it ends leftover processes, reads the agent's last words and
// removes all files. When its input ends, because the job's side is gone, it ends the agent.
constexpr char kRunAgent[] = R"sh(
exec 3<&0
"$program" agent --bundle "$bundle" "$@" 3<&- &
agent=$!
echo "muster-host: started" >&2
(
  trap 'kill "$reader"; exit' TERM
  cat <&3 &
  reader=$!
  wait "$reader"
  kill -9 "$agent"
) >/dev/null 2>&1 &
watch=$!
wait "$agent"
code=$?
kill "$watch" 2>/dev/null
wait "$watch" 2>/dev/null
"$program" agent --bundle "$bundle" "$@" --sweep >/dev/null 2>&1
end=$(cat "$bundle/agents/$incarnation.end" 2>/dev/null)
rm -rf "$bundle"
printf 'muster-host: ended %s %s\n' "$code" "$end" >&2
exit 0
)sh";

}  // namespace

std::string Quote(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::vector<std::string> RunScript(const std::vector<std::string>& ssh, const std::string& host,
                                   size_t script_bytes) {
  std::vector<std::string> command = ssh;
  for (const char* const option : {"BatchMode=yes", kConnectSeconds, kAliveSeconds}) {
    command.insert(command.end(), {"-o", option});
  }
  // -T asks for no terminal, which would change bytes. The text has no quotes inside, so that any
  // login shell can read it.
  command.insert(command.end(),
                 {"-T", host, StrCat("exec sh -c 'eval \"$(head -c ", script_bytes, ")\"'")});
  return command;
}

std::string InquiryScript(const Inquiry& inquiry) {
  std::string script = StrCat("echo \"", kLine, "connection $SSH_CONNECTION\"\n", "echo \"", kLine,
                              "machine $(uname -s) $(uname -m)\"\n",
                              "if [ \"$(muster --version 2>/dev/null)\" = ", Quote(inquiry.version),
                              " ]; then echo \"", kLine, "muster $(command -v muster)\"; fi\n");
  for (const char* const needed : {"head", "mktemp"}) {
    script +=
        StrCat("command -v ", needed, " >/dev/null || echo \"", kLine, "missing ", needed, "\"\n");
  }
  for (const std::string& program : inquiry.programs) {
    script += StrCat("command -v ", Quote(program), " >/dev/null || echo ",
                     Quote(StrCat(kLine, "missing ", program)), "\n");
  }
  if (!inquiry.folder.empty()) {
    script += StrCat("[ -d ", Quote(inquiry.folder), " ] || echo ",
                     Quote(StrCat(kLine, "folder ", inquiry.folder)), "\n");
  }
  return script + StrCat("echo \"", kLine, "done\"\n");
}

absl::StatusOr<Answer> ReadAnswer(const std::string& name, std::string_view output) {
  Answer answer{.host = {.name = name}};
  bool done = false;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(std::string(output), '\n'))) {
    if (!line.starts_with(kLine)) continue;
    const std::string said(absl::StripAsciiWhitespace(line.substr(sizeof kLine - 1)));
    const std::string word = said.substr(0, said.find(' '));
    const std::string rest = said.size() > word.size() ? said.substr(word.size() + 1) : "";
    if (word == "connection") {  // client's address and port, server's address and port
      const std::vector<std::string> parts = absl::StrSplit(rest, ' ');
      if (parts.size() == 4) {
        answer.host.coordinator = Plain(parts[0]);
        answer.host.address = Plain(parts[2]);
      }
    } else if (word == "machine") {
      answer.machine = rest;
    } else if (word == "muster") {
      answer.host.muster = rest;
    } else if (word == "missing") {
      answer.problems.push_back(
          StrCat("there is no program '", rest,
                 "' in the PATH of its ssh sessions: install it there or give "
                 "its path"));
    } else if (word == "folder") {
      answer.problems.push_back(StrCat("there is no folder ", rest,
                                       ", in which the tasks are to run: share it with this "
                                       "machine, or send files with --file and --archive"));
    }
    done = done || word == "done";
  }
  if (done && !answer.host.address.empty()) return answer;
  return absl::UnknownError(StrCat(
      "host ", name, ": its shell ran no script: muster needs sshd with a POSIX shell there"));
}

std::string ScriptFor(const AgentScript& script) {
  const std::string name = control::IncarnationName(script.task, script.incarnation);
  std::string text = StrCat(
      "umask 077\ntrap '' HUP INT PIPE\nincarnation=", Quote(name),
      "\nbundle=$(mktemp -d \"${TMPDIR:-/tmp}/muster-", script.job, "-", name,
      "-XXXXXX\") || exit 1\n",
      "fail() { echo \"muster-host: failed $1\" >&2; rm -rf \"$bundle\"; exit 1; }\n",
      "mkdir \"$bundle/agents\" \"$bundle/logs\" \"$bundle/bin\" || fail 'cannot make folders'\n");
  for (const SentFile& file : script.files) {
    text += StrCat("head -c ", file.bytes, " > \"$bundle/", file.name, "\" || fail 'cannot write ",
                   file.name, "'\n[ \"$(wc -c < \"$bundle/", file.name, "\")\" -eq ", file.bytes,
                   " ] || fail 'did not get ", file.name, "'\n");
    if (file.name != kStagedFile) continue;
    const std::string work = StrCat("\"$bundle/work/", job::TaskName(script.task), "\"");
    text += StrCat("mkdir -p \"$bundle/staged\" ", work, " && tar -xf \"$bundle/", kStagedFile,
                   "\" -C \"$bundle/staged\" && rm \"$bundle/", kStagedFile,
                   "\" || fail 'cannot unpack the staged files with tar'\n",
                   "for item in \"$bundle\"/staged/* \"$bundle\"/staged/.[!.]*; do\n",
                   "  if [ -e \"$item\" ] || [ -h \"$item\" ]; then ln -s \"$item\" ", work,
                   "/; fi\ndone\n");
  }
  text += script.program.empty()
              ? StrCat("program=\"$bundle/", kProgramFile, "\"\nchmod 700 \"$program\"\n")
              : StrCat("program=", Quote(script.program), "\n");
  text += StrCat("\"$program\" --version >/dev/null || fail 'muster does not run there'\nset --");
  for (const std::string& flag : script.flags) text += StrCat(" ", Quote(flag));
  return text + kRunAgent;
}

std::string DescribeSshFailure(const std::string& host, std::string_view said) {
  std::string last;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(std::string(said), '\n'))) {
    const std::string text(absl::StripAsciiWhitespace(line));
    if (!text.empty() && !text.starts_with("Warning: Permanently added")) last = text;
  }
  std::string advice = StrCat("ssh ", host, " true must work");
  if (last.find("Could not resolve") != std::string::npos) {
    advice = "check the name, or give it an entry in ~/.ssh/config";
  } else if (last.find("Permission denied") != std::string::npos) {
    advice = StrCat("muster uses ssh without a password: give it a key with ssh-copy-id ", host,
                    ", or another with --ssh 'ssh -i KEY'");
  } else if (last.find("Host key verification failed") != std::string::npos) {
    advice = StrCat("run ssh ", host, " true once and accept its key");
  }
  return StrCat("host ", host, ": ", last.empty() ? "ssh failed" : last, ": ", advice);
}

}  // namespace muster::launch::ssh
