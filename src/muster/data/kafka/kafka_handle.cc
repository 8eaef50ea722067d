#include "muster/data/kafka/kafka_handle.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

#include "muster/base/nearest.h"
#include "muster/base/strings.h"

namespace muster::data {
namespace {

constexpr size_t kErrorBytes = 512;

// The setting's last value; "" if it is not given.
std::string_view FindSetting(const KafkaSettings& settings, std::string_view key) {
  std::string_view found;
  for (const auto& [name, value] : settings) {
    if (name == key) found = value;
  }
  return found;
}

}  // namespace

absl::Status CheckSaslSettings(const KafkaSettings& settings) {
  const std::string_view protocol = FindSetting(settings, "security.protocol");
  if (!absl::StartsWithIgnoreCase(ToAbsl(protocol), "sasl")) return absl::OkStatus();
  std::string_view mechanism = FindSetting(settings, "sasl.mechanism");
  if (mechanism.empty()) mechanism = FindSetting(settings, "sasl.mechanisms");
  std::vector<std::string> missing;
  if (mechanism.empty()) {
    missing.emplace_back(
        "sasl.mechanism (PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, with sasl.username and "
        "sasl.password; GSSAPI for Kerberos)");
  } else if (mechanism == "PLAIN" || mechanism.starts_with("SCRAM")) {
    for (const std::string_view key : {"sasl.username", "sasl.password"}) {
      if (FindSetting(settings, key).empty()) missing.emplace_back(key);
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("Kafka's setting security.protocol=", protocol, " also needs ",
             absl::StrJoin(missing, " and "),
             "; write this into the file that --kafka-config names (docs/kafka.md)"));
}

void WarnOfSilence(const std::string& brokers, std::string_view what, double seconds) {
  std::fprintf(stderr, "warning: kafka://%s: %s: no answer for %.0f s; this waits until %d s\n",
               brokers.c_str(), std::string(what).c_str(), seconds, kKafkaSilenceSeconds);
}

KafkaHandle::~KafkaHandle() {
  if (handle_ != nullptr) calls_->rd_kafka_destroy(handle_);
}

absl::Status KafkaHandle::Open(const Spec& spec) {
  MUSTER_RETURN_IF_ERROR(CheckSaslSettings(spec.settings));
  MUSTER_ASSIGN_OR_RETURN(calls_, LoadRdKafka());
  type_ = spec.type;
  names_protocol_ = std::ranges::any_of(
      spec.settings, [](const auto& setting) { return setting.first == "security.protocol"; });
  brokers_ = spec.brokers;
  opaque_ = spec.opaque;
  delivered_ = spec.delivered;
  rd_kafka_conf_t* const conf = calls_->rd_kafka_conf_new();
  if (const absl::Status set = SetAll(conf, spec); !set.ok()) {
    calls_->rd_kafka_conf_destroy(conf);
    return set;
  }
  calls_->rd_kafka_conf_set_opaque(conf, this);
  calls_->rd_kafka_conf_set_log_cb(conf, &KafkaHandle::KeepLog);
  if (delivered_ != nullptr) {
    calls_->rd_kafka_conf_set_dr_msg_cb(
        conf, [](rd_kafka_t* handle, const rd_kafka_message_t* message, void* opaque) {
          const auto* const self = static_cast<KafkaHandle*>(opaque);
          self->delivered_(handle, message, self->opaque_);
        });
  }
  char error[kErrorBytes] = "";
  handle_ = calls_->rd_kafka_new(spec.type, conf, error, sizeof error);
  if (handle_ != nullptr) return absl::OkStatus();
  calls_->rd_kafka_conf_destroy(conf);
  return absl::InvalidArgumentError(StrCat("kafka://", brokers_, ": ", error));
}

absl::StatusOr<rd_kafka_topic_t*> KafkaHandle::OpenTopic(const std::string& topic) {
  rd_kafka_topic_t* const opened = calls_->rd_kafka_topic_new(handle_, topic.c_str(), nullptr);
  if (opened != nullptr) return opened;
  return Failed(calls_->rd_kafka_last_error(), StrCat("opening topic ", topic));
}

absl::StatusOr<std::vector<int32_t>> KafkaHandle::ListPartitions(const std::string& topic) {
  MUSTER_ASSIGN_OR_RETURN(rd_kafka_topic_t* const asked, OpenTopic(topic));
  auto partitions = AskForPartitions(asked, topic);
  calls_->rd_kafka_topic_destroy(asked);
  return partitions;
}

absl::Status KafkaHandle::Failed(rd_kafka_resp_err_t error, std::string_view what) {
  const std::string message =
      StrCat("kafka://", brokers_, ": ", what, ": ", calls_->rd_kafka_err2str(error));
  switch (error) {
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
      return absl::PermissionDeniedError(StrCat(message, "; the user needs ",
                                                type_ == RD_KAFKA_PRODUCER ? "Write" : "Read",
                                                " and Describe on it (kafka-acls --add)"));
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
      return absl::PermissionDeniedError(
          StrCat(message, "; the user needs Read on the group (kafka-acls --add --group)"));
    case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
      return absl::PermissionDeniedError(StrCat(
          message, "; the user needs Write and Describe on the transactional id (kafka-acls ",
          "--add --transactional-id muster- --resource-pattern-type prefixed)"));
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      return absl::NotFoundError(message);
    default:
      break;
  }
  const bool is_unreached = error == RD_KAFKA_RESP_ERR__TRANSPORT ||
                            error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN ||
                            error == RD_KAFKA_RESP_ERR__TIMED_OUT;
  const MutexLock lock(&mutex_);
  const std::string why = last_log_.empty() ? "" : StrCat(" (", last_log_, ")");
  return absl::UnavailableError(StrCat(message, why, is_unreached ? AdviceFor(last_log_) : ""));
}

std::string_view KafkaHandle::AdviceFor(std::string_view log) const {
  for (const char* const sign : {"Connection refused", "Failed to resolve", "timed out"}) {
    if (absl::StrContains(ToAbsl(log), sign)) {
      return "; see that the brokers run, and that this machine reaches their addresses";
    }
  }
  if (names_protocol_ || log.empty()) return "";
  return "; if these brokers want TLS or a password, give security.protocol (docs/kafka.md)";
}

void KafkaHandle::KeepLog(const rd_kafka_t* handle, int /*level*/, const char* /*facility*/,
                          const char* text) {
  auto* const self = static_cast<KafkaHandle*>((*LoadRdKafka())->rd_kafka_opaque(handle));
  std::string_view line = text;
  if (line.starts_with("[thrd:")) line.remove_prefix(std::min(line.find("]: ") + 3, line.size()));
  const MutexLock lock(&self->mutex_);
  self->last_log_ = line;
}

absl::Status KafkaHandle::SetAll(rd_kafka_conf_t* conf, const Spec& spec) {
  const auto is_decided = [&](const std::string& key) {
    return key == "bootstrap.servers" ||
           std::any_of(spec.decided.begin(), spec.decided.end(),
                       [&](const Setting& setting) { return key == setting.first; });
  };
  for (const auto& [key, value] : spec.defaults) MUSTER_RETURN_IF_ERROR(Set(conf, key, value));
  for (const auto& [key, value] : spec.settings) {
    if (is_decided(key)) {
      return absl::InvalidArgumentError(
          StrCat("Kafka's setting ", key, " is decided by muster: leave it out"));
    }
    MUSTER_RETURN_IF_ERROR(Set(conf, key, value));
  }
  for (const auto& [key, value] : spec.decided) {
    if (value != nullptr) MUSTER_RETURN_IF_ERROR(Set(conf, key, value));
  }
  return Set(conf, "bootstrap.servers", brokers_);
}

absl::Status KafkaHandle::Set(rd_kafka_conf_t* conf, const std::string& key,
                              const std::string& value) {
  char error[kErrorBytes] = "";
  if (calls_->rd_kafka_conf_set(conf, key.c_str(), value.c_str(), error, sizeof error) ==
      RD_KAFKA_CONF_OK) {
    return absl::OkStatus();
  }
  // librdkafka's text has the value, which may be a password.
  return absl::InvalidArgumentError(StrCat("Kafka's setting ", key, " is unknown to librdkafka ",
                                           calls_->rd_kafka_version_str(),
                                           ", or its value is not allowed"));
}

absl::StatusOr<std::vector<int32_t>> KafkaHandle::AskForPartitions(rd_kafka_topic_t* asked,
                                                                   const std::string& topic) {
  const rd_kafka_metadata_t* found = nullptr;
  rd_kafka_resp_err_t error =
      calls_->rd_kafka_metadata(handle_, 0, asked, &found, kKafkaAnswerMillis);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return Failed(error, StrCat("asking for topic ", topic));
  }
  std::vector<int32_t> partitions;
  if (found->topic_cnt == 1) {
    error = found->topics[0].err;
    for (int i = 0; i < found->topics[0].partition_cnt; ++i) {
      partitions.push_back(found->topics[0].partitions[i].id);
    }
  }
  calls_->rd_kafka_metadata_destroy(found);
  if (error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) return UnknownTopic(topic);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return Failed(error, StrCat("topic ", topic));
  if (partitions.empty()) return UnknownTopic(topic);
  std::sort(partitions.begin(), partitions.end());
  return partitions;
}

absl::Status KafkaHandle::UnknownTopic(const std::string& topic) {
  const rd_kafka_metadata_t* found = nullptr;
  std::vector<std::string> names;
  if (calls_->rd_kafka_metadata(handle_, 1, nullptr, &found, kKafkaAnswerMillis) ==
      RD_KAFKA_RESP_ERR_NO_ERROR) {
    for (int i = 0; i < found->topic_cnt; ++i) {
      const std::string_view name = found->topics[i].topic;
      if (!name.starts_with("__")) names.emplace_back(name);
    }
    calls_->rd_kafka_metadata_destroy(found);
  }
  if (std::ranges::find(names, topic) != names.end()) {
    return absl::UnavailableError(StrCat(
        "kafka://", brokers_, ": the topic '", topic,
        "' was not there; the broker is making it, as it is set to do for each topic that is ",
        "asked for: run the command again"));
  }
  return absl::NotFoundError(
      StrCat("kafka://", brokers_, ": there is no topic '", topic, "'", DidYouMean(topic, names)));
}

}  // namespace muster::data
