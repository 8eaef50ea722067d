#include "muster/cli/jobs/job_printer.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "muster/base/number_text.h"
#include "muster/base/terminal.h"
#include "muster/job/failure_advice.h"
#include "muster/job/job_spec.h"

namespace muster::cli {
namespace {

using formats::Json;
using formats::JsonFields;
using Row = std::vector<std::string>;

constexpr size_t kMinAbout = 20;  // columns for the last cell of a row, however narrow it is

std::string Megabytes(int64_t bytes) {
  return bytes > 0 ? absl::StrFormat("%.0f MB", static_cast<double>(bytes) * 1e-6) : "";
}

// Says when a task that waits starts again, if not at once. The text does not count down: a
// follower of the job shows each new text.
std::string PauseText(JsonFields& task) {
  if (!task.Has("pause")) return "";
  return StrCat("; it starts again at the earliest ", FormatDuration(task.Number("pause", 0)),
                " after its end");
}

// Whether somebody works on the job, who will start its tasks.
bool GoesOn(JsonFields& job) { return job.Text("coordinator").empty(); }

// Why it does not start or is stopped, else how it ended (before), else "".
std::string EndText(const Json& task, bool job_goes_on) {
  JsonFields fields(task, "task");
  if (std::string problem = fields.Text("problem"); !problem.empty()) return problem;
  const std::string pause = job_goes_on ? PauseText(fields) : "";
  const std::string reason = fields.Text("stop_reason");
  if (!reason.empty()) return reason + pause;
  if (!fields.Has("last_end")) return "";
  JsonFields end(fields.Object("last_end"), "end");
  return StrCat(fields.Text("phase") == "running" ? "before: " : "", end.Text("text"), pause);
}

// Of a task that runs on this machine, for kill and gdb.
std::string GetPid(JsonFields& fields) {
  const bool is_elsewhere = fields.Has("place");
  const int64_t pid = fields.Int("pid", 0, 0, INT64_MAX);
  return pid > 0 && !is_elsewhere && fields.Text("phase") == "running" ? StrCat(pid) : "";
}

Row TaskRow(const Json& task, bool job_goes_on) {
  JsonFields fields(task, "task");
  const int64_t restarts = fields.Int("restarts", 0, 0, 1 << 30);
  const bool measured = fields.Has("cpu_seconds");
  std::string about = EndText(task, job_goes_on);
  if (about.empty()) about = fields.Text("said");
  return {fields.Text("task"),
          fields.Text("phase"),
          restarts > 0 ? StrCat(restarts) : "",
          GetPid(fields),
          fields.Text("address"),
          measured ? FormatDuration(fields.Number("cpu_seconds", 0)) : "",
          Megabytes(fields.Int("pss_bytes", 0, 0, int64_t{1} << 60)),
          measured ? FormatDuration(fields.Number("idle_seconds", 0)) : "",
          fields.Has("step") ? StrCat(fields.Int("step", 0, 0, INT64_MAX)) : "",
          about};
}

std::vector<size_t> GetWidths(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  return widths;
}

// Cuts the last cell of each row, so that a table of these rows is no wider than `columns`.
void FitLastCells(size_t columns, std::vector<Row>* rows) {
  size_t before = 0;
  std::vector<size_t> widths = GetWidths(*rows);
  widths.pop_back();
  for (const size_t width : widths) before += width > 0 ? width + 2 : 0;
  const size_t left = std::max(kMinAbout, columns > before ? columns - before : 0);
  for (Row& row : *rows) row.back() = FitColumns(row.back(), left);
}

std::string Aligned(const std::vector<Row>& rows) {
  const std::vector<size_t> widths = GetWidths(rows);
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (widths[i] == 0) continue;
      std::string cell = row[i];
      cell.resize(widths[i] + 2, ' ');
      line += cell;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

// What became of the records of a native training, as its chief counts them; "" for another job.
std::string RecordLine(const Json& tasks) {
  for (const Json& task : tasks) {
    JsonFields counts(JsonFields(task, "task").Object("counts"), "counts");
    if (!counts.Has("trained")) continue;
    const auto of = [&](const char* name) { return counts.Int(name, 0, 0, INT64_MAX); };
    return StrCat("records: ", of("trained"), " trained, ", of("dropped"), " dropped, ",
                  of("repeated"), " repeated\n");
  }
  return "";
}

// What a cluster says of the job's settings.
std::string NoteLines(JsonFields& job) {
  std::string text;
  for (const std::string& note : job.Texts("notes")) text += StrCat("note: ", note, "\n");
  return text;
}

// Of a job whose coordinator does not answer, so that what it wrote down last is shown.
std::string AgeLine(JsonFields& job) {
  const std::string phase = job.Text("phase");
  const bool is_over = phase == "succeeded" || phase == "failed";
  if (is_over || !job.Has("age")) return "";
  return StrCat("what follows was true ", FormatDuration(job.Number("age", 0)), " ago\n");
}

// "" where none vanished.
std::string LossLines(const Json& losses) {
  std::string text;
  for (const Json& loss : losses) text += JsonFields(loss, "lost checkpoints").Text("text") + "\n";
  return text;
}

std::string WhoAndHow(const Json& failure) {
  JsonFields fields(failure, "failure");
  return StrCat(fields.Text("task"), ": ", fields.Text("text"));
}

double GetSeconds(const Json& failure) {
  return JsonFields(failure, "failure").Number("seconds", 0);
}

// The failure that ended the job: the last one that followed from no other.
size_t GetCause(const Json& failures) {
  size_t cause = 0;
  for (size_t i = 0; i < failures.size(); ++i) {
    if (!JsonFields(failures[i], "failure").Bool("follow_up", false)) cause = i;
  }
  return cause;
}

}  // namespace

std::string JobLine(const Json& job) {
  JsonFields fields(job, "job");
  if (fields.Bool("lost", false)) {
    return StrCat("job ", fields.Text("name"), " ", fields.Text("coordinator"));
  }
  std::string line = StrCat("job ", fields.Text("name"), " ", fields.Text("phase"));
  const double start = fields.Number("start_time", 0), end = fields.Number("completion_time", 0);
  if (end >= start && start > 0) {
    line += StrCat(" in ", FormatDuration(fields.Number("took", end - start)));
  }
  if (fields.Text("phase") == "finishing" && fields.Has("waiting_for")) {
    line += StrCat(": it waits for ", fields.Text("waiting_for"));
  }
  if (const auto warnings = fields.Texts("warnings"); !warnings.empty()) {
    line += StrCat(", although ", absl::StrJoin(warnings, " and "));
  }
  if (!fields.Text("message").empty()) line += StrCat(": ", fields.Text("message"));
  if (!fields.Text("coordinator").empty()) line += StrCat(" (", fields.Text("coordinator"), ")");
  return line;
}

std::string JobTable(const Json& job) {
  std::vector<Row> rows = {
      {"TASK", "STATE", "RESTARTS", "PID", "ADDRESS", "CPU", "MEMORY", "SILENT", "STEP", ""}};
  JsonFields fields(job, "job");
  for (const Json& task : fields.List("tasks")) rows.push_back(TaskRow(task, GoesOn(fields)));
  for (size_t column = 2; column < rows[0].size(); ++column) {  // without a heading when empty
    const bool any = std::any_of(rows.begin() + 1, rows.end(),
                                 [&](const Row& row) { return !row[column].empty(); });
    if (!any) rows[0][column].clear();
  }
  std::string place = fields.Text("application");  // of YARN
  if (!place.empty()) place += StrCat(", ", fields.Text("page"), "\n");
  return StrCat(JobLine(job), "\n", place, AgeLine(fields), NoteLines(fields),
                RecordLine(fields.List("tasks")), LossLines(fields.List("lost_checkpoints")),
                rows.size() > 1 ? Aligned(rows) : "");
}

std::string JobList(const std::vector<Json>& jobs, double now, size_t columns) {
  // Of jobs on YARN: the id by which Hadoop's own programs know them.
  const bool any_application = std::ranges::any_of(
      jobs, [](const Json& job) { return JsonFields(job, "job").Has("application"); });
  std::vector<Row> rows = {
      {"JOB", "STATE", "TASKS", "AGE", "TOOK", any_application ? "APPLICATION" : "", ""}};
  for (const Json& job : jobs) {
    JsonFields fields(job, "job");
    const double start = fields.Number("start_time", 0);
    const double end = fields.Number("completion_time", 0);
    // Since it was started or resumed last, until it ended or was suspended.
    const double took = fields.Number("took", start > 0 && end >= start ? end - start : -1);
    const double born = fields.Number("created", start);  // a job that is resumed starts anew
    const auto warnings = fields.Texts("warnings");
    std::string about = fields.Text("message");
    if (about.empty()) about = absl::StrJoin(warnings, " and ");
    if (about.empty()) about = fields.Text("coordinator");
    const size_t tasks =
        fields.List("tasks").size();  // 0: who described the job does not know them
    rows.push_back({fields.Text("name"), fields.Bool("lost", false) ? "lost" : fields.Text("phase"),
                    tasks > 0 ? StrCat(tasks) : "",
                    born > 0 ? FormatDuration(std::max(0.0, now - born)) : "",
                    took >= 0 ? FormatDuration(took) : "", fields.Text("application"), about});
  }
  if (columns > 0) FitLastCells(columns, &rows);
  return Aligned(rows);
}

std::map<std::string, std::string> StateLines(const Json& job) {
  JsonFields fields(job, "job");
  std::map<std::string, std::string> lines = {{"", JobLine(job)}};
  for (const std::string& note : fields.Texts("notes")) lines[note] = StrCat("note: ", note);
  for (const Json& task : fields.List("tasks")) {
    JsonFields about(task, "task");
    const std::string name = about.Text("task"), end = EndText(task, GoesOn(fields));
    const int64_t incarnation = about.Int("incarnation", 0, 0, INT64_MAX);
    lines[name] = StrCat(name, ".", incarnation, " ", about.Text("phase"),
                         end.empty() ? "" : StrCat(": ", end));
  }
  return lines;
}

std::string FailureText(const Json& job) {
  JsonFields fields(job, "job");
  const Json& failures = fields.List("failures");
  if (failures.empty() || fields.Text("message").empty()) return "";
  const size_t first = GetCause(failures);
  const Json& cause = failures[first];
  JsonFields about(cause, "failure");
  // The job's message names most causes already.
  const bool is_told = fields.Text("message").find(WhoAndHow(cause)) != std::string::npos;
  std::string text = StrCat(
      is_told ? StrCat(about.Text("task"), " failed ") : StrCat("first ", WhoAndHow(cause), ", "),
      FormatDuration(GetSeconds(cause)), " after the job's start\n");
  const std::vector<std::string> lines = about.Texts("last_lines");
  // The pods of a cluster may be gone, and with them all but what the job's status keeps.
  const std::string_view condition = fields.Has("namespace") ? " while its pod is there" : "";
  if (!lines.empty())
    text += StrCat("its last lines (muster logs ", fields.Text("name"), " ", about.Text("task"),
                   " shows all", condition, "):\n");
  for (const std::string& line : lines) text += StrCat("  | ", line, "\n");
  if (const std::string advice = job::AdviceOn(lines); !advice.empty()) text += advice + "\n";
  for (size_t i = first + 1; i < failures.size(); ++i) {
    text +=
        StrCat("followed by ", WhoAndHow(failures[i]), ", ",
               absl::StrFormat("%.1f", GetSeconds(failures[i]) - GetSeconds(cause)), " s later\n");
  }
  if (first > 0)
    text += StrCat("before that ", first, first == 1 ? " failure" : " failures",
                   ", after which the job went on\n");
  return text;
}

std::string HangText(const Json& job) {
  JsonFields fields(job, "job");
  std::map<std::string, const Json*> hangs;
  for (const Json& failure : fields.List("failures")) {
    JsonFields about(failure, "failure");
    if (about.Has("diagnosis")) hangs[about.Text("task")] = &failure;
  }
  std::string text;
  for (const auto& [task, failure] : hangs) {
    text += StrCat(WhoAndHow(*failure), "; what it did then:\n");
    for (const std::string& line : JsonFields(*failure, "failure").Texts("diagnosis")) {
      text += StrCat("  | ", line, "\n");
    }
  }
  return text;
}

}  // namespace muster::cli
