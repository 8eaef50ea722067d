#include "muster/control/status_page.h"

#include <cstdint>
#include <string_view>

#include "muster/base/strings.h"

namespace muster::control {
namespace {

using formats::Json;
using formats::JsonFields;

constexpr char kStyle[] =
    "body{font-family:sans-serif;margin:2em}table{border-collapse:collapse}"
    "td,th{text-align:left;padding:.2em 1em .2em 0;border-bottom:1px solid #ccc}"
    "pre{background:#f4f4f4;padding:.5em}";

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string PrintNumber(JsonFields& fields, const char* name) {
  return StrCat(fields.Int(name, 0, 0, INT64_MAX));
}

std::string PrintRow(const Json& each) {
  JsonFields task(each, "task");
  JsonFields end(task.Object("last_end"), "last_end");
  std::string said = task.Text("said");
  if (said.empty()) said = task.Text("stop_reason");
  std::string row = "<tr>";
  for (const std::string& cell :
       {task.Text("task"), task.Text("phase"),
        each.contains("step") ? PrintNumber(task, "step") : "", PrintNumber(task, "restarts"),
        task.Text("address"), task.Text("place"), said, end.Text("text")}) {
    row += StrCat("<td>", EscapeHtml(cell), "</td>");
  }
  return row + "</tr>\n";
}

std::string PrintFailure(const Json& each) {
  JsonFields failure(each, "failure");
  std::string text =
      StrCat("<p>", EscapeHtml(failure.Text("task")), ", incarnation ",
             PrintNumber(failure, "incarnation"), ": ", EscapeHtml(failure.Text("text")), "</p>\n");
  std::string lines;
  for (const Json& line : failure.List("last_lines")) {
    if (line.is_string()) lines += StrCat(EscapeHtml(line.get<std::string>()), "\n");
  }
  return lines.empty() ? text : StrCat(text, "<pre>", lines, "</pre>\n");
}

}  // namespace

std::string PrintStatusPage(const Json& job) {
  JsonFields fields(job, "job");
  const std::string phase = fields.Text("phase"), name = EscapeHtml(fields.Text("name"));
  const bool has_ended = phase == "succeeded" || phase == "failed";
  std::string page = StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", name, ": ", phase,
      "</title><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'\">",
      has_ended ? "" : "<meta http-equiv=\"refresh\" content=\"5\">", "<style>", kStyle,
      "</style></head>\n<body><h1>", name, ": ", phase, "</h1>\n");
  for (const std::string& line : {fields.Text("message"), fields.Text("coordinator")}) {
    if (!line.empty()) page += StrCat("<p>", EscapeHtml(line), "</p>\n");
  }
  for (const char* const member : {"application", "model_dir", "waiting_for"}) {
    const std::string value = fields.Text(member);
    if (!value.empty()) page += StrCat("<p>", member, ": ", EscapeHtml(value), "</p>\n");
  }
  page +=
      "<table><tr><th>task</th><th>phase</th><th>step</th><th>restarts</th><th>address</th>"
      "<th>place</th><th>says</th><th>last end</th></tr>\n";
  for (const Json& task : fields.List("tasks")) page += PrintRow(task);
  page += "</table>\n";
  const Json& failures = fields.List("failures");
  if (!failures.empty()) page += "<h2>Failures</h2>\n";
  for (const Json& failure : failures) page += PrintFailure(failure);
  return page + "<p><a href=\"status.json\">status.json</a></p>\n</body></html>\n";
}

}  // namespace muster::control
