#include "muster/data/kafka/kafka_name.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "muster/base/strings.h"
#include "muster/io/path_scheme.h"

namespace muster::data {
namespace {

constexpr char kForm[] = "expected kafka://BROKER:9092,BROKER:9092/TOPIC";
constexpr char kRangesForm[] =
    "expected ranges=PARTITION:BEGIN-END,... with 0 <= BEGIN <= END and each partition once";

absl::Status NameError(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(StrCat(text, ": ", why));
}

// What Kafka allows (org.apache.kafka.common.internals.Topic).
bool IsTopic(std::string_view name) {
  return !name.empty() && name.size() <= 249 && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

bool ParseRange(std::string_view text, OffsetRange* range) {
  const size_t colon = text.find(':'), dash = text.find('-');
  if (colon == std::string_view::npos || dash == std::string_view::npos || dash < colon) {
    return false;
  }
  return absl::SimpleAtoi(ToAbsl(text.substr(0, colon)), &range->partition) &&
         absl::SimpleAtoi(ToAbsl(text.substr(colon + 1, dash - colon - 1)), &range->begin) &&
         absl::SimpleAtoi(ToAbsl(text.substr(dash + 1)), &range->end) && range->partition >= 0 &&
         range->begin >= 0 && range->begin <= range->end;
}

bool ParseRanges(std::string_view text, std::vector<OffsetRange>* ranges) {
  for (const absl::string_view part : absl::StrSplit(ToAbsl(text), ',')) {
    if (!ParseRange(ToStd(part), &ranges->emplace_back())) return false;
  }
  std::sort(ranges->begin(), ranges->end(),
            [](const OffsetRange& a, const OffsetRange& b) { return a.partition < b.partition; });
  const auto twice = std::adjacent_find(
      ranges->begin(), ranges->end(),
      [](const OffsetRange& a, const OffsetRange& b) { return a.partition == b.partition; });
  return twice == ranges->end();
}

constexpr std::string_view kHeader = "header.";

// Whether `key` names a part of a message, whose column becomes `column`.
bool ParseColumn(std::string_view key, std::string_view column, MessageColumns* columns) {
  if (column.empty()) return false;
  for (const auto& [name, to] :
       {std::pair{std::string_view("key"), &columns->key}, {"timestamp", &columns->timestamp}}) {
    if (key != name) continue;
    if (!to->empty()) return false;
    *to = column;
    return true;
  }
  if (!key.starts_with(kHeader) || key.size() == kHeader.size()) return false;
  columns->headers.emplace_back(key.substr(kHeader.size()), column);
  return true;
}

absl::Status CheckColumns(std::string_view text, const MessageColumns& columns) {
  std::vector<std::string> names = columns.Names();
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return absl::OkStatus();
  return NameError(text, StrCat("two columns are named '", *twice, "'"));
}

absl::Status ParseQuery(std::string_view text, std::string_view query, KafkaName* name) {
  for (const absl::string_view part : absl::StrSplit(ToAbsl(query), '&')) {
    const std::string_view setting = ToStd(part);
    const size_t equals = std::min(setting.find('='), setting.size());
    const std::string_view key = setting.substr(0, equals);
    const std::string_view value = setting.substr(std::min(equals + 1, setting.size()));
    if (key == "ranges" && name->ranges.empty()) {
      if (!ParseRanges(value, &name->ranges)) return NameError(text, kRangesForm);
    } else if (key == "chunk" && name->chunk == 0) {
      if (!absl::SimpleAtoi(ToAbsl(value), &name->chunk) || name->chunk < 1) {
        return NameError(text, "expected chunk=N with a number of offsets, at least 1");
      }
    } else if (key == "compacted") {
      if (value != "allow") return NameError(text, "expected compacted=allow");
      name->may_be_compacted = true;
    } else if (!ParseColumn(key, value, &name->columns)) {
      return NameError(text, StrCat("'", setting,
                                    "' is no setting (known, each once: ranges=, chunk=, "
                                    "key=COLUMN, timestamp=COLUMN, header.NAME=COLUMN, "
                                    "compacted=allow)"));
    }
  }
  return CheckColumns(text, name->columns);
}

}  // namespace

absl::StatusOr<KafkaName> ParseKafkaName(std::string_view text) {
  if (io::PathScheme(text) != kKafkaScheme) return NameError(text, kForm);
  KafkaName name;
  name.brokers = io::PathAuthority(text);
  const std::string_view rest = text.substr(io::PathRootSize(text));
  const size_t question = std::min(rest.find('?'), rest.size());
  name.topic = rest.substr(0, question);
  if (name.brokers.empty() || name.topic.empty()) return NameError(text, kForm);
  if (!IsTopic(name.topic)) {
    return NameError(text, StrCat("'", name.topic,
                                  "' is no name of a topic: 1 to 249 letters, digits, '.', '_' "
                                  "and '-'"));
  }
  if (question < rest.size()) {
    MUSTER_RETURN_IF_ERROR(ParseQuery(text, rest.substr(question + 1), &name));
  }
  return name;
}

std::vector<std::string> MessageColumns::Names() const {
  std::vector<std::string> names;
  if (!key.empty()) names.push_back(key);
  if (!timestamp.empty()) names.push_back(timestamp);
  for (const auto& [header, column] : headers) names.push_back(column);
  return names;
}

std::vector<std::string> MessageColumns::HeaderNames() const {
  std::vector<std::string> names;
  for (const auto& [header, column] : headers) names.push_back(header);
  return names;
}

std::string PrintKafkaName(const KafkaName& name) {
  std::vector<std::string> settings;
  if (!name.columns.key.empty()) settings.push_back(StrCat("key=", name.columns.key));
  if (!name.columns.timestamp.empty()) {
    settings.push_back(StrCat("timestamp=", name.columns.timestamp));
  }
  for (const auto& [header, column] : name.columns.headers) {
    settings.push_back(StrCat(kHeader, header, "=", column));
  }
  if (name.may_be_compacted) settings.emplace_back("compacted=allow");
  if (name.is_fixed()) {
    const auto print = [](std::string* out, const OffsetRange& range) {
      out->append(StrCat(range.partition, ":", range.begin, "-", range.end));
    };
    settings.push_back(StrCat("ranges=", absl::StrJoin(name.ranges, ",", print)));
  }
  if (name.chunk > 0) settings.push_back(StrCat("chunk=", name.chunk));
  const std::string text = StrCat(kKafkaScheme, "://", name.brokers, "/", name.topic);
  return settings.empty() ? text : StrCat(text, "?", absl::StrJoin(settings, "&"));
}

std::string PartitionName(std::string_view topic, int32_t partition) {
  return StrCat(topic, "/", partition);
}

}  // namespace muster::data
