#include "muster/train/loop/exporters/exporters.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "muster/base/nearest.h"

namespace muster::train {

namespace {

constexpr const ExporterKind* kExporters[] = {&kFinalExporter, &kLatestExporter, &kBestExporter};

}  // namespace

absl::StatusOr<ParsedExporter> ParseExporter(const std::string& text, int keep) {
  const size_t equals = text.find('=');
  const bool named = equals != std::string::npos;
  std::vector<std::string> arguments = absl::StrSplit(named ? text.substr(equals + 1) : text, ':');
  const std::string name = arguments.front();
  arguments.erase(arguments.begin());
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(StrCat("--exporter '", text, "': ", why));
  };
  std::vector<std::string> known, with_arguments;
  const ExporterKind* kind = nullptr;
  for (const ExporterKind* const each : kExporters) {
    known.emplace_back(each->name);
    if (each->has_arguments) with_arguments.emplace_back(each->name);
    if (each->name == name) kind = each;
  }
  if (kind != nullptr && !kind->has_arguments && !arguments.empty()) {
    return refuse(StrCat("only '", absl::StrJoin(with_arguments, "' and '"), "' has options"));
  }
  if (named && equals == 0) return refuse("its name is empty");
  if (kind == nullptr)
    return refuse(StrCat("unknown exporter '", name, "'", DidYouMean(name, known)));
  auto parsed = kind->make({.name = named ? text.substr(0, equals) : name,
                            .arguments = std::move(arguments),
                            .keep = keep});
  if (!parsed.ok() && parsed.status().code() == absl::StatusCode::kInvalidArgument) {
    return refuse(ToStd(parsed.status().message()));
  }
  return parsed;
}

std::string DescribeExporters() {
  std::vector<std::string> all;
  for (const ExporterKind* const each : kExporters) all.emplace_back(each->help);
  return absl::StrJoin(all, ", ");
}

}  // namespace muster::train
