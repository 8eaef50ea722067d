#include <algorithm>
#include <cstdio>
#include <memory>

#include "absl/strings/str_join.h"

#include "CLI/CLI.hpp"
#include "muster/base/number_text.h"
#include "muster/cli/common/data_schemes.h"
#include "muster/cli/common/format_flags.h"
#include "muster/cli/common/interrupt.h"
#include "muster/cli/common/output_checks.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/records/profile_printer.h"
#include "muster/cli/records/verbs.h"
#include "muster/data/file_rules.h"
#include "muster/data/kafka/kafka_set.h"
#include "muster/data/profile/profile.h"
#include "muster/files/file_systems.h"
#include "muster/model/draft/draft.h"
#include "muster/model/spec/model_spec.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using model::DraftColumn;
using nlohmann::ordered_json;

constexpr size_t kShownValues = 5;
constexpr int64_t kTopicRecords = 1'000'000;

struct InitFlags {
  std::vector<std::string> patterns;
  std::string label;
  std::string model;
  std::vector<std::string> item;
  std::string out = "model.yaml";
  std::string dates;
  formats::DataFormat format;
  KafkaFlags kafka;
  uint64_t max_bad_records = 0;
  bool force = false;
  bool json = false;
};

std::string_view UseName(DraftColumn::Use use) {
  switch (use) {
    case DraftColumn::Use::kNumber:
      return "numeric";
    case DraftColumn::Use::kDate:
      return "date";
    case DraftColumn::Use::kVocabulary:
      return "vocabulary";
    case DraftColumn::Use::kHash:
      return "hash";
    case DraftColumn::Use::kLeftOut:
      break;
  }
  return "left out";
}

std::string DescribeUse(const DraftColumn& column) {
  const std::string flag = column.missing_flag ? ", and whether there is a value" : "";
  switch (column.use) {
    case DraftColumn::Use::kNumber:
      return StrCat(column.log1p ? "numeric, and its logarithm" : "numeric", flag);
    case DraftColumn::Use::kDate:
      return StrCat("numeric: seconds since ",
                    column.profile->kind == data::ColumnProfile::Kind::kTime ? "midnight" : "1970",
                    flag);
    case DraftColumn::Use::kVocabulary:
      return StrCat("vocabulary of ", column.words.size());
    case DraftColumn::Use::kHash:
      return StrCat("hash of ", GroupDigits(static_cast<uint64_t>(column.buckets)), " buckets");
    case DraftColumn::Use::kLeftOut:
      break;
  }
  return StrCat("left out: ", column.why);
}

