// librdkafka (https://github.com/confluentinc/librdkafka), loaded when the first kafka:// name is
// used: programs without one need no such library.
#pragma once

#include <librdkafka/rdkafka.h>

#include "muster/base/status.h"

namespace muster::data {

// The functions that are used.
// clang-format off
#define MUSTER_RDKAFKA_FUNCTIONS(each) \
  each(rd_kafka_abort_transaction) \
  each(rd_kafka_begin_transaction) \
  each(rd_kafka_clusterid) \
  each(rd_kafka_commit_queue) \
  each(rd_kafka_commit_transaction) \
  each(rd_kafka_committed) \
  each(rd_kafka_conf_destroy) \
  each(rd_kafka_conf_new) \
  each(rd_kafka_conf_set) \
  each(rd_kafka_conf_set_dr_msg_cb) \
  each(rd_kafka_conf_set_log_cb) \
  each(rd_kafka_conf_set_opaque) \
  each(rd_kafka_ConfigEntry_name) \
  each(rd_kafka_ConfigEntry_value) \
  each(rd_kafka_ConfigResource_configs) \
  each(rd_kafka_ConfigResource_destroy) \
  each(rd_kafka_ConfigResource_error) \
  each(rd_kafka_ConfigResource_new) \
  each(rd_kafka_consume) \
  each(rd_kafka_consume_batch) \
  each(rd_kafka_consume_start) \
  each(rd_kafka_consume_stop) \
  each(rd_kafka_consumer_group_metadata_destroy) \
  each(rd_kafka_consumer_poll) \
  each(rd_kafka_consumer_group_metadata_new) \
  each(rd_kafka_CreateTopics) \
  each(rd_kafka_CreateTopics_result_topics) \
  each(rd_kafka_DescribeConfigs) \
  each(rd_kafka_DescribeConfigs_result_resources) \
  each(rd_kafka_destroy) \
  each(rd_kafka_err2str) \
  each(rd_kafka_error_code) \
  each(rd_kafka_error_destroy) \
  each(rd_kafka_error_string) \
  each(rd_kafka_event_CreateTopics_result) \
  each(rd_kafka_event_DescribeConfigs_result) \
  each(rd_kafka_event_destroy) \
  each(rd_kafka_event_error) \
  each(rd_kafka_fatal_error) \
  each(rd_kafka_flush) \
  each(rd_kafka_header_get_last) \
  each(rd_kafka_init_transactions) \
  each(rd_kafka_last_error) \
  each(rd_kafka_mem_free) \
  each(rd_kafka_message_destroy) \
  each(rd_kafka_message_headers) \
  each(rd_kafka_message_timestamp) \
  each(rd_kafka_metadata) \
  each(rd_kafka_metadata_destroy) \
  each(rd_kafka_new) \
  each(rd_kafka_NewTopic_destroy) \
  each(rd_kafka_NewTopic_new) \
  each(rd_kafka_opaque) \
  each(rd_kafka_poll) \
  each(rd_kafka_produce) \
  each(rd_kafka_purge) \
  each(rd_kafka_query_watermark_offsets) \
  each(rd_kafka_queue_destroy) \
  each(rd_kafka_queue_new) \
  each(rd_kafka_queue_poll) \
  each(rd_kafka_seek) \
  each(rd_kafka_send_offsets_to_transaction) \
  each(rd_kafka_topic_destroy) \
  each(rd_kafka_topic_new) \
  each(rd_kafka_topic_partition_list_add) \
  each(rd_kafka_topic_partition_list_destroy) \
  each(rd_kafka_topic_partition_list_new) \
  each(rd_kafka_topic_result_error) \
  each(rd_kafka_topic_result_error_string) \
  each(rd_kafka_version_str)
// clang-format on

struct RdKafka {
#define MUSTER_DECLARE(name) decltype(&::name) name = nullptr;
  MUSTER_RDKAFKA_FUNCTIONS(MUSTER_DECLARE)
#undef MUSTER_DECLARE
};

// Thread-safe; the library stays loaded. FAILED_PRECONDITION names the package to install.
absl::StatusOr<const RdKafka*> LoadRdKafka();

}  // namespace muster::data
