#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "muster/base/clock.h"
#include "muster/base/strings.h"
#include "muster/cli/common/data_schemes.h"
#include "muster/cli/common/format_flags.h"
#include "muster/cli/common/row_progress.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/records/record_feed.h"
#include "muster/cli/records/verbs.h"
#include "muster/data/kafka/kafka_writer.h"
#include "muster/files/file_systems.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

constexpr uint64_t kProgressRecords = 1024;

struct ToKafkaFlags {
  std::vector<std::string> patterns;
  std::string to;
  std::string transaction;
  std::optional<int32_t> partition;
  bool create = false;
  int partitions = 0;
  formats::DataFormat format;
  KafkaFlags kafka;
  bool json = false;
};

// An id that no other run has.
std::string NewTransactionId(const std::string& topic) {
  const auto micros = static_cast<int64_t>(SystemClock().WallSeconds() * 1e6);
  return StrCat("muster-", topic, "-", micros, "-", getpid());
}

// Returns the partitions that records are dealt to.
absl::StatusOr<std::vector<int32_t>> ChoosePartitions(const ToKafkaFlags& flags,
                                                      const data::KafkaName& name,
                                                      const std::vector<int32_t>& all) {
  if (!flags.partition) return all;
  if (std::ranges::find(all, *flags.partition) != all.end()) return std::vector{*flags.partition};
  return absl::NotFoundError(StrCat("--partition ", *flags.partition, ": topic ", name.topic,
                                    " has the partitions 0 to ", all.back()));
}

void PrintWritten(const ToKafkaFlags& flags, data::KafkaName name, size_t partitions,
                  uint64_t records, std::vector<data::OffsetRange> ranges) {
  if (!flags.json) {
    std::printf("Wrote %llu records to %zu partition%s of %s\n",
                static_cast<unsigned long long>(records), partitions, partitions == 1 ? "" : "s",
                name.topic.c_str());
    return;
  }
  ordered_json object = {{"event", "written"},
                         {"topic", name.topic},
                         {"partitions", partitions},
                         {"records", records},
                         {"ranges", ordered_json::array()}};
  for (const data::OffsetRange& range : ranges) {
    object["ranges"].push_back(
        {{"partition", range.partition}, {"begin", range.begin}, {"end", range.end}});
  }
  if (!ranges.empty()) {
    name.ranges = std::move(ranges);
    object["name"] = data::PrintKafkaName(name);
  }
  std::printf("%s\n", object.dump().c_str());
}

absl::Status RunToKafka(const ToKafkaFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const data::KafkaSettings settings, ReadKafkaSettings(flags.kafka));
  MUSTER_ASSIGN_OR_RETURN(const data::KafkaName name, data::ParseKafkaName(flags.to));
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(
      const auto writer, data::OpenKafkaWriter({.name = name,
                                                .transaction_id = flags.transaction.empty()
                                                                      ? NewTransactionId(name.topic)
                                                                      : flags.transaction,
                                                .make_topic = flags.create,
                                                .partitions = flags.partitions},
                                               settings));
  MUSTER_ASSIGN_OR_RETURN(const auto partitions,
                          ChoosePartitions(flags, name, writer->partitions()));
  uint64_t records = 0;
  auto progress = std::make_unique<RowProgress>("to-kafka", "records", flags.json);
  const auto take = [&](std::string_view record) -> absl::Status {
    MUSTER_RETURN_IF_ERROR(writer->Append(partitions[records % partitions.size()], record));
    ++records;
    if (records % kProgressRecords == 0) progress->Update(static_cast<int64_t>(records));
    return absl::OkStatus();
  };
  MUSTER_RETURN_IF_ERROR(FeedRecords(*files, flags.patterns, flags.format, take));
  MUSTER_RETURN_IF_ERROR(writer->Commit());
  progress.reset();
  PrintWritten(flags, name, partitions.size(), records, writer->GetWritten());
  return absl::OkStatus();
}

}  // namespace

void AddRecordsToKafka(CLI::App& records) {
  const auto flags = std::make_shared<ToKafkaFlags>();
  CLI::App* verb = records.add_subcommand("to-kafka", "Write the records of files to a topic");
  verb->footer(
      "A record becomes the value of a message: a tf.Example, a row of CSV, or a JSON object. "
      "They\n"
      "are dealt round robin to the topic's partitions, in one transaction: readers of committed\n"
      "records see all of them at the end, or none. - is standard input: lines of JSON or of CSV\n"
      "without a header, or a stream of batches (docs/formats/batch_stream.md), whose rows become\n"
      "tf.Examples.\n"
      "Example:\n"
      "  muster records to-kafka 'data/train/part-*' --to kafka://broker:9092/clicks");
  verb->add_option("files", flags->patterns, "TFRecord, CSV or JSON lines: files or globs; or -")
      ->required()
      ->type_name("GLOB");
  verb->add_option("--to", flags->to, "kafka://BROKER,BROKER/TOPIC")->required()->type_name("NAME");
  verb->add_option("--transaction", flags->transaction,
                   "Of several runs with the same ID only the last one that begins can write: for "
                   "attempts of one task")
      ->type_name("ID");
  verb->add_option("--partition", flags->partition, "Write to this partition alone")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  auto* const create = verb->add_flag("--create", flags->create, "Make the topic if there is none");
  verb->add_option("--partitions", flags->partitions,
                   "Partitions of a topic that is made (default: as the brokers are set)")
      ->check(CLI::Range(1, 100'000))
      ->needs(create)
      ->type_name("N");
  AddFormatFlags(*verb, &flags->format);
  AddKafkaFlags(*verb, &flags->kafka);
  verb->add_flag("--json", flags->json, "One JSON object at the end");
  verb->callback([flags] { FailUnlessOk(RunToKafka(*flags)); });
}

}  // namespace muster::cli
