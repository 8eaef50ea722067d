// Data that is not in files of records: kafka:// names, and Parquet files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "muster/base/status.h"
#include "muster/data/kafka/kafka_cluster.h"
#include "muster/data/source.h"
#include "muster/data/source_set.h"

namespace muster::cli {

// Flags about data that is not in files.
struct KafkaFlags {
  std::vector<std::string> settings;  // KEY=VALUE
  std::string config;                 // a file of them; "": the variable MUSTER_KAFKA_CONFIG's
};
// Adds --kafka and --kafka-config. Wrong values are thrown as CLI11 does.
void AddKafkaFlags(CLI::App& verb, KafkaFlags* flags);

// Whether data or an output is a topic, or records of one.
bool IsTopic(const std::string& name);

// Reads the settings: those of the file, then those of --kafka. Errors name the line.
absl::StatusOr<data::KafkaSettings> ReadKafkaSettings(const KafkaFlags& flags);

inline constexpr char kParquetPythonVariable[] = "MUSTER_PARQUET_PYTHON";

// Returns the set of Parquet files, read by `python` or, if it is "", by the Python that the
// variable names (default: python3).
std::shared_ptr<const data::SourceSet> ParquetData(const std::string& python);

// Returns the table for data::SourceSpec::schemes. A file of settings that is broken is an error of
// the first source that is opened.
data::SourceSchemes DataSchemes(const KafkaFlags& flags);

}  // namespace muster::cli
