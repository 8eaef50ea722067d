// The settings of a JobSpec that TFJob lacks: annotations `muster/<name>` in a manifest's metadata.
#pragma once

#include "muster/formats/yaml_reader.h"
#include "muster/job/job_spec.h"

namespace muster::job {

constexpr std::string_view kAnnotationPrefix = "muster/";

// Fills `spec` from the annotation `reader` stands at, whose name without the prefix is `name`;
// errors (an unknown name, an invalid value) go to the reader.
void ParseAnnotation(const std::string& name, const formats::YamlReader& reader, JobSpec* spec);

// Whether ParseAnnotation() knows the name.
bool IsAnnotation(std::string_view name);

// Adds the settings that differ from the defaults to `annotations`.
void PrintAnnotations(const JobSpec& spec, Json* annotations);

}  // namespace muster::job
