#include <algorithm>
#include <cstdio>
#include <memory>

#include "absl/strings/str_format.h"

#include "CLI/CLI.hpp"
#include "muster/base/number_text.h"
#include "muster/cli/common/help.h"
#include "muster/cli/common/row_progress.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/train/model_flags.h"
#include "muster/cli/train/verbs.h"
#include "muster/files/file_systems.h"
#include "muster/score/evaluation_batch.h"
#include "muster/score/importance.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

struct ExplainFlags {
  TrainedModelFlags trained;
  DataFlags data;
  score::ImportanceSpec importance;
  OutputFlags output;
};

void PrintJson(const score::ImportanceSpec& spec, const score::Importance& found,
               const std::string& checkpoint) {
  nlohmann::ordered_json object = {{"event", "explained"},
                                   {"checkpoint", checkpoint},
                                   {"metric", found.metric},
                                   {"better", found.lower_is_better ? "lower" : "higher"},
                                   {"value", found.value},
                                   {"examples", found.rows},
                                   {"bad_records", found.bad_records},
                                   {"repeats", spec.repeats},
                                   {"seed", spec.seed},
                                   {"inputs", nlohmann::ordered_json::array()}};
  for (const score::InputImportance& input : found.inputs) {
    object["inputs"].push_back({{"input", input.input},
                                {"mean", input.mean},
                                {"deviation", input.deviation},
                                {"losses", input.losses}});
  }
  std::printf("%s\n",
              object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void PrintTable(const score::ImportanceSpec& spec, const score::Importance& found) {
  std::printf("%s %.6g on %s examples%s\n", found.metric.c_str(), found.value,
              GroupDigits(found.rows).c_str(), LeftOut(found.bad_records).c_str());
  std::printf(
      "How much %s it is when the values of an input are exchanged among the rows (%d "
      "%s):\n",
      found.lower_is_better ? "higher" : "lower", spec.repeats,
      spec.repeats == 1 ? "time" : "times");
  size_t width = 5;
  for (const score::InputImportance& input : found.inputs) {
    width = std::max(width, input.input.size());
  }
  std::printf("  %-*s  %12s  %12s\n", static_cast<int>(width), "input", "mean", "deviation");
  for (const score::InputImportance& input : found.inputs) {
    std::printf("  %-*s  %12s  %12s\n", static_cast<int>(width), input.input.c_str(),
                absl::StrFormat("%.6f", input.mean).c_str(),
                absl::StrFormat("%.6f", input.deviation).c_str());
  }
}

absl::Status RunExplain(ExplainFlags flags) {
  const auto files = files::OpenFileSystems();
  const std::string& model_dir = flags.trained.run.model_dir;
  MUSTER_RETURN_IF_ERROR(ResolveBest(*files, &flags.trained));
  std::string prefix;
  const auto lease = LeaseOn(*files, flags.trained, &prefix);
  WarnIfUntrained(prefix);
  MUSTER_ASSIGN_OR_RETURN(const model::ModelSpec model, score::LoadModelDir(*files, model_dir));
  MUSTER_RETURN_IF_ERROR(ResolveTensorFlow(model, &flags.trained.run));
  MUSTER_ASSIGN_OR_RETURN(
      const auto scorer,
      score::Scorer::Open(*files, {.weights = {.model_dir = model_dir,
                                               .checkpoint = flags.trained.checkpoint,
                                               .fall_back = flags.trained.fall_back},
                                   .threads = flags.trained.run.threads,
                                   .tensorflow = flags.trained.run.tensorflow}));
  if (!scorer->restored().note.empty()) {
    std::fprintf(stderr, "warning: %s\n", scorer->restored().note.c_str());
  }
  score::ImportanceSpec& spec = flags.importance;
  const int batch_size =
      score::EvaluationBatchSize(*files, model, model_dir, flags.trained.checkpoint);
  spec.input =
      SequentialInput(flags.data, model.format, batch_size > 0 ? batch_size : kInferenceBatchSize);
  spec.metrics = model.metrics;
  score::Importance found;
  {
    RowProgress progress("explain", "rows", flags.output.quiet || flags.output.json);
    MUSTER_ASSIGN_OR_RETURN(
        found, score::MeasureImportance(*files, *scorer, spec, [&](uint64_t done, uint64_t all) {
          progress.Update(done, all);
        }));
  }
  if (flags.output.json) {
    PrintJson(spec, found, scorer->restored().prefix);
  } else {
    PrintTable(spec, found);
  }
  return absl::OkStatus();
}

}  // namespace

void AddExplain(CLI::App& app) {
  const auto flags = std::make_shared<ExplainFlags>();
  CLI::App* verb = app.add_subcommand("explain", "Show which inputs a trained model relies on");
  verb->footer(
      "The values of one input are exchanged among the rows, and the metric is measured again: "
      "what it loses shows how much the model uses that input (permutation importance, "
      "docs/metrics.md). Each line has the mean and the deviation of the repeats. Use data that "
      "the model was not trained on; they are kept in memory.\n"
      "Examples:\n"
      "  muster explain model --data 'data/test/part-*'\n"
      "  muster explain model --data test.csv --metric average_loss --repeats 10 --json");
  AddTrainedModelFlags(*verb, &flags->trained);
  AddFallBackFlag(*verb, &flags->trained);
  AddDataFlags(*verb, "--data",
               "Labelled CSV, TFRecord or JSON lines: files, globs, or - for batches of a program",
               &flags->data, "");
  AddFormatFlags(*verb, &flags->data.format);
  AddKafkaFlags(*verb, &flags->data.kafka);
  verb->add_option(
          "--metric", flags->importance.metric,
          "One that evaluate prints; lower is better if its name has 'loss' or 'error' in "
          "it, else higher; NAME:lower and NAME:higher override this (default: auc, accuracy, "
          "mean_squared_error or loss, by the model)")
      ->type_name("NAME");
  verb->add_option("--repeats", flags->importance.repeats, "Exchanges of each input")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  verb->add_option("--rows", flags->importance.max_rows, "The first N rows (default: all)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  verb->add_option("--seed", flags->importance.seed, "Seed of the exchanges")
      ->capture_default_str();
  AddThreadsFlag(*verb, &flags->trained.run);
  AddTensorFlowFlag(*verb, &flags->trained.run);
  AddOutputFlags(*verb, &flags->output);
  Group(*verb, kData, {"--data", "--batch-size"});
  Group(*verb, kMoreData, {"--max-bad-records"});
  Group(*verb, kMoreModel, {"--tensorflow"});
  verb->callback([flags] {
    if (flags->output.quiet) flags->data.note = nullptr;
    FailUnlessOk(RunExplain(*flags));
  });
}

}  // namespace muster::cli
