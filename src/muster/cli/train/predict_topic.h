// `muster predict` from one topic of Kafka into another. Each partition that is read has a
// transactional id of its own, and how far it was read is stored as offsets of a consumer group, in
// the transactions of the predictions. So a prediction that was killed is continued by the same
// command, and readers of committed records find each prediction once.
#pragma once

#include <string>
#include <vector>

#include "muster/base/status.h"
#include "muster/cli/train/model_flags.h"
#include "muster/cli/train/part_jobs.h"
#include "muster/score/prediction_writer.h"
#include "muster/train/estimator.h"

namespace muster::cli {

struct TopicPrediction {
  const DataFlags& data;
  std::string out;                        // the name of the topic
  std::string group;                      // the consumer group that keeps how far was read
  score::PredictionWriter::Options rows;  // of the values that are written
  PartFlags parts = {};                   // a task takes each workers-th of the partitions
  train::RejectRecord reject = {};
};

// INVALID_ARGUMENT unless data and output can be those of a prediction into a topic.
absl::Status CheckTopicPrediction(const DataFlags& data, const std::string& out,
                                  const std::string& group);

// Gives the names of topics the ranges of the records that exist now, in `data` and in `arguments`,
// which are the words of the command.
absl::Status FixRanges(DataFlags* data, std::vector<std::string>* arguments);

// Predicts the records that exist now and that the group has not read. The result's checkpoint is
// "" if there are none.
absl::StatusOr<train::PredictResult> PredictIntoTopic(const TopicPrediction& spec,
                                                      TrainedModel& model,
                                                      train::Progress& progress);

}  // namespace muster::cli
