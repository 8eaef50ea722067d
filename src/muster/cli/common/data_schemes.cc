#include "muster/cli/common/data_schemes.h"

#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

#include "CLI/CLI.hpp"
#include "muster/base/strings.h"
#include "muster/cli/common/interrupt.h"
#include "muster/data/kafka/kafka_set.h"
#include "muster/data/parquet/parquet_set.h"
#include "muster/files/file_systems.h"
#include "muster/io/path_scheme.h"
#include "muster/net/secret_file.h"

namespace muster::cli {
namespace {

constexpr char kConfigVariable[] = "MUSTER_KAFKA_CONFIG";

// Settings whose values every user of the machine could see among the processes.
bool IsSecret(const std::string& key) {
  return absl::StrContains(key, "password") || absl::StrContains(key, "secret") ||
         absl::StrContains(key, "key.pem") || absl::StrContains(key, "oauthbearer.config");
}

bool Split(const std::string& text, std::pair<std::string, std::string>* setting) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  setting->first = std::string(absl::StripAsciiWhitespace(text.substr(0, equals)));
  setting->second = std::string(absl::StripAsciiWhitespace(text.substr(equals + 1)));
  return !setting->first.empty();
}

std::string CheckSetting(const std::string& text) {
  std::pair<std::string, std::string> setting;
  if (!Split(text, &setting)) {
    return StrCat("'", text, "' is no KEY=VALUE, such as security.protocol=SASL_SSL");
  }
  if (!IsSecret(setting.first)) return "";
  return StrCat(setting.first,
                " would be seen among the processes: write it into the file of --kafka-config");
}

// A set whose settings could not be read.
class BrokenSet : public data::SourceSet {
 public:
  explicit BrokenSet(absl::Status why) : why_(std::move(why)) {}
  absl::StatusOr<std::vector<data::SourceItem>> List(
      const std::vector<std::string>& /*patterns*/) const override {
    return why_;
  }
  absl::StatusOr<bool> CanBeCut(const data::SourceItem& /*item*/,
                                const formats::DataFormat& /*format*/) const override {
    return why_;
  }
  absl::StatusOr<uint64_t> CountRecords(const data::SourceItem& /*item*/,
                                        const formats::DataFormat& /*format*/) const override {
    return why_;
  }
  absl::StatusOr<std::vector<std::unique_ptr<data::RecordSource>>> OpenShards(
      const data::SourceSpec& /*spec*/, std::span<const data::Shard> /*shards*/,
      uint64_t /*max_bad_records*/) const override {
    return why_;
  }

 private:
  const absl::Status why_;
};

}  // namespace

void AddKafkaFlags(CLI::App& verb, KafkaFlags* flags) {
  constexpr char kGroup[] = "Kafka (docs/kafka.md)";
  verb.add_option("--kafka", flags->settings,
                  "Setting of librdkafka for kafka:// names; once for each")
      ->allow_extra_args(false)
      ->check(CheckSetting)
      ->type_name("KEY=VALUE")
      ->group(kGroup);
  verb.add_option(
          "--kafka-config", flags->config,
          StrCat("File of such lines, of mode 0600 (default: the variable ", kConfigVariable, ")"))
      ->type_name("FILE")
      ->group(kGroup);
}

bool IsTopic(const std::string& name) { return io::PathScheme(name) == data::kKafkaScheme; }

absl::StatusOr<data::KafkaSettings> ReadKafkaSettings(const KafkaFlags& flags) {
  data::KafkaSettings settings;
  std::string path = flags.config;
  const char* const variable = std::getenv(kConfigVariable);
  if (path.empty() && variable != nullptr) path = variable;
  if (!path.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const std::string text, net::ReadSecretFile(path));
    int number = 0;
    for (const absl::string_view part : absl::StrSplit(ToAbsl(text), '\n')) {
      ++number;
      const std::string line(absl::StripAsciiWhitespace(part));
      if (line.empty() || line[0] == '#') continue;
      if (Split(line, &settings.emplace_back())) continue;
      return absl::InvalidArgumentError(StrCat(path, ":", number, ": expected KEY=VALUE"));
    }
  }
  for (const std::string& text : flags.settings) Split(text, &settings.emplace_back());
  return settings;
}

std::shared_ptr<const data::SourceSet> ParquetData(const std::string& python) {
  data::ParquetSettings settings;
  settings.open_files = [] { return std::shared_ptr<io::FileSystem>(files::OpenFileSystems()); };
  const char* const variable = std::getenv(kParquetPythonVariable);
  if (variable != nullptr && *variable != '\0') settings.python = variable;
  if (!python.empty()) settings.python = python;
  return data::NewParquetSet(std::move(settings));
}

data::SourceSchemes DataSchemes(const KafkaFlags& flags) {
  auto settings = ReadKafkaSettings(flags);
  std::shared_ptr<const data::SourceSet> set;
  if (settings.ok()) {
    set = data::NewKafkaSet(*std::move(settings), &InterruptScope::requested());
  } else {
    set = std::make_shared<BrokenSet>(settings.status());
  }
  return {{std::string(data::kKafkaScheme), std::move(set)},
          {std::string(data::kParquetKind), ParquetData("")}};
}

}  // namespace muster::cli
