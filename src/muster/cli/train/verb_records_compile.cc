#include <cstdio>
#include <memory>

#include "CLI/CLI.hpp"
#include "muster/base/number_text.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/row_progress.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/train/cache_flags.h"
#include "muster/cli/train/model_flags.h"
#include "muster/cli/train/model_text.h"
#include "muster/cli/train/verbs.h"
#include "muster/files/file_systems.h"
#include "muster/train/first_pass.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

struct CompileFlags {
  DataFlags data;
  std::string spec;
  CacheFlags cache = {.where = "auto"};
  bool json = false;
};

struct Compiled {
  uint64_t rows = 0;
  double seconds = 0;
  bool is_new = false;
};

void Print(const CompileFlags& flags, const train::FeatureCache& cache, const Compiled& compiled) {
  if (flags.json) {
    const nlohmann::ordered_json object = {{"event", "compiled"},
                                           {"folder", cache.folder()},
                                           {"rows", compiled.rows},
                                           {"new", compiled.is_new},
                                           {"seconds", compiled.seconds}};
    std::printf("%s\n", object.dump().c_str());
  } else if (compiled.is_new) {
    std::printf("Compiled %s rows into %s in %s; next: muster train ... --cache %s\n",
                GroupDigits(compiled.rows).c_str(), cache.folder().c_str(),
                FormatDuration(compiled.seconds).c_str(), cache.folder().c_str());
  } else {
    std::printf("%s has the rows already: the data and the columns are the same\n",
                cache.folder().c_str());
  }
}

void Warn(const std::string& text) { std::fprintf(stderr, "warning: %s\n", text.c_str()); }

// Reads the input to its end, whereby the cache gets its file. `told` is not said again.
absl::Status Drain(train::Input& input, const std::string& told, RowProgress& progress,
                   Compiled* compiled) {
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const train::InputBatch* const batch, input.Next());
    for (const std::string& text : input.ConsumeWarnings()) {
      if (text != told) Warn(text);
    }
    if (batch == nullptr) return absl::OkStatus();
    if (InterruptScope::requested()) return absl::CancelledError("stopped by a signal");
    compiled->rows += static_cast<uint64_t>(batch->features.rows);
    progress.Update(compiled->rows, input.records());
  }
}

// Reads all blocks, which checks them. A file that is damaged is removed, and the user is told.
bool IsIntact(const train::CompiledFile& file, const train::FeatureCache& cache) {
  for (size_t i = 0; i < file.source()->chunks().size(); ++i) {
    const absl::Status status = file.source()->Read(i).status();
    if (status.ok()) continue;
    Warn(StrCat("compiled features are made again: ", status.message()));
    cache.Remove(file);
    return false;
  }
  return true;
}

absl::Status RunCompile(const CompileFlags& flags) {
  const InterruptScope interrupts;
  const SystemClock clock;
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(model::ModelSpec spec, LoadModel(*files, flags.spec));
  if (spec.exported) {
    return absl::InvalidArgumentError(
        StrCat(flags.spec, ": features of an exported model are not compiled"));
  }
  MUSTER_ASSIGN_OR_RETURN(const auto cache, OpenCache(flags.cache, /*least_data=*/0));
  if (cache == nullptr) {
    return absl::InvalidArgumentError(StrCat("there is no folder for compiled features: ",
                                             DescribeNoUsualFolder(), "; give --cache DIR"));
  }
  train::InputSpec input = SequentialInput(flags.data, spec.format, kInferenceBatchSize);
  train::Progress measuring(train::ProgressStyle::kNone, STDERR_FILENO, clock);
  MUSTER_RETURN_IF_ERROR(
      train::MeasureColumns(*files, input, measuring, InterruptScope::requested(), &spec));
  MUSTER_ASSIGN_OR_RETURN(const model::Model model, model::BuildModel(spec));
  MUSTER_ASSIGN_OR_RETURN(const train::FeatureKey key,
                          cache->MakeKey(*files, model, input.source, input.with_labels));
  if (key.text.empty()) {
    return absl::InvalidArgumentError(
        "only files are compiled, and no messages of Kafka, tables or streams of batches");
  }
  Compiled compiled;
  std::string note;
  const auto found = cache->Find(key.text, &note);
  if (found != nullptr && IsIntact(*found, *cache)) {
    compiled.rows = found->source()->records();
  } else {
    compiled.is_new = true;
    // If the file was damaged it is gone now, and the input will find none that it could warn of.
    if (!note.empty()) Warn(note);
    input.cache = cache;
    input.watch_data = true;
    RowProgress progress("compile", "rows", flags.json);
    MUSTER_ASSIGN_OR_RETURN(const auto reading, train::Input::Open(*files, model, input));
    MUSTER_RETURN_IF_ERROR(Drain(*reading, note, progress, &compiled));
    compiled.seconds = progress.seconds();
    if (cache->Find(key.text, &note) == nullptr) {
      return absl::FailedPreconditionError(
          StrCat("nothing was compiled into ", cache->folder(), ": the warning above says why"));
    }
  }
  Print(flags, *cache, compiled);
  return absl::OkStatus();
}

}  // namespace

void AddRecordsCompile(CLI::App& records) {
  const auto flags = std::make_shared<CompileFlags>();
  CLI::App* verb = records.add_subcommand(
      "compile", "Write the features of a model file, for trainings with --cache");
  verb->footer(
      "The first epoch of a training with --cache writes the same file: this verb makes it before. "
      "A training by several workers has a file for each share of the data and makes them "
      "itself.\n"
      "Example:\n"
      "  muster records compile 'data/part-*' --spec model.yaml --cache cache");
  verb->add_option("files", flags->data.patterns, "CSV, TFRecord or JSON lines: files or globs")
      ->required()
      ->type_name("GLOB");
  verb->add_option("--spec", flags->spec, "Model file whose columns are computed")
      ->required()
      ->type_name("SPEC");
  AddCacheFlags(*verb, &flags->cache,
                "Write the floats and ids of the rows into a folder; auto: "
                "~/.cache/muster/features",
                "DIR|auto");
  AddFormatFlags(*verb, &flags->data.format);
  verb->add_flag("--json", flags->json, "One JSON object");
  verb->callback([flags] {
    if (flags->cache.where == "off") {
      throw CLI::ValidationError("--cache", "off: this verb only writes there; give a folder");
    }
    FailUnlessOk(RunCompile(*flags));
  });
}

}  // namespace muster::cli
