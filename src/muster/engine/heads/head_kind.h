// HeadKind: all that the program knows about one kind of head except its metrics
// (metrics/head_metrics.h). Each kind is in the file of its name; head_kinds.cc has the table of
// all kinds.
#pragma once

#include <yaml-cpp/yaml.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/status.h"
#include "muster/engine/heads/head.h"
#include "muster/engine/heads/head_nodes.h"
#include "muster/engine/heads/head_spec.h"
#include "muster/engine/heads/prediction_filler.h"
#include "muster/features/column.h"
#include "muster/formats/yaml_reader.h"

namespace muster::engine {

// What a model file says about its head: "head: NAME", or "head: {NAME: OPTIONS}".
struct HeadOptions {
  std::string name;
  formats::YamlReader node;  // the options: a scalar or a map; valid only if `given`
  bool given = false;
  size_t words = 0;  // the number of words of the model's label
};

// Stateless, thread-safe.
class HeadKind {
 public:
  virtual ~HeadKind() = default;
  virtual std::string_view name() const = 0;  // in a model file

  // Reads the options into *spec, whose kind is already set; without options sets the defaults.
  // Errors are the reader's.
  virtual void Parse(const HeadOptions& options, HeadSpec* spec) const = 0;
  // Prints the options' entries; nothing for a head that has no options.
  virtual void Print(const HeadSpec& spec, YAML::Emitter& out) const = 0;
  virtual bool has_options() const { return true; }
  // INVALID_ARGUMENT for values that the head does not allow.
  virtual absl::Status Validate(const HeadSpec& spec) const = 0;

  // The numbers of logits and label values per row; the number of classes that words name, or 0.
  virtual int logits_dimension(const HeadSpec& spec) const = 0;
  virtual int labels_dimension(const HeadSpec& spec) const { return logits_dimension(spec); }
  virtual int class_count(const HeadSpec& spec) const = 0;
  // Returns the form in which `label` is read; `is_list`: the label is a list field.
  virtual features::LabelSpec::Form GetLabelForm(const HeadSpec& spec,
                                                 const features::LabelSpec& label,
                                                 bool is_list) const = 0;
  virtual bool takes_sets() const { return false; }  // accepts labels of LabelSpec::Form::kSet
  // Explains why the head cannot learn from this label value, "is not 0 or 1, ..."; "" if it can.
  virtual std::string FindFault(const HeadSpec& spec, float label) const = 0;

  virtual std::unique_ptr<Head> NewHead(const HeadSpec& spec) const = 0;
  // Returns the factor of the sum of the rows' losses where a batch's loss is a sum.
  virtual double GetSumScale(const HeadSpec& /*spec*/) const { return 1; }

  // Computes the results, under the names and with the shapes that tf.estimator's head has.
  // `logits` is rows x logits_dimension; `class_names` has class_count() names.
  virtual void Predict(const HeadSpec& spec, std::span<const float> logits,
                       const std::vector<std::string>& class_names,
                       PredictionFiller* filler) const = 0;
  // Adds nodes that compute the same in a TensorFlow graph, with the outputs that tf.estimator
  // exports.
  virtual HeadOutputs AddNodes(const HeadSpec& spec, HeadNodes* nodes) const = 0;
};

std::span<const HeadKind* const> HeadKinds();
// Returns null if there is no kind of that name.
const HeadKind* FindHeadKind(std::string_view name);
// Returns the kind of a valid spec.
const HeadKind& GetHeadKind(const HeadSpec& spec);

// INVALID_ARGUMENT "head KIND: WHAT is VALUE, it must be LOW to ...ADVICE" if the value is out of
// range.
absl::Status CheckHeadSize(const HeadSpec& spec, std::string_view what, int value, int low,
                           std::string_view advice);
inline constexpr int kMaxHeadSize = 1 << 20;  // most classes, or numbers of a label

// `multi_class: 5`, `multi_class: {classes: 5}`, or as many classes as the label has words.
// Reads `multi_class: 5` or `multi_class: {classes: 5}`; without either, returns the number of
// words of the label.
int ParseClasses(const HeadOptions& options);

}  // namespace muster::engine
