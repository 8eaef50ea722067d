#include "muster/control/job_metrics.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"

#include "muster/base/strings.h"

namespace muster::control {
namespace {

using formats::Json;
using formats::JsonFields;

using Labels = std::vector<std::pair<const char*, std::string>>;

// Escapes \ and " and line ends, as the format requires.
std::string Escaped(const std::string& value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '\\' || c == '"') escaped += '\\';
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// Prints one family: its head, then its samples.
class Family {
 public:
  Family(const std::string& name, const char* type, const char* help)
      : name_(name),
        text_(StrCat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n")) {}
  void Add(const Labels& labels, const std::string& value) {
    text_ += name_;
    const char* before = "{";
    for (const auto& [name, text] : labels) {
      text_ += StrCat(before, name, "=\"", Escaped(text), "\"");
      before = ",";
    }
    text_ += StrCat("} ", value, "\n");
    is_empty_ = false;
  }
  // Returns "" if there are no samples.
  std::string text() const { return is_empty_ ? "" : text_; }

 private:
  const std::string name_;
  std::string text_;
  bool is_empty_ = true;
};

std::string Number(double value) { return absl::StrFormat("%.17g", value); }

}  // namespace

std::string JobMetrics(const Json& job) {
  JsonFields fields(job, "job");
  const std::string name = fields.Text("name");
  Family phase("muster_job_phase", "gauge", "1 for the phase that the job is in.");
  Family tasks("muster_tasks", "gauge", "Tasks of the job by type and phase.");
  Family restarts("muster_task_restarts_total", "counter",
                  "Restarts of a task after failures of its own.");
  Family steps("muster_task_step", "gauge", "The last step that a task reported.");
  Family records("muster_task_records_total", "counter", "Records that a task reported, by kind.");
  Family cpu("muster_task_cpu_seconds_total", "counter", "CPU time of a task's processes.");
  Family memory("muster_task_memory_bytes", "gauge", "Memory of a task's processes (PSS).");
  Family failures("muster_failures_total", "counter", "Failures of tasks that the job remembers.");
  if (fields.Has("phase")) phase.Add({{"job", name}, {"phase", fields.Text("phase")}}, "1");
  failures.Add({{"job", name}}, StrCat(fields.List("failures").size()));
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const Json& each : fields.List("tasks")) {
    JsonFields task(each, "task");
    const std::string id = task.Text("task");
    const Labels labels = {{"job", name}, {"task", id}};
    ++counts[{id.substr(0, id.rfind('-')), task.Text("phase")}];
    restarts.Add(labels, StrCat(task.Int("restarts", 0, 0, INT64_MAX)));
    if (task.Has("step")) steps.Add(labels, StrCat(task.Int("step", 0, 0, INT64_MAX)));
    if (task.Has("cpu_seconds")) cpu.Add(labels, Number(task.Number("cpu_seconds", 0)));
    if (task.Has("pss_bytes")) memory.Add(labels, StrCat(task.Int("pss_bytes", 0, 0, INT64_MAX)));
    for (const auto& [kind, count] : task.Object("counts").items()) {
      if (!count.is_number_integer()) continue;
      records.Add({{"job", name}, {"task", id}, {"kind", kind}}, StrCat(count.get<int64_t>()));
    }
  }
  for (const auto& [key, count] : counts) {
    tasks.Add({{"job", name}, {"type", key.first}, {"phase", key.second}}, StrCat(count));
  }
  std::string text;
  for (const Family* family :
       {&phase, &tasks, &restarts, &steps, &records, &cpu, &memory, &failures}) {
    text += family->text();
  }
  return text;
}

}  // namespace muster::control
