// HeadKind: all that the program knows of one kind of head, but for its metrics
// (metrics/head_metrics.h). Each kind is in the file of its name; the table of all is in
// head_kinds.cc.
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

// What a model file says of its head: "head: NAME", or "head: {NAME: OPTIONS}".
struct HeadOptions {
  std::string name;
  formats::YamlReader node;  // the options: a scalar or a map; of no use unless `given`
  bool given = false;
  size_t words = 0;  // of the model's label
};

// Stateless, thread-safe.
class HeadKind {
 public:
  virtual ~HeadKind() = default;
  virtual std::string_view name() const = 0;  // in a model file

  // Reads the options, or what is the default without them, into *spec, which has the kind already.
  // Errors are the reader's.
  virtual void Parse(const HeadOptions& options, HeadSpec* spec) const = 0;
  // Prints the options' entries; nothing for a head that has no options.
  virtual void Print(const HeadSpec& spec, YAML::Emitter& out) const = 0;
  virtual bool has_options() const { return true; }
  // INVALID_ARGUMENT for values that the head cannot have.
  virtual absl::Status Validate(const HeadSpec& spec) const = 0;

  // Logits and label values per row; classes that words name, or 0.
  virtual int logits_dimension(const HeadSpec& spec) const = 0;
  virtual int labels_dimension(const HeadSpec& spec) const { return logits_dimension(spec); }
  virtual int class_count(const HeadSpec& spec) const = 0;
  // The form in which `label` is read; `is_list`: it is a list field.
  virtual features::LabelSpec::Form GetLabelForm(const HeadSpec& spec,
                                                 const features::LabelSpec& label,
                                                 bool is_list) const = 0;
  virtual bool takes_sets() const { return false; }  // labels of LabelSpec::Form::kSet
  // Why the head cannot learn from that value of a label, "is not 0 or 1, ..."; "" if it can.
  virtual std::string FindFault(const HeadSpec& spec, float label) const = 0;

  virtual std::unique_ptr<Head> NewHead(const HeadSpec& spec) const = 0;
  // What the sum of the losses of rows is multiplied by where a batch's loss is a sum.
  virtual double GetSumScale(const HeadSpec& /*spec*/) const { return 1; }

  // The results, under the names and with the shapes that tf.estimator's head has. `logits` is rows
  // x logits_dimension; `class_names` has class_count() names.
  virtual void Predict(const HeadSpec& spec, std::span<const float> logits,
                       const std::vector<std::string>& class_names,
                       PredictionFiller* filler) const = 0;
  // The same as nodes of a TensorFlow graph, with the outputs that tf.estimator exports.
  virtual HeadOutputs AddNodes(const HeadSpec& spec, HeadNodes* nodes) const = 0;
};

std::span<const HeadKind* const> HeadKinds();
// Null if there is none of that name.
const HeadKind* FindHeadKind(std::string_view name);
// The kind of a valid spec.
const HeadKind& GetHeadKind(const HeadSpec& spec);

// INVALID_ARGUMENT "head KIND: WHAT is VALUE, it must be LOW to ...ADVICE" unless VALUE can be.
absl::Status CheckHeadSize(const HeadSpec& spec, std::string_view what, int value, int low,
                           std::string_view advice);
inline constexpr int kMaxHeadSize = 1 << 20;  // classes, or numbers of a label

// `multi_class: 5`, `multi_class: {classes: 5}`, or as many classes as the label has words.
int ParseClasses(const HeadOptions& options);

}  // namespace muster::engine