std::string ShellWord(const std::string& text) {
  const bool plain =
      text.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@") ==
      std::string::npos;
  if (plain && !text.empty()) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string NextCommand(const InitFlags& flags, const data::Profile& profile,
                        const model::Draft& draft) {
  std::string command = StrCat("muster train ", ShellWord(flags.out), " --train");
  for (const std::string& pattern : flags.patterns) command += StrCat(" ", ShellWord(pattern));
  const uint64_t bad = profile.bad_rows + draft.label.profile->missing;
  if (bad > 0) command += StrCat(" --max-bad-records ", bad);
  return StrCat(command, " --model-dir model");
}

void PrintJson(const InitFlags& flags, const data::Profile& profile, const model::Draft& draft) {
  ordered_json label = ProfileColumnJson(*draft.label.profile, kShownValues);
  label["task"] = model::TaskName(draft.label.task);
  label["classes"] = draft.label.classes;
  if (!draft.label.note.empty()) label["note"] = draft.label.note;
  ordered_json object = {{"event", "drafted"},
                         {"out", flags.out},
                         {"format", profile.format_name()},
                         {"rows", profile.rows},
                         {"bad_rows", profile.bad_rows},
                         {"label", std::move(label)},
                         {"model", draft.type->name},
                         {"columns", ordered_json::array()},
                         {"warnings", draft.warnings},
                         {"next", NextCommand(flags, profile, draft)}};
  for (const DraftColumn& column : draft.columns) {
    ordered_json entry = ProfileColumnJson(*column.profile, kShownValues);
    entry["use"] = UseName(column.use);
    if (column.use == DraftColumn::Use::kLeftOut) entry["why"] = column.why;
    if (column.use == DraftColumn::Use::kHash) entry["buckets"] = column.buckets;
    object["columns"].push_back(std::move(entry));
  }
  std::printf("%s\n", object.dump(-1, ' ', false, ordered_json::error_handler_t::replace).c_str());
}

void PrintFound(const InitFlags& flags, const data::Profile& profile, const model::Draft& draft) {
  std::printf("%s: %s rows, %zu columns, %s\n", absl::StrJoin(flags.patterns, " ").c_str(),
              GroupDigits(profile.rows).c_str(), profile.columns.size(),
              std::string(profile.format_words()).c_str());
  if (!profile.format.columns.empty() && flags.format.columns.empty()) {
    std::printf("There is no header: the columns are named %s to %s\n",
                profile.format.columns.front().c_str(), profile.format.columns.back().c_str());
  }
  size_t width = 0;
  for (const DraftColumn& column : draft.columns) {
    width = std::max(width, NameColumns(column.profile->name));
  }
  constexpr size_t kMaxWidth = 32;
  width = std::min(width, kMaxWidth);
  for (const DraftColumn& column : draft.columns) {
    std::printf("  %s  %s (%s)\n", PadName(column.profile->name, width).c_str(),
                DescribeUse(column).c_str(), model::DescribeColumn(*column.profile).c_str());
  }
  const data::ColumnProfile& label = *draft.label.profile;
  std::printf("Label '%s': %s (%s)\n", label.name.c_str(),
              std::string(model::TaskName(draft.label.task)).c_str(),
              model::DescribeColumn(label).c_str());
  if (!draft.label.note.empty()) std::printf("  %s\n", draft.label.note.c_str());
  if (draft.label.task == model::DraftLabel::Task::kBinary) {
    const auto& words = draft.label.words;
    std::printf("  the model's probability is that of '%s'\n",
                words.empty() ? "1" : words[1].c_str());
  }
  if (label.missing > 0) {
    const bool is_one = label.missing == 1;
    std::printf("%s\n",
                StrCat(GroupDigits(label.missing), is_one ? " row has" : " rows have",
                       " no label: with --max-bad-records ", profile.bad_rows + label.missing,
                       " training leaves ", is_one ? "it" : "them", " out")
                    .c_str());
  }
  std::printf("Wrote %s: a %s model of %s column%s\n\nNext:\n  %s\n", flags.out.c_str(),
              std::string(draft.type->title).c_str(), GroupDigits(draft.used()).c_str(),
              draft.used() == 1 ? "" : "s", NextCommand(flags, profile, draft).c_str());
  std::printf(
      "To measure it on rows that it does not train on, add --eval 10%%: a tenth is held back.\n");
}

absl::Status CheckOut(io::FileSystem& files, const InitFlags& flags) {
  RefuseUnlessOk(CheckNotData(files, flags.patterns,
                              {{.flag = "--out", .path = flags.out, .example = "model.yaml"}}));
  if (flags.force || !files.Stat(flags.out).ok()) return absl::OkStatus();
  return absl::AlreadyExistsError(
      StrCat(flags.out, " exists: give --force to replace it, or another name with --out"));
}

// Of a topic, which may be endless, the newest records are looked at.
absl::StatusOr<std::vector<std::string>> ChooseRecords(const InitFlags& flags) {
  std::vector<std::string> patterns = flags.patterns;
  for (std::string& pattern : patterns) {
    if (!IsTopic(pattern)) continue;
    MUSTER_ASSIGN_OR_RETURN(const auto settings, ReadKafkaSettings(flags.kafka));
    MUSTER_ASSIGN_OR_RETURN(pattern, data::NameNewestRecords(pattern, kTopicRecords, settings));
  }
  return patterns;
}

absl::Status RunInit(const InitFlags& flags) {
  const auto files = files::OpenFileSystems();
  MUSTER_RETURN_IF_ERROR(CheckOut(*files, flags));
  const InterruptScope interrupt;
  MUSTER_ASSIGN_OR_RETURN(const auto patterns, ChooseRecords(flags));
  data::ProfileSpec spec = {
      .patterns = patterns,
      .format = flags.format,
      .schemes = DataSchemes(flags.kafka),
      .wanted = flags.label,
      .dates = formats::FindDateOrder(flags.dates).value_or(formats::DateOrder::kUnknown),
      .max_bad_records = flags.max_bad_records,
      .note = PrintNotesOnce()};
  spec.progress = [](uint64_t) {
    return InterruptScope::requested() ? absl::CancelledError("stopped; nothing was written")
                                       : absl::OkStatus();
  };
  MUSTER_ASSIGN_OR_RETURN(const data::Profile profile, data::ProfileData(*files, spec));
  const std::string data = absl::StrJoin(flags.patterns, " ");
  auto draft = model::DraftModel(
      profile, {.label = flags.label, .data_name = data, .model = flags.model, .item = flags.item});
  if (!draft.ok()) return Annotate(draft.status(), data);
  if (draft->yaml.size() > model::kMaxSpecBytes) {
    return absl::ResourceExhaustedError(
        StrCat("the model file would have ", draft->yaml.size(), " bytes, more than the ",
               model::kMaxSpecBytes, " that a training accepts: leave columns out of the data (",
               draft->columns.size(), " would be used), or long words"));
  }
  MUSTER_RETURN_IF_ERROR(io::WriteFileAtomically(*files, flags.out, draft->yaml));
  for (const std::string& warning : draft->warnings) {
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
  flags.json ? PrintJson(flags, profile, *draft) : PrintFound(flags, profile, *draft);
  return absl::OkStatus();
}

}  // namespace

void AddInit(CLI::App& app) {
  const auto flags = std::make_shared<InitFlags>();
  CLI::App* verb = app.add_subcommand("init", "Write a model file from data, ready to train");
  verb->footer(
      "One pass over the data finds types, missing values, means, vocabularies, dates, the header\n"
      "and the kind of label; docs/init.md says how. The model file is yours to change.\n"
      "Of a topic of Kafka the newest 1,000,000 records are looked at, or those of its ranges.\n"
      "Examples:\n"
      "  muster init train.csv --label Survived\n"
      "  muster train model.yaml --train train.csv --model-dir model\n"
      "  muster init clicks.csv --label label --model deepfm --out deepfm.yaml");
  verb->add_option("files", flags->patterns,
                   "CSV, TSV, TFRecord, Parquet or JSON lines: files or globs; or "
                   "kafka://BROKER/TOPIC")
      ->required()
      ->type_name("GLOB");
  verb->add_option("--label", flags->label, "Column to predict")->required()->type_name("NAME");
  verb->add_option("--model", flags->model,
                   "Kind of model (docs/spec.md; default: wide_deep for 1,000 rows and more, else "
                   "linear; for a regression linear)")
      ->check(CLI::IsMember(model::DraftTypeNames()));
  verb->add_option(
          "--item", flags->item,
          "Of two_tower: the columns that describe the item; the others describe the query")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("A,B,...");
  verb->add_option("--dates", flags->dates,
                   "Order of dates such as 1/2/2026 that could be read in both")
      ->check(CLI::IsMember({"month_first", "day_first"}));
  verb->add_option("--out", flags->out, "Model file to write")
      ->capture_default_str()
      ->type_name("FILE");
  verb->add_flag("--force", flags->force, "Replace the file of --out");
  verb->add_option("--max-bad-records", flags->max_bad_records,
                   "Leave out up to N rows that cannot be read")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  verb->add_flag("--json", flags->json, "What was found and the next command, as one object");
  AddFormatFlags(*verb, &flags->format);
  AddKafkaFlags(*verb, &flags->kafka);
  verb->callback([flags] { FailUnlessOk(RunInit(*flags)); });
}

}  // namespace muster::cli
