#include "muster/control/job_metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::control {
namespace {

using formats::Json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(JobMetricsTest, SaysWhatADashboardNeeds) {
  const Json job = {{"name", "j"},
                    {"phase", "active"},
                    {"failures", {{{"task", "worker-1"}}}},
                    {"tasks",
                     {{{"task", "chief-0"},
                       {"phase", "running"},
                       {"restarts", 0},
                       {"step", 120},
                       {"counts", {{"trained", 1200}, {"dropped", 3}}},
                       {"cpu_seconds", 1.5},
                       {"pss_bytes", 4096}},
                      {{"task", "worker-0"}, {"phase", "running"}, {"restarts", 0}},
                      {{"task", "worker-1"}, {"phase", "starting"}, {"restarts", 2}}}}};
  EXPECT_EQ(JobMetrics(job),
            "# HELP muster_job_phase 1 for the phase that the job is in.\n"
            "# TYPE muster_job_phase gauge\n"
            "muster_job_phase{job=\"j\",phase=\"active\"} 1\n"
            "# HELP muster_tasks Tasks of the job by type and phase.\n"
            "# TYPE muster_tasks gauge\n"
            "muster_tasks{job=\"j\",type=\"chief\",phase=\"running\"} 1\n"
            "muster_tasks{job=\"j\",type=\"worker\",phase=\"running\"} 1\n"
            "muster_tasks{job=\"j\",type=\"worker\",phase=\"starting\"} 1\n"
            "# HELP muster_task_restarts_total Restarts of a task after failures of its own.\n"
            "# TYPE muster_task_restarts_total counter\n"
            "muster_task_restarts_total{job=\"j\",task=\"chief-0\"} 0\n"
            "muster_task_restarts_total{job=\"j\",task=\"worker-0\"} 0\n"
            "muster_task_restarts_total{job=\"j\",task=\"worker-1\"} 2\n"
            "# HELP muster_task_step The last step that a task reported.\n"
            "# TYPE muster_task_step gauge\n"
            "muster_task_step{job=\"j\",task=\"chief-0\"} 120\n"
            "# HELP muster_task_records_total Records that a task reported, by kind.\n"
            "# TYPE muster_task_records_total counter\n"
            "muster_task_records_total{job=\"j\",task=\"chief-0\",kind=\"trained\"} 1200\n"
            "muster_task_records_total{job=\"j\",task=\"chief-0\",kind=\"dropped\"} 3\n"
            "# HELP muster_task_cpu_seconds_total CPU time of a task's processes.\n"
            "# TYPE muster_task_cpu_seconds_total counter\n"
            "muster_task_cpu_seconds_total{job=\"j\",task=\"chief-0\"} 1.5\n"
            "# HELP muster_task_memory_bytes Memory of a task's processes (PSS).\n"
            "# TYPE muster_task_memory_bytes gauge\n"
            "muster_task_memory_bytes{job=\"j\",task=\"chief-0\"} 4096\n"
            "# HELP muster_failures_total Failures of tasks that the job remembers.\n"
            "# TYPE muster_failures_total counter\n"
            "muster_failures_total{job=\"j\"} 1\n");
}

// A program names its counts.
TEST(JobMetricsTest, NamesCannotForgeASample) {
  const Json job = {
      {"name", "j"},
      {"tasks",
       {{{"task", "worker-0"}, {"phase", "running"}, {"counts", {{"a\"} 1\nforged{x=\"\\", 7}}}}}}};
  const std::string text = JobMetrics(job);
  EXPECT_THAT(text, HasSubstr("kind=\"a\\\"} 1\\nforged{x=\\\"\\\\\"} 7\n"));
  EXPECT_THAT(text, Not(HasSubstr("\nforged")));
}

TEST(JobMetricsTest, AJobThatHasNotBegunHasNoTasks) {
  EXPECT_THAT(JobMetrics(Json::object()), Not(HasSubstr("muster_tasks")));
}

}  // namespace
}  // namespace muster::control
