#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/row_progress.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/records/file_copier.h"
#include "muster/cli/records/file_list.h"
#include "muster/cli/records/verbs.h"
#include "muster/files/file_systems.h"
#include "muster/io/path_scheme.h"

namespace muster::cli {
namespace {

struct FsFlags {
  std::vector<std::string> paths;
  bool recursive = false, force = false, json = false, long_form = false;
};

constexpr size_t kPrintedBytes = size_t{1} << 20;

// Returns the files and folders of all globs, in order.
absl::StatusOr<std::vector<std::string>> ExpandPaths(io::FileSystem& files,
                                                     const std::vector<std::string>& patterns) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    MUSTER_ASSIGN_OR_RETURN(const auto found, io::Glob(files, pattern));
    paths.insert(paths.end(), found.begin(), found.end());
  }
  return paths;
}

absl::Status ListFolder(io::FileSystem& files, const std::string& folder, bool recursive,
                        FileList& list) {
  MUSTER_ASSIGN_OR_RETURN(const auto entries, files.ListEntries(folder));
  for (const io::FolderEntry& entry : entries) {
    const std::string path = io::JoinPath(folder, entry.name);
    list.Add(path, entry.info);
    if (!entry.info.is_folder || !recursive) continue;
    list.Print(stdout);
    MUSTER_RETURN_IF_ERROR(ListFolder(files, path, recursive, list));
  }
  list.Print(stdout);
  return absl::OkStatus();
}

absl::Status RunLs(const FsFlags& flags) {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const auto paths, ExpandPaths(*files, flags.paths));
  FileList list(flags.json        ? ListForm::kJson
                : flags.long_form ? ListForm::kLong
                                  : ListForm::kShort);
  for (const std::string& path : paths) {
    MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, files->Stat(path));
    if (info.is_folder) {
      list.Print(stdout);
      MUSTER_RETURN_IF_ERROR(ListFolder(*files, path, flags.recursive, list));
    } else {
      list.Add(path, info);
    }
  }
  list.Print(stdout);
  return absl::OkStatus();
}

absl::Status Print(io::FileSystem& files, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const auto file, files.OpenForRead(path));
  std::vector<char> piece(kPrintedBytes);
  size_t count = piece.size();
  for (uint64_t done = 0; count == piece.size(); done += count) {
    MUSTER_ASSIGN_OR_RETURN(count, file->Read(done, piece.size(), piece.data()));
    // A reader that has left (| head) is no error: Main looks at standard output.
    if (std::fwrite(piece.data(), 1, count, stdout) < count) return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status RunCat(const FsFlags& flags) {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const auto paths, ExpandPaths(*files, flags.paths));
  for (const std::string& path : paths) {
    MUSTER_RETURN_IF_ERROR(Print(*files, path));
    if (std::ferror(stdout) != 0) break;
  }
  return absl::OkStatus();
}

// The last path is the target.
absl::Status RunCopies(const char* verb, const std::vector<std::string>& sources,
                       const std::string& target, const FsFlags& flags) {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const auto paths, ExpandPaths(*files, sources));
  const auto there = files->Stat(target);
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  if (paths.size() > 1 && (!there.ok() || !there->is_folder)) {
    return absl::FailedPreconditionError(StrCat(paths.size(), " files are copied, but ", target,
                                                " is no folder; make it: muster fs mkdir ",
                                                target));
  }
  const InterruptScope interrupt;
  RowProgress progress(verb, "bytes", /*quiet=*/false);
  FileCopier copier(*files, flags.force, progress);
  for (const std::string& path : paths) {
    MUSTER_RETURN_IF_ERROR(copier.Copy(path, target));
  }
  return absl::OkStatus();
}

bool IsOfThisMachine(const std::string& path) {
  const std::string_view scheme = io::PathScheme(path);
  return scheme.empty() || scheme == io::kFileScheme;
}

absl::Status RunPut(const FsFlags& flags) {
  const std::string& target = flags.paths.back();
  if (IsOfThisMachine(target)) {
    throw CLI::ValidationError(StrCat("the target '", target,
                                      "' is a path of this machine: write hdfs://NAMENODE/PATH, "
                                      "or hdfs:///PATH for the NameNode of HADOOP_CONF_DIR"));
  }
  return RunCopies("put", {flags.paths.begin(), flags.paths.end() - 1}, target, flags);
}

absl::Status RunGet(const FsFlags& flags) {
  std::vector<std::string> sources = flags.paths;
  std::string target = ".";
  if (sources.size() > 1) {
    target = sources.back();
    sources.pop_back();
  }
  if (!IsOfThisMachine(target)) {
    throw CLI::ValidationError(StrCat("the target '", target,
                                      "' is no path of this machine: give a folder or file of "
                                      "it last"));
  }
  return RunCopies("get", sources, target, flags);
}

absl::Status RunRm(const FsFlags& flags) {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const auto paths, ExpandPaths(*files, flags.paths));
  for (const std::string& path : paths) {
    MUSTER_ASSIGN_OR_RETURN(const io::FileInfo info, files->Stat(path));
    if (info.is_folder && !flags.recursive) {
      return absl::FailedPreconditionError(
          StrCat(path, " is a folder: to remove it and all in it, give --recursive"));
    }
    MUSTER_RETURN_IF_ERROR(info.is_folder ? files->RemoveAll(path) : files->Remove(path));
  }
  return absl::OkStatus();
}

