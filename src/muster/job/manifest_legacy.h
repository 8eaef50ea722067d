// TFJob v1alpha1: `replicaSpecs`, a list with `tfReplicaType`. Source: kubeflow/tf-operator 0.3.0,
// pkg/apis/tensorflow/v1alpha1/types.go.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "muster/base/nearest.h"
#include "muster/formats/yaml_reader.h"
#include "muster/job/manifest.h"

namespace muster::job {

void ParseLegacySpec(const formats::YamlReader& node, Manifest* manifest);

RestartPolicy ParseRestartPolicy(const formats::YamlReader& node);

// The member of `members` whose name the node holds. If there is none, reports an error with the
// nearest word and returns the first member.
template <typename Word>
Word ParseWord(const formats::YamlReader& node, std::initializer_list<Word> members,
               std::string_view (*name)(Word)) {
  const std::string text = node.AsString();
  std::vector<std::string> known;
  for (const Word member : members) {
    if (text == name(member)) return member;
    known.emplace_back(name(member));
  }
  if (node.ok()) node.Fail(StrCat("'", text, "' is unknown", DidYouMean(text, known)));
  return *members.begin();
}

}  // namespace muster::job
