#include <algorithm>
#include <cstdlib>

#include "muster/base/nearest.h"
#include "muster/engine/heads/head_kind.h"

namespace muster::engine {

// Each of these is defined in the file of its name.
const HeadKind& GetBinaryHead();
const HeadKind& GetInBatchSoftmaxHead();
const HeadKind& GetMultiClassHead();
const HeadKind& GetMultiLabelHead();
const HeadKind& GetRegressionHead();

std::span<const HeadKind* const> HeadKinds() {
  static const HeadKind* const kKinds[] = {&GetBinaryHead(), &GetMultiClassHead(),
                                           &GetMultiLabelHead(), &GetRegressionHead(),
                                           &GetInBatchSoftmaxHead()};
  return kKinds;
}

const HeadKind* FindHeadKind(std::string_view name) {
  const auto found = std::ranges::find(HeadKinds(), name, &HeadKind::name);
  return found == HeadKinds().end() ? nullptr : *found;
}

const HeadKind& GetHeadKind(const HeadSpec& spec) {
  const HeadKind* const kind = FindHeadKind(spec.kind);
  if (kind == nullptr) std::abort();
  return *kind;
}

int HeadSpec::logits_dimension() const { return GetHeadKind(*this).logits_dimension(*this); }
int HeadSpec::labels_dimension() const { return GetHeadKind(*this).labels_dimension(*this); }
int HeadSpec::class_count() const { return GetHeadKind(*this).class_count(*this); }

double HeadSpec::LossScale(double rows) const {
  return sums ? GetHeadKind(*this).GetSumScale(*this) : 1 / rows;
}

absl::Status Validate(const HeadSpec& spec) {
  const HeadKind* const kind = FindHeadKind(spec.kind);
  if (kind != nullptr) return kind->Validate(spec);
  std::vector<std::string> known;
  for (const HeadKind* const each : HeadKinds()) known.emplace_back(each->name());
  return absl::InvalidArgumentError(
      StrCat("unknown head '", spec.kind, "'", DidYouMean(spec.kind, known)));
}

int FindBadLabel(const HeadSpec& spec, std::span<const float> labels, std::string* why) {
  const HeadKind& kind = GetHeadKind(spec);
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::string fault = kind.FindFault(spec, labels[i]);
    if (fault.empty()) continue;
    *why = StrCat(labels[i], " ", fault);
    return static_cast<int>(i) / kind.labels_dimension(spec);
  }
  return -1;
}

std::unique_ptr<Head> NewHead(const HeadSpec& spec) { return GetHeadKind(spec).NewHead(spec); }
std::unique_ptr<Head> NewBinaryHead() { return NewHead({}); }

absl::Status CheckHeadSize(const HeadSpec& spec, std::string_view what, int value, int low,
                           std::string_view advice) {
  if (value >= low && value <= kMaxHeadSize) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("head ", spec.kind, ": ", what, " is ", value,
                                           ", it must be ", low, " to ", kMaxHeadSize, advice));
}

int ParseClasses(const HeadOptions& options) {
  const formats::YamlReader& node = options.node;
  if (options.given && node.IsScalar()) return static_cast<int>(node.AsInt(1, kMaxHeadSize));
  if (options.given) {
    node.CheckKeys({"classes"});
    if (node.Has("classes")) return static_cast<int>(node.At("classes").AsInt(1, kMaxHeadSize));
  }
  if (options.words == 0 && node.ok()) {
    node.Fail(StrCat("needs its number of classes ('", options.name,
                     ": {classes: N}'), or 'words' for the label"));
  }
  return static_cast<int>(options.words);
}

}  // namespace muster::engine
