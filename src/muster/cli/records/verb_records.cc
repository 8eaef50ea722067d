
#include <cstdio>
#include <memory>

#include "CLI/CLI.hpp"
#include "muster/base/number_text.h"
#include "muster/cli/common/format_flags.h"
#include "muster/cli/common/row_progress.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/records/verbs.h"
#include "muster/data/file_rules.h"
#include "muster/data/record_index.h"
#include "muster/files/file_systems.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

struct IndexFlags {
  std::vector<std::string> patterns;
  formats::DataFormat format;
  bool json = false;
};

absl::Status RunIndex(const IndexFlags& flags) {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(const auto paths, ExpandFiles(*files, flags.patterns));
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string& path = paths[i];
    auto progress = std::make_unique<RowProgress>("index", "files", flags.json);
    progress->Say(StrCat("file ", i + 1, "/", paths.size(), ": ", path));
    MUSTER_ASSIGN_OR_RETURN(const data::FileRules rules,
                            data::FindFileRules(*files, path, flags.format));
    MUSTER_ASSIGN_OR_RETURN(const data::RecordIndex index, data::ScanRecords(*files, path, rules));
    MUSTER_RETURN_IF_ERROR(data::WriteRecordIndex(*files, path, index));
    progress.reset();
    const std::string index_path = data::RecordIndexPath(path);
    if (flags.json) {
      const nlohmann::ordered_json object = {{"file", path},
                                             {"index", index_path},
                                             {"records", index.records()},
                                             {"chunks", index.chunks.size()}};
      std::printf("%s\n", object.dump().c_str());
    } else {
      std::printf("%s: %s records in %zu chunks\n", index_path.c_str(),
                  GroupDigits(index.records()).c_str(), index.chunks.size());
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandFiles(io::FileSystem& files,
                                                     const std::vector<std::string>& patterns) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    MUSTER_ASSIGN_OR_RETURN(const auto found, io::Glob(files, pattern));
    for (const std::string& path : found) {
      if (const auto info = files.Stat(path); info.ok() && info->is_folder) {
        return data::FolderError(path);
      }
      paths.push_back(path);
    }
  }
  return paths;
}

void AddRecordsIndex(CLI::App& records) {
  const auto flags = std::make_shared<IndexFlags>();
  CLI::App* verb = records.add_subcommand(
      "index", "Write where files can be cut, so that no training scans them");
  verb->footer(
      "The index of DIR/NAME is DIR/.NAME.index.\nExample:\n"
      "  muster records index 'data/train/part-*'");
  verb->add_option("files", flags->patterns, "TFRecord, CSV or JSON lines: files or globs")
      ->required()
      ->type_name("GLOB");
  AddFormatFlags(*verb, &flags->format);
  verb->add_flag("--json", flags->json, "One JSON object per file");
  verb->callback([flags] { FailUnlessOk(RunIndex(*flags)); });
}

void AddRecords(CLI::App& app) {
  CLI::App* records =
      app.add_subcommand("records", "Make, inspect and check files of training records");
  records->require_subcommand(1);
  records->footer("Example:\n  muster records from-csv train.csv --spec titanic.yaml --out data");
  AddRecordsFromCsv(*records);
  AddRecordsFromIdx(*records);
  AddRecordsFromParquet(*records);
  AddRecordsFromBatches(*records);
  AddRecordsInspect(*records);
  AddRecordsVerify(*records);
  AddRecordsStats(*records);
  AddRecordsIndex(*records);
  AddRecordsCat(*records);
  AddRecordsRanges(*records);
  AddRecordsToKafka(*records);
}

}  // namespace muster::cli
