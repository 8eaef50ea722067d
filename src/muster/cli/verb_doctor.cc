#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "muster/base/strings.h"
#include "muster/cli/cli.h"
#include "muster/cli/common/help.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/doctor.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

constexpr size_t kNameColumns = 20;
constexpr size_t kTextColumns = 80 - kNameColumns;

const char* GetState(Health health) {
  switch (health) {
    case Health::kGood:
      return "ok";
    case Health::kOptional:
      return "missing";
    case Health::kBad:
      return "broken";
  }
  return "";
}

void PrintRow(std::string name, const std::string& text) {
  for (const std::string& line : WrapText(text, kTextColumns)) {
    name.resize(kNameColumns, ' ');
    std::printf("%s%s\n", name.c_str(), line.c_str());
    name.clear();
  }
}

void PrintFindings(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    std::string name = finding.name;
    std::ranges::replace(name, '_', ' ');
    const char mark = finding.health == Health::kGood       ? ' '
                      : finding.health == Health::kOptional ? '-'
                                                            : '!';
    PrintRow(StrCat(std::string(1, mark), " ", name), finding.text);
    if (!finding.advice.empty()) PrintRow("", StrCat("-> ", finding.advice));
  }
}

void PrintJson(const std::vector<Finding>& findings, bool works) {
  nlohmann::ordered_json object = {
      {"version", Version()}, {"ok", works}, {"findings", nlohmann::ordered_json::array()}};
  for (const Finding& finding : findings) {
    nlohmann::ordered_json entry = {
        {"name", finding.name}, {"state", GetState(finding.health)}, {"text", finding.text}};
    if (!finding.advice.empty()) entry["advice"] = finding.advice;
    for (const auto& [key, value] : finding.values.items()) entry[key] = value;
    object["findings"].push_back(std::move(entry));
  }
  std::printf(
      "%s\n",
      object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void RunDoctor(bool json) {
  const std::vector<Finding> findings = ExamineMachine();
  const bool works = std::ranges::none_of(
      findings, [](const Finding& finding) { return finding.health == Health::kBad; });
  if (json) {
    PrintJson(findings, works);
  } else {
    PrintFindings(findings);
  }
  std::fflush(stdout);
  if (!works) FailUnlessOk(absl::FailedPreconditionError("training does not work on this machine"));
}

}  // namespace

void AddDoctor(CLI::App& app) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* const verb =
      app.add_subcommand("doctor", "Show what this machine has for training, and what is missing");
  verb->footer(
      "Trains a small model in memory. A line with - in front is missing, and only some uses need\n"
      "it. Exit code 0 when training works.\n"
      "Example:\n  muster doctor");
  verb->add_flag("--json", *json, "One object: version, ok, findings");
  verb->callback([json] { RunDoctor(*json); });
}

}  // namespace muster::cli
