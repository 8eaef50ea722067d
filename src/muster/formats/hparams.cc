#include "muster/formats/hparams.h"

#include <protozero/pbf_builder.hpp>

namespace muster::formats {
namespace {

constexpr std::string_view kHparamsPlugin = "hparams";

enum class PluginField : protozero::pbf_tag_type { kExperiment = 2, kStart = 3, kEnd = 4 };
enum class ExperimentField : protozero::pbf_tag_type { kCreated = 3, kHparams = 4, kMetrics = 5 };
enum class InfoField : protozero::pbf_tag_type { kName = 1, kType = 4, kDiffers = 7 };
enum class MetricField : protozero::pbf_tag_type { kName = 1, kShownAs = 3 };
enum class MetricNameField : protozero::pbf_tag_type { kGroup = 1, kTag = 2 };
enum class StartField : protozero::pbf_tag_type { kHparams = 1, kSeconds = 5 };
enum class HparamEntryField : protozero::pbf_tag_type { kKey = 1, kValue = 2 };
enum class HparamValueField : protozero::pbf_tag_type { kNumber = 2, kString = 3, kBool = 4 };
enum class EndField : protozero::pbf_tag_type { kStatus = 1, kSeconds = 2 };

using PluginBuilder = protozero::pbf_builder<PluginField>;

struct ValueWriter {
  protozero::pbf_builder<HparamValueField>& message;
  void operator()(double value) const { message.add_double(HparamValueField::kNumber, value); }
  void operator()(bool value) const { message.add_bool(HparamValueField::kBool, value); }
  void operator()(const std::string& value) const {
    message.add_string(HparamValueField::kString, value);
  }
};

}  // namespace

void AddHparamExperiment(const HparamExperiment& experiment, Summary* summary) {
  std::string bytes;
  {
    PluginBuilder plugin(bytes);
    protozero::pbf_builder<ExperimentField> message(plugin, PluginField::kExperiment);
    message.add_double(ExperimentField::kCreated, experiment.created_seconds);
    for (const HparamInfo& setting : experiment.settings) {
      protozero::pbf_builder<InfoField> info(message, ExperimentField::kHparams);
      info.add_string(InfoField::kName, setting.name);
      info.add_enum(InfoField::kType, static_cast<int>(setting.type));
      if (setting.differs) info.add_bool(InfoField::kDiffers, true);
    }
    for (const HparamMetric& metric : experiment.metrics) {
      protozero::pbf_builder<MetricField> info(message, ExperimentField::kMetrics);
      {
        protozero::pbf_builder<MetricNameField> name(info, MetricField::kName);
        name.add_string(MetricNameField::kGroup, metric.group);
        name.add_string(MetricNameField::kTag, metric.tag);
      }
      info.add_string(MetricField::kShownAs, metric.shown_as);
    }
  }
  summary->AddMetadata("_hparams_/experiment", kHparamsPlugin, bytes);
}

void AddHparamSessionStart(const std::vector<Hparam>& values, double seconds, Summary* summary) {
  std::string bytes;
  {
    PluginBuilder plugin(bytes);
    protozero::pbf_builder<StartField> start(plugin, PluginField::kStart);
    for (const Hparam& hparam : values) {
      protozero::pbf_builder<HparamEntryField> entry(start, StartField::kHparams);
      entry.add_string(HparamEntryField::kKey, hparam.name);
      protozero::pbf_builder<HparamValueField> value(entry, HparamEntryField::kValue);
      std::visit(ValueWriter{value}, hparam.value);
    }
    start.add_double(StartField::kSeconds, seconds);
  }
  summary->AddMetadata("_hparams_/session_start_info", kHparamsPlugin, bytes);
}

void AddHparamSessionEnd(HparamStatus status, double seconds, Summary* summary) {
  std::string bytes;
  {
    PluginBuilder plugin(bytes);
    protozero::pbf_builder<EndField> end(plugin, PluginField::kEnd);
    end.add_enum(EndField::kStatus, static_cast<int>(status));
    end.add_double(EndField::kSeconds, seconds);
  }
  summary->AddMetadata("_hparams_/session_end_info", kHparamsPlugin, bytes);
}

}  // namespace muster::formats
