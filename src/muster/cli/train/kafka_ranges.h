// Which records of a topic a training reads is decided once, when it begins, and kept in its model
// folder, so that the same command continues with the same records.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/cli/train/train_run.h"
#include "muster/io/file_system.h"

namespace muster::cli {

// Replaces each kafka:// name of --train and --eval by one with fixed ranges
// (data/kafka/kafka_name.h), in `flags` and in `arguments`, which are the words of the command. The
// ranges are those of MODEL_DIR/kafka.json; a topic that it lacks, and with --fresh-data, or if the
// training has not come to a first step, every topic, gets the ranges of the records that exist
// now, which are added to the file before the training begins. Names with ranges, and those of
// --train with --follow, stay as they are.
absl::Status FixTopics(io::FileSystem& files, TrainFlags* flags,
                       std::vector<std::string>* arguments);

// The same for these names of topics, with the ranges of FOLDER/kafka.json; `begins`: with those of
// the records that exist now.
absl::Status FixTopicNames(io::FileSystem& files, const std::string& folder,
                           const KafkaFlags& kafka, bool begins,
                           const std::vector<std::string*>& names);

// Replaces the data `old` by `text` among the words of a command.
void ReplaceWord(const std::string& old, const std::string& text, std::vector<std::string>* words);

// For a task that another launcher has started: INVALID_ARGUMENT for a name without ranges, of
// which each task would read other records.
absl::Status CheckTopicsAreFixed(const TrainFlags& flags);

}  // namespace muster::cli
