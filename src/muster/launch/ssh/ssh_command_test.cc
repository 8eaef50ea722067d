// The scripts run in a shell of this machine, with a program in muster's place.
#include "muster/launch/ssh/ssh_command.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/io/local_file_system.h"
#include "muster/process/capture.h"

namespace muster::launch::ssh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ScriptTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/ssh-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    ASSERT_EQ(mkdir((folder_ + "/tmp").c_str(), 0700), 0);
  }
  void TearDown() override { EXPECT_TRUE(files_->RemoveAll(folder_).ok()); }

  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(io::WriteFileAtomically(*files_, path, text).ok());
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  // As a host's sshd does, with `input` after the script. `stays`: the input does not end.
  process::CapturedRun Run(const std::string& script, const std::string& input,
                           bool stays = false) {
    const std::string file = Write("input", script + input);
    const std::vector<std::string> command = RunScript({"ssh"}, "host", script.size());
    process::ChildSpec spec;
    const std::string fifo = Quote(folder_ + "/fifo");
    spec.argv = {"sh", "-c",
                 stays ? StrCat("mkfifo ", fifo, "; exec 5<>", fifo, "; cat ", Quote(file),
                                " >&5; exec <&5 5<&-; ", command.back())
                       : StrCat("exec < ", Quote(file), "; ", command.back())};
    spec.environment = process::CurrentEnvironment();
    process::SetEnvironment("TMPDIR", folder_ + "/tmp", &spec.environment);
    process::SetEnvironment("SSH_CONNECTION", "10.0.0.9 4000 ::ffff:10.0.0.1 22",
                            &spec.environment);
    return *process::RunCaptured(nullptr, spec, 60, 1 << 20);
  }
  std::vector<std::string> Left() { return *files_->List(folder_ + "/tmp"); }

  const std::unique_ptr<io::FileSystem> files_ = io::NewLocalFileSystem();
  std::string folder_;
};

TEST_F(ScriptTest, AQuotedWordIsOneWordWhateverItHolds) {
  const std::string word = "a 'b' \"$c\" \\ `d`\n;e";
  EXPECT_EQ(Run(StrCat("printf %s ", Quote(word), "\n"), "").output, word);
}

TEST_F(ScriptTest, AHostSaysWhatItLacks) {
  const std::string script =
      InquiryScript({.programs = {"sh", "no such"}, .folder = "/nowhere", .version = "muster 0"});
  const auto answer = ReadAnswer("h", StrCat("Welcome!\n", Run(script, "").output));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->host, (Host{"h", "10.0.0.1", "10.0.0.9", ""}));
  EXPECT_THAT(answer->machine, HasSubstr("Linux "));
  EXPECT_THAT(answer->problems, ElementsAre(HasSubstr("'no such'"), HasSubstr("/nowhere")));
  EXPECT_FALSE(ReadAnswer("h", "This account is not available.\n").ok());
}

TEST_F(ScriptTest, AnAgentRunsInAPrivateFolderThatIsGoneAfterwards) {
  const std::string program =
      Write("muster",
            "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n"
            "case \"$*\" in *--sweep*) exit 0;; esac\n"
            "echo \"flags: $*\"; stat -c '%a %n' \"$3\"/*; cat \"$3/token\"\n"
            "printf '%s\\n' '{\"exit_code\": 3, \"line\": \"a\\tb\\\\d\"}' "
            "> \"$3/agents/worker-1.2.end\"\n",
            0700);
  const std::string script = ScriptFor({.job = "j",
                                        .task = {job::TaskType::kWorker, 1},
                                        .incarnation = 2,
                                        .files = {{"token", 6}, {"data_key", 3}},
                                        .program = program,
                                        .flags = {"--task", "it's"}});
  const std::string said = Run(script, "secretkey", /*stays=*/true).output;
  EXPECT_THAT(said, HasSubstr("--task it's"));
  EXPECT_THAT(said, HasSubstr("secret"));
  EXPECT_THAT(said, HasSubstr("600 "));
  EXPECT_THAT(said, Not(HasSubstr("640 ")));
  EXPECT_THAT(said, HasSubstr(kStartedLine));
  EXPECT_THAT(said, HasSubstr(StrCat(kEndLine, "0 {\"exit_code\": 3, \"line\": \"a\\tb\\\\d\"}")));
  EXPECT_THAT(Left(), ElementsAre());
}

TEST_F(ScriptTest, WhenTheInputEndsTheAgentDoes) {
  const std::string program = Write("muster",
                                    "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n"
                                    "case \"$*\" in *--sweep*) exit 0;; esac\n"
                                    "exec sleep 300\n",
                                    0700);
  const std::string script = ScriptFor(
      {.job = "j", .task = {job::TaskType::kWorker, 1}, .incarnation = 2, .program = program});
  const process::CapturedRun run = Run(script, "");
  EXPECT_FALSE(run.timed_out);
  EXPECT_THAT(run.output, HasSubstr(StrCat(kEndLine, "137")));
  EXPECT_THAT(Left(), ElementsAre());
}

TEST_F(ScriptTest, AFileThatDoesNotArriveWholeStartsNothing) {
  const std::string script = ScriptFor({.job = "j",
                                        .task = {job::TaskType::kWorker, 1},
                                        .incarnation = 2,
                                        .files = {{"token", 64}},
                                        .program = "true"});
  const std::string said = Run(script, "short").output;
  EXPECT_THAT(said, HasSubstr("failed did not get token"));
  EXPECT_THAT(said, Not(HasSubstr(kStartedLine)));
  EXPECT_THAT(Left(), ElementsAre());
}

TEST(SshFailureTest, SaysWhatToDo) {
  EXPECT_EQ(
      DescribeSshFailure("h", "ssh: Could not resolve hostname h: Name or service not known\r\n"),
      "host h: ssh: Could not resolve hostname h: Name or service not known: check the name, "
      "or give it an entry in ~/.ssh/config");
  EXPECT_THAT(DescribeSshFailure("h", "me@h: Permission denied (publickey)."),
              HasSubstr("ssh-copy-id h"));
  EXPECT_THAT(DescribeSshFailure("h", "Host key verification failed."),
              HasSubstr("accept its key"));
  EXPECT_THAT(DescribeSshFailure("h", ""), HasSubstr("ssh h true must work"));
}

TEST(SshCommandTest, NothingSecretStandsInACommandLine) {
  const auto command = RunScript({"ssh", "-p", "7"}, "h", 12);
  EXPECT_THAT(command, testing::Contains("BatchMode=yes"));
  EXPECT_EQ(command[2], "7");
  EXPECT_EQ(command.back(), "exec sh -c 'eval \"$(head -c 12)\"'");
}

}  // namespace
}  // namespace muster::launch::ssh
