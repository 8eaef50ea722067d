// KafkaHandle: librdkafka's client of one Kafka cluster, with the errors that users see. What reads
// (kafka_cluster.h) and what writes (kafka_writer.h) stand on it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/data/kafka/rdkafka_library.h"

namespace muster::data {

// Settings of librdkafka (its CONFIGURATION.md), such as security.protocol and sasl.username.
using KafkaSettings = std::vector<std::pair<std::string, std::string>>;

// Thread-safe.
class KafkaHandle {
 public:
  using Setting = std::pair<const char*, const char*>;
  // `type` is RD_KAFKA_CONSUMER or RD_KAFKA_PRODUCER. The user's `settings` replace `defaults`, and
  // may have none of `decided`. INVALID_ARGUMENT for one that is unknown or decided.
  struct Spec {
    rd_kafka_type_t type = RD_KAFKA_CONSUMER;
    std::string brokers = {};  // as in KafkaName
    const KafkaSettings& settings;
    std::span<const Setting> defaults = {};
    std::span<const Setting> decided = {};
    // Called with each message that was stored, or that could not be.
    void (*delivered)(rd_kafka_t*, const rd_kafka_message_t*, void* opaque) = nullptr;
    void* opaque = nullptr;
  };

  KafkaHandle() = default;
  ~KafkaHandle();
  KafkaHandle(const KafkaHandle&) = delete;
  KafkaHandle& operator=(const KafkaHandle&) = delete;

  absl::Status Open(const Spec& spec);

  const RdKafka& calls() const { return *calls_; }
  rd_kafka_t* get() const { return handle_; }
  const std::string& brokers() const { return brokers_; }

  // NOT_FOUND for an unknown topic, with the names that are near.
  absl::StatusOr<std::vector<int32_t>> ListPartitions(const std::string& topic);
  // The caller destroys the result.
  absl::StatusOr<rd_kafka_topic_t*> OpenTopic(const std::string& topic);

  // Returns "kafka://B: WHAT: the error", with what librdkafka has logged and what to do.
  absl::Status Failed(rd_kafka_resp_err_t error, std::string_view what);

 private:
  static void KeepLog(const rd_kafka_t* handle, int level, const char* facility, const char* text);
  absl::Status SetAll(rd_kafka_conf_t* conf, const Spec& spec);
  absl::Status Set(rd_kafka_conf_t* conf, const std::string& key, const std::string& value);
  absl::StatusOr<std::vector<int32_t>> AskForPartitions(rd_kafka_topic_t* asked,
                                                        const std::string& topic);
  absl::Status UnknownTopic(const std::string& topic);
  // What to do about brokers that are not reached; `log` is what librdkafka has logged of that.
  std::string_view AdviceFor(std::string_view log) const;

  const RdKafka* calls_ = nullptr;
  rd_kafka_type_t type_ = RD_KAFKA_CONSUMER;
  bool names_protocol_ = false;  // whether the user says how brokers are reached
  std::string brokers_;
  rd_kafka_t* handle_ = nullptr;
  void* opaque_ = nullptr;
  void (*delivered_)(rd_kafka_t*, const rd_kafka_message_t*, void*) = nullptr;
  Mutex mutex_;
  std::string last_log_ ABSL_GUARDED_BY(mutex_);
};

inline constexpr int kKafkaAnswerMillis = 10'000;  // how long an answer is waited for
// How long silent brokers are waited for, and after what time a warning says so.
inline constexpr int kKafkaSilenceSeconds = 60;
inline constexpr int kKafkaWarningSeconds = 10;

// Prints on stderr that `what` is waited for, after `seconds` without an answer: a wait of a minute
// must not look like a program that hangs.
void WarnOfSilence(const std::string& brokers, std::string_view what, double seconds);

// INVALID_ARGUMENT if the protocol is one with SASL, and the mechanism, or the name and password
// that it takes, are missing.
absl::Status CheckSaslSettings(const KafkaSettings& settings);

}  // namespace muster::data
