#include <cstdio>
#include <memory>

#include "CLI/CLI.hpp"
#include "muster/cli/common/data_schemes.h"
#include "muster/cli/common/verb.h"
#include "muster/cli/records/verbs.h"
#include "muster/data/kafka/kafka_set.h"

namespace muster::cli {
namespace {

struct RangesFlags {
  std::vector<std::string> names;
  KafkaFlags kafka;
};

absl::Status RunRanges(const RangesFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const data::KafkaSettings settings, ReadKafkaSettings(flags.kafka));
  MUSTER_ASSIGN_OR_RETURN(const auto fixed, data::FixKafkaNames(flags.names, settings));
  for (const std::string& name : fixed) std::printf("%s\n", name.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddRecordsRanges(CLI::App& records) {
  const auto flags = std::make_shared<RangesFlags>();
  CLI::App* verb =
      records.add_subcommand("ranges", "Print kafka:// names with the ranges of today's records");
  verb->footer(
      "Such a name means the same records for every process at every time.\nExample:\n"
      "  muster records ranges kafka://broker:9092/clicks");
  verb->add_option("names", flags->names, "kafka://BROKER,BROKER/TOPIC")
      ->required()
      ->type_name("NAME");
  AddKafkaFlags(*verb, &flags->kafka);
  verb->callback([flags] { FailUnlessOk(RunRanges(*flags)); });
}

}  // namespace muster::cli
