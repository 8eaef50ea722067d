#include "muster/process/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "muster/process/capture.h"
#include "muster/process/test_program.h"

namespace muster::process {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class DiagnosisTest : public testing::Test {
 protected:
  void SetUp() override { tree_ = ProcessTree::Create().value(); }
  void TearDown() override { EXPECT_TRUE(tree_->Stop({.grace_seconds = 0}).ok()); }

  std::unique_ptr<Child> Start(const std::vector<std::string>& argv) {
    ChildSpec spec = {.argv = argv, .environment = CurrentEnvironment()};
    spec.stdout_fd = pipe_.writing.get();
    auto child = tree_->Start(spec);
    EXPECT_TRUE(child.ok()) << child.status();
    return *std::move(child);
  }
  // A stand-in for py-spy.
  DiagnosisOptions PySpy(const std::string& script, double timeout = kTestSeconds) {
    return {.py_spy = folder_.Write("py-spy", "#!/bin/sh\n" + script, true),
            .py_spy_timeout_seconds = timeout};
  }

  std::unique_ptr<ProcessTree> tree_;
  SystemClock clock_;
  TestFolder folder_;
  TestPipe pipe_;
};

TEST_F(DiagnosisTest, AWaitingProgramIsSeenWaiting) {
  auto child = Start({"sleep", "1000"});
  ASSERT_TRUE(Eventually([&] { return ReadStat(child->pid())->state == 'S'; }));
  const CpuSample before = SampleCpu(*tree_, clock_);
  const Diagnosis diagnosis = Diagnose(tree_.get(), before, clock_, {});
  ASSERT_THAT(diagnosis.processes, SizeIs(1));
  const ProcessDiagnosis& process = diagnosis.processes[0];
  EXPECT_EQ(process.pid, child->pid());
  EXPECT_EQ(process.command, "sleep 1000");
  ASSERT_THAT(process.threads, SizeIs(1));
  EXPECT_EQ(process.threads[0].state, 'S');
  EXPECT_EQ(process.threads[0].names, "sleep");
  if (getuid() == 0) {  // others may not read it
    EXPECT_THAT(process.threads[0].kernel_stack, HasSubstr("nanosleep"));
  }
  EXPECT_THAT(PrintDiagnosis(diagnosis), AllOf(HasSubstr("it waits"), HasSubstr("(sleep 1000)"),
                                               HasSubstr("1 thread (sleep) waiting")));
}

TEST_F(DiagnosisTest, ABusyProgramIsSeenComputing) {
  const CpuSample before = SampleCpu(*tree_, clock_);
  auto child = Start({"sh", "-c", "while :; do :; done"});
  ASSERT_TRUE(Eventually([&] { return ReadStat(child->pid())->cpu_seconds > 0.05; }));
  const Diagnosis diagnosis = Diagnose(tree_.get(), before, clock_, {});
  ASSERT_THAT(diagnosis.processes, SizeIs(1));
  EXPECT_GT(diagnosis.cores, 0);
  EXPECT_EQ(diagnosis.processes[0].cores, diagnosis.cores);
  EXPECT_THAT(PrintDiagnosis({.interval_seconds = 2, .cores = 1, .processes = diagnosis.processes}),
              HasSubstr("1.00 cores over 2.0 s: it computes"));
}

TEST_F(DiagnosisTest, ThreadsThatDoTheSameAreOneGroup) {
  auto child = Start({"python3", "-S", "-c",
                      "import threading\n"
                      "e = threading.Event()\n"
                      "for i in range(9): threading.Thread(target=e.wait).start()\n"
                      "print('up', flush=True)\ne.wait()\n"});
  pipe_.ReadLine();
  // Some may still be on their way to where they wait.
  Diagnosis diagnosis;
  EXPECT_TRUE(Eventually([&] {
    diagnosis = Diagnose(tree_.get(), SampleCpu(*tree_, clock_), clock_, {.py_spy = ""});
    return diagnosis.processes.size() == 1 && diagnosis.processes[0].threads.size() == 1 &&
           diagnosis.processes[0].threads[0].count == 10;
  }));
  ASSERT_THAT(diagnosis.processes, SizeIs(1));
  ASSERT_THAT(diagnosis.processes[0].threads, SizeIs(1)) << PrintDiagnosis(diagnosis);
  EXPECT_EQ(diagnosis.processes[0].threads[0].count, 10);
  EXPECT_THAT(diagnosis.processes[0].threads[0].names, HasSubstr(", ..."));
  EXPECT_EQ(diagnosis.processes[0].python_stack, "");
}

TEST_F(DiagnosisTest, PySpysStackIsShownForPython) {
  auto child =
      Start({"python3", "-S", "-c", "import signal; print('up', flush=True); signal.pause()"});
  pipe_.ReadLine();
  auto other = Start({"sleep", "1000"});
  const CpuSample before = SampleCpu(*tree_, clock_);
  const Diagnosis diagnosis = Diagnose(tree_.get(), before, clock_, PySpy("echo \"stack: $*\""));
  ASSERT_THAT(diagnosis.processes, SizeIs(2));
  for (const ProcessDiagnosis& process : diagnosis.processes) {
    EXPECT_EQ(process.python_stack, process.pid == child->pid()
                                        ? StrCat("stack: dump --nonblocking --pid ", child->pid())
                                        : "");
  }
  EXPECT_THAT(PrintDiagnosis(diagnosis), HasSubstr("  | stack: dump"));
}

TEST_F(DiagnosisTest, AHangingOrMissingPySpyDoesNoHarm) {
  auto child =
      Start({"python3", "-S", "-c", "import signal; print('up', flush=True); signal.pause()"});
  pipe_.ReadLine();
  const CpuSample before = SampleCpu(*tree_, clock_);
  Diagnosis diagnosis =
      Diagnose(tree_.get(), before, clock_, PySpy("echo begun; sleep 1000; echo end", 0.5));
  ASSERT_THAT(diagnosis.processes, SizeIs(1));
  EXPECT_THAT(diagnosis.processes[0].python_stack,
              AllOf(HasSubstr("stopped after 0.5 s"), Not(HasSubstr("end"))));
  // What py-spy had started got the same signal, but may take a moment to end.
  EXPECT_TRUE(Eventually([&] { return tree_->Running().size() == 1; })) << "py-spy left something";
  diagnosis = Diagnose(tree_.get(), before, clock_, {.py_spy = "py-spy-that-is-not-installed"});
  ASSERT_THAT(diagnosis.processes, SizeIs(1));
  EXPECT_EQ(diagnosis.processes[0].python_stack, "");
}

TEST_F(DiagnosisTest, NothingRuns) {
  EXPECT_EQ(PrintDiagnosis(Diagnose(tree_.get(), {}, clock_, {})), "no process runs\n");
}

TEST_F(DiagnosisTest, CaptureKeepsABoundedOutput) {
  const auto run = RunCaptured(tree_.get(), Shell("echo out; echo err >&2; seq 1 100000; exit 3"),
                               kTestSeconds, 1000);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->exit.code, 3);
  EXPECT_FALSE(run->timed_out);
  EXPECT_THAT(run->output, AllOf(SizeIs(1000), testing::StartsWith("out\nerr\n1\n2\n")));
}

}  // namespace
}  // namespace muster::process
