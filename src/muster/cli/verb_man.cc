// Implements muster man FOLDER, which writes manual pages of all verbs from their help. The build
// and the packages run it.
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include "CLI/CLI.hpp"
#include "muster/base/strings.h"
#include "muster/cli/cli.h"
#include "muster/cli/common/help.h"
#include "muster/cli/common/verb.h"
#include "muster/files/file_systems.h"

namespace muster::cli {
namespace {

// Escapes text so that roff(7) prints it unchanged.
std::string Escape(std::string_view text) {
  std::string escaped = absl::StrReplaceAll(ToAbsl(text), {{"\\", "\\e"}, {"-", "\\-"}});
  if (escaped.starts_with('.') || escaped.starts_with('\'')) escaped.insert(0, "\\&");
  return escaped;
}

// Prints lines of --help, which are kept unchanged.
std::string MakeVerbatim(std::string_view text) {
  std::string page = ".nf\n";
  for (const absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
    page += Escape(ToStd(line)) + "\n";
  }
  return page + ".fi\n";
}

// `name` is, for example, "muster records from-csv", whose page is muster-records-from-csv(1).
std::string MakePage(const CLI::App& verb, const std::string& name) {
  const std::string page = absl::StrReplaceAll(name, {{" ", "-"}});
  const bool is_root = verb.get_parent() == nullptr;
  const std::string text = verb.get_formatter()->make_help(&verb, name, CLI::AppFormatMode::All);
  const size_t usage = text.find("Usage: ");
  std::string all =
      StrCat(".TH ", absl::AsciiStrToUpper(page), " 1 \"\" \"muster ", Version(), "\"\n");
  all += StrCat(".SH NAME\n", Escape(page), " \\- ",
                Escape(absl::StrReplaceAll(is_root ? "train models, alone or by several processes"
                                                   : verb.get_description(),
                                           {{"\n", " "}})),
                "\n");
  if (is_root) all += StrCat(".SH DESCRIPTION\n", Escape(verb.get_description()), "\n");
  all += StrCat(".SH USE\n", MakeVerbatim(text.substr(usage + 7)));
  all += ".SH EXIT STATUS\n0: done; 1: failed; 2: wrong use.\n";
  return all;
}

absl::Status WritePages(io::FileSystem& files, const CLI::App& verb, const std::string& name,
                        const std::string& folder) {
  const std::string page = absl::StrReplaceAll(name, {{" ", "-"}});
  MUSTER_RETURN_IF_ERROR(io::WriteFileAtomically(files, io::JoinPath(folder, StrCat(page, ".1")),
                                                 MakePage(verb, name)));
  for (const CLI::App* const each : GetVisibleVerbs(verb)) {
    MUSTER_RETURN_IF_ERROR(WritePages(files, *each, StrCat(name, " ", each->get_name()), folder));
  }
  return absl::OkStatus();
}

absl::Status WriteManual(const CLI::App& app, const std::string& folder) {
  const auto files = files::OpenFileSystems();
  MUSTER_RETURN_IF_ERROR(files->MakeFolders(folder));
  return WritePages(*files, app, app.get_name(), folder);
}

}  // namespace

void AddMan(CLI::App& app) {
  const auto folder = std::make_shared<std::string>();
  CLI::App* const verb = app.add_subcommand("man", "Write the manual pages, one for each verb");
  verb->group(kHidden);
  verb->footer("Example:\n  muster man share/man/man1");
  verb->add_option("folder", *folder, "Where: muster.1, muster-train.1 and so on")
      ->required()
      ->type_name("DIR");
  verb->callback([&app, folder] { FailUnlessOk(WriteManual(app, *folder)); });
}

}  // namespace muster::cli
