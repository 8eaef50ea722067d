#include <cstdio>
#include <memory>

#include "absl/strings/str_format.h"

#include "CLI/CLI.hpp"
#include "muster/cli/common/output_checks.h"
#include "muster/cli/common/row_progress.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/train/model_flags.h"
#include "muster/cli/train/verbs.h"
#include "muster/train/estimator.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

struct ExportFlags {
  TrainedModelFlags trained;
  std::string out;
  OutputFlags output;
};

absl::Status RunExport(const ExportFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const auto model, OpenTrainedModel(flags.trained));
  const std::string out =
      !flags.out.empty()
          ? flags.out
          : io::JoinPath(flags.trained.run.model_dir,
                         absl::StrFormat("export/final/%010d",
                                         static_cast<int64_t>(model->clock.WallSeconds())));
  if (!flags.out.empty()) {
    MUSTER_RETURN_IF_ERROR(
        CheckPlace(*model->files, {.flag = "--out", .path = io::Dirname(out), .is_folder = true}));
  }
  MUSTER_RETURN_IF_ERROR(model->files->MakeFolders(io::Dirname(out)));
  {
    RowProgress progress("export", "files", flags.output.json || flags.output.quiet);
    progress.Say(StrCat("writing ", out));
    MUSTER_RETURN_IF_ERROR(model->estimator->Export(out));
  }
  const std::string& note = model->estimator->restore_note();
  if (!note.empty()) std::fprintf(stderr, "warning: %s\n", note.c_str());
  const std::string& checkpoint = model->estimator->restored_checkpoint();
  if (flags.output.json) {
    const nlohmann::ordered_json object = {
        {"event", "exported"}, {"saved_model", out}, {"checkpoint", checkpoint}};
    std::printf("%s\n", object.dump().c_str());
  } else {
    std::printf("Exported SavedModel of %s to %s\n", checkpoint.c_str(), out.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddExport(CLI::App& app) {
  const auto flags = std::make_shared<ExportFlags>();
  CLI::App* verb = app.add_subcommand("export", "Write a trained model as a TensorFlow SavedModel");
  verb->footer(
      "Example:\n"
      "  muster export model --out saved_model");
  AddTrainedModelFlags(*verb, &flags->trained);
  AddFallBackFlag(*verb, &flags->trained);
  verb->add_option("--out", flags->out,
                   "Folder to make (default: MODEL_DIR/export/final/<seconds since 1970>)")
      ->type_name("DIR");
  AddOutputFlags(*verb, &flags->output);
  verb->callback([flags] { FailUnlessOk(RunExport(*flags)); });
}

}  // namespace muster::cli
