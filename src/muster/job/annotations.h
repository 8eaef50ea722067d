// What a JobSpec says beyond TFJob: annotations `muster/<name>` in a manifest's metadata.
#pragma once

#include "muster/formats/yaml_reader.h"
#include "muster/job/job_spec.h"

namespace muster::job {

constexpr std::string_view kAnnotationPrefix = "muster/";

// Fills `spec` from the annotation `reader` stands at, whose name without the prefix is `name`;
// errors (an unknown name, a value that does not fit) go to the reader.
void ParseAnnotation(const std::string& name, const formats::YamlReader& reader, JobSpec* spec);

// Adds to `annotations` what differs from the defaults.
void PrintAnnotations(const JobSpec& spec, Json* annotations);

}  // namespace muster::job
