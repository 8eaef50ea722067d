// kafka_consume BROKERS TOPIC COUNT: takes the first COUNT messages of partition 0 by librdkafka's
// batch consumer, with its own settings, and does nothing with them. Prints {"messages": ...,
// "bytes": ...}.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"

#include "muster/data/kafka/rdkafka_library.h"

namespace muster::data {
namespace {

constexpr size_t kAtOnce = 10'000;
constexpr int kPatienceMillis = 30'000;

absl::Status Consume(const std::string& brokers, const std::string& name, int64_t wanted) {
  MUSTER_ASSIGN_OR_RETURN(const RdKafka* const call, LoadRdKafka());
  char error[512] = {};
  rd_kafka_conf_t* const settings = call->rd_kafka_conf_new();
  if (call->rd_kafka_conf_set(settings, "bootstrap.servers", brokers.c_str(), error,
                              sizeof error) != RD_KAFKA_CONF_OK) {
    return absl::InvalidArgumentError(error);
  }
  rd_kafka_t* const client = call->rd_kafka_new(RD_KAFKA_CONSUMER, settings, error, sizeof error);
  if (client == nullptr) return absl::InternalError(error);
  rd_kafka_topic_t* const topic = call->rd_kafka_topic_new(client, name.c_str(), nullptr);
  call->rd_kafka_consume_start(topic, 0, 0);
  std::vector<rd_kafka_message_t*> messages(kAtOnce);
  int64_t taken = 0, bytes = 0;
  while (taken < wanted) {
    const ssize_t count =
        call->rd_kafka_consume_batch(topic, 0, kPatienceMillis, messages.data(), messages.size());
    if (count <= 0) return absl::DeadlineExceededError("no message came for 30 s");
    for (ssize_t i = 0; i < count; ++i) {
      rd_kafka_message_t* const message = messages[static_cast<size_t>(i)];
      if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        ++taken;
        bytes += static_cast<int64_t>(message->len);
      }
      call->rd_kafka_message_destroy(message);
    }
  }
  call->rd_kafka_consume_stop(topic, 0);
  call->rd_kafka_topic_destroy(topic);
  call->rd_kafka_destroy(client);
  std::printf("{\"messages\": %lld, \"bytes\": %lld}\n", static_cast<long long>(taken),
              static_cast<long long>(bytes));
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster::data

int main(int argc, char** argv) {
  int64_t count = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[3], &count)) {
    std::fprintf(stderr, "usage: kafka_consume BROKERS TOPIC COUNT\n");
    return 2;
  }
  const absl::Status status = muster::data::Consume(argv[1], argv[2], count);
  if (status.ok()) return 0;
  std::fprintf(stderr, "kafka_consume: %s\n", std::string(status.message()).c_str());
  return 1;
}
