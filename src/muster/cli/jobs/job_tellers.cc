#include "muster/cli/jobs/job_tellers.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_join.h"

#include "muster/base/number_text.h"
#include "muster/base/strings.h"

namespace muster::cli {

using formats::Json;
using formats::JsonFields;

namespace {

constexpr auto kObeyTime = std::chrono::seconds(5);  // for an operator to see an order
constexpr double kObeyLook = 0.2;                    // seconds between two looks at the job

std::string GetLastLine(JsonFields& failure) {
  JsonFields end(failure.Object("end"), "end");
  return end.Text("last_line");
}

// Says when this task starts again, if it waits for that.
std::string PauseText(const Json& tasks, const std::string& name) {
  for (const Json& task : tasks) {
    JsonFields about(task, "task");
    if (about.Text("task") != name || !about.Has("pause")) continue;
    return StrCat("; it starts again in ", FormatDuration(about.Number("pause", 0)));
  }
  return "";
}

}  // namespace

void FailureTeller::Tell(const Json& job) {
  JsonFields fields(job, "job");
  for (const Json& task : fields.List("tasks")) {
    JsonFields about(task, "task");
    const std::string why = about.Text("given_up");
    const int64_t incarnation = about.Int("incarnation", 0, 0, INT64_MAX);
    if (why.empty() || !given_up_.insert(incarnation).second) continue;
    say_(StrCat(about.Text("task"), ": ", why, "; it ends there by itself"));
  }
  const bool has_failed = fields.Text("phase") == "failed";
  for (const Json& failure : fields.List("failures")) {
    JsonFields about(failure, "failure");
    const int64_t incarnation = about.Int("incarnation", 0, 0, INT64_MAX);
    if (has_failed || !told_.insert(incarnation).second) continue;
    const std::string task = about.Text("task"), text = about.Text("text");
    const std::string how = StrCat(text, "\n", GetLastLine(about));
    const std::string next = PauseText(fields.List("tasks"), task);
    if (std::exchange(last_[task], how) == how) {
      say_(StrCat(task, " failed again, in the same way", next));
    } else {
      say_(StrCat(task, " failed: ", text, about.Bool("follow_up", false) ? " (a follow-up)" : "",
                  next));
    }
  }
  const Json& losses = fields.List("lost_checkpoints");
  for (; losses_told_ < losses.size(); ++losses_told_) {
    say_(JsonFields(losses[losses_told_], "lost checkpoints").Text("text"));
  }
}

void FinishTeller::Tell(const Json& job) {
  JsonFields fields(job, "job");
  if (told_ || fields.Text("phase") != "finishing") return;
  for (const Json& task : fields.List("tasks")) {
    JsonFields about(task, "task");
    const std::string name = about.Text("task");
    if (!name.starts_with("evaluator") || about.Text("phase") != "running") continue;
    told_ = true;
    say_(StrCat("the training has succeeded; ", name,
                " continues and is waited for until it has evaluated the last checkpoint and "
                "exported; Ctrl-C ends it"));
  }
}

void ProblemTeller::Tell(const Json& job) {
  const auto tell = [&](const std::string& who, const std::string& what) {
    std::set<std::string>& told = told_[who];
    if (what.empty()) {
      told.clear();
    } else if (told.insert(what).second) {
      say_(who.empty() ? what : StrCat(who, ": ", what));
    }
  };
  JsonFields fields(job, "job");
  tell("", fields.Text("coordinator"));
  tell("note", absl::StrJoin(fields.Texts("notes"), "; "));
  for (const Json& task : fields.List("tasks")) {
    JsonFields about(task, "task");
    tell(about.Text("task"), about.Text("problem"));
  }
}

void TellUnheard(control::JobPlace& place, const Say& say) {
  const auto deadline = std::chrono::steady_clock::now() + kObeyTime;
  while (true) {
    const auto job = place.Describe();
    const std::string why = job.ok() ? JsonFields(*job, "job").Text("coordinator") : "";
    if (why.empty()) return;
    if (std::chrono::steady_clock::now() >= deadline) return say(why);
    if (place.WaitForEnd(kObeyLook)) return;  // a job that has ended waits for nobody
  }
}

}  // namespace muster::cli