// Renames: nothing is copied.
absl::Status RunMv(const FsFlags& flags) {
  const std::string& target = flags.paths.back();
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const auto paths,
                          ExpandPaths(*files, {flags.paths.begin(), flags.paths.end() - 1}));
  const auto there = files->Stat(target);
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  const bool into = there.ok() && there->is_folder;
  if (paths.size() > 1 && !into) {
    return absl::FailedPreconditionError(StrCat(paths.size(), " files are moved, but ", target,
                                                " is no folder; make it: muster fs mkdir ",
                                                target));
  }
  for (const std::string& path : paths) {
    const std::string to = into ? io::JoinPath(target, io::Basename(path)) : target;
    MUSTER_RETURN_IF_ERROR(files->Rename(path, to));
  }
  return absl::OkStatus();
}

absl::Status RunMkdir(const FsFlags& flags) {
  const auto files = files::OpenFileSystems();
  for (const std::string& path : flags.paths) MUSTER_RETURN_IF_ERROR(files->MakeFolders(path));
  return absl::OkStatus();
}

using Flags = std::shared_ptr<FsFlags>;

// Adds a verb to `muster fs` with its paths. The caller adds its flags to it.
CLI::App* AddVerb(CLI::App& fs, const char* name, const char* what, const char* footer,
                  const char* paths, const Flags& flags, absl::Status (*run)(const FsFlags&)) {
  CLI::App* verb = fs.add_subcommand(name, what);
  verb->footer(footer);
  verb->add_option("paths", flags->paths, paths)->required()->type_name("PATH");
  verb->callback([flags, run] { FailUnlessOk(run(*flags)); });
  return verb;
}

}  // namespace

void AddFs(CLI::App& app) {
  CLI::App* fs = app.add_subcommand("fs", "List, show, copy, move and remove files, also of HDFS");
  fs->require_subcommand(1);
  fs->footer(
      "No Hadoop is needed. A path is hdfs://NAMENODE/PATH, webhdfs://, swebhdfs:// or one of "
      "this machine; it may be a glob in quotes.\n"
      "Example:\n  muster fs ls hdfs:///user/me");
  Flags flags = std::make_shared<FsFlags>();
  CLI::App* ls = AddVerb(*fs, "ls", "List folders", "Example:\n  muster fs ls hdfs:///user/me",
                         "Folders and files", flags, RunLs);
  ls->add_flag("-r,--recursive", flags->recursive, "Also what is in the folders below");
  CLI::Option* const long_form = ls->add_flag("-l,--long", flags->long_form,
                                              "As hadoop fs -ls, with times in UTC: also the mode, "
                                              "the replication, the owner and the group");
  ls->add_flag("--json", flags->json, "An object a line, with all of that")->excludes(long_form);
  flags = std::make_shared<FsFlags>();
  AddVerb(*fs, "cat", "Print files",
          "Example:\n  muster fs cat 'hdfs:///user/me/scores/part-*' > scores.csv", "Files", flags,
          RunCat);
  flags = std::make_shared<FsFlags>();
  CLI::App* put =
      AddVerb(*fs, "put", "Copy files and folders of this machine to HDFS",
              "Example:\n  muster fs put train.csv hdfs:///user/me/data",
              "What to copy, and last where to: a name, or a folder that exists", flags, RunPut);
  put->get_option("paths")->expected(2, -1);
  put->add_flag("--force", flags->force, "Replace files that exist");
  flags = std::make_shared<FsFlags>();
  CLI::App* get = AddVerb(*fs, "get", "Copy files and folders of HDFS to this machine",
                          "Example:\n  muster fs get hdfs:///user/me/model .",
                          "What to copy, and last where to (default: this folder)", flags, RunGet);
  get->add_flag("--force", flags->force, "Replace files that exist");
  flags = std::make_shared<FsFlags>();
  CLI::App* rm = AddVerb(*fs, "rm", "Remove files and, with --recursive, folders",
                         "They do not go to HDFS's trash.\n"
                         "Example:\n  muster fs rm 'hdfs:///user/me/scores/part-*'",
                         "Files and folders", flags, RunRm);
  rm->add_flag("-r,--recursive", flags->recursive, "Folders too, with all that is in them");
  flags = std::make_shared<FsFlags>();
  CLI::App* mv =
      AddVerb(*fs, "mv", "Rename files and folders, within one file system",
              "A file that has the name already is replaced.\n"
              "Example:\n  muster fs mv 'hdfs:///user/me/new/part-*' hdfs:///user/me/data",
              "What to move, and last where to: a name, or a folder that exists", flags, RunMv);
  mv->get_option("paths")->expected(2, -1);
  flags = std::make_shared<FsFlags>();
  AddVerb(*fs, "mkdir", "Make folders, and those that they lie in",
          "Example:\n  muster fs mkdir hdfs:///user/me/data", "Folders", flags, RunMkdir);
  AddFsToken(*fs);
}

}  // namespace muster::cli
