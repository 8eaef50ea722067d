#include "muster/engine/head_spec.h"

#include <cmath>

namespace muster::engine {
namespace {

constexpr int kMaxLogits = 1 << 20;

// What is wrong with one value of a label; "" for nothing.
std::string_view Fault(const HeadSpec& spec, float label) {
  switch (spec.kind) {
    case HeadKind::kBinary:
    case HeadKind::kMultiLabel:
      if (label == 0 || label == 1) return "";
      return spec.kind == HeadKind::kBinary
                 ? "is not 0 or 1, as a binary head needs; other values need 'words' for the label"
                 : "is not 0 or 1, as each class of a multi_label head needs";
    case HeadKind::kMultiClass:
      if (label >= 0 && label < static_cast<float>(spec.classes) && label == std::floor(label)) {
        return "";
      }
      return "is no class of a multi_class head";
    case HeadKind::kRegression:
      break;
  }
  if (!std::isfinite(label)) return "is not finite";
  if (spec.loss == RegressionLoss::kPoisson && label < 0) {
    return "is negative, and the poisson loss is of counts";
  }
  if (spec.loss == RegressionLoss::kLogNormal && label <= 0) {
    return "is not above 0, as the log_normal loss needs";
  }
  if (spec.loss == RegressionLoss::kLogistic && (label < 0 || label > 1)) {
    return "is not between 0 and 1, as the logistic loss needs";
  }
  return "";
}

}  // namespace

int HeadSpec::logits_dimension() const {
  switch (kind) {
    case HeadKind::kBinary:
      return 1;
    case HeadKind::kMultiClass:
    case HeadKind::kMultiLabel:
      return classes;
    case HeadKind::kRegression:
      break;
  }
  return label_dimension;
}

int HeadSpec::labels_dimension() const {
  return kind == HeadKind::kMultiClass ? 1 : logits_dimension();
}

double HeadSpec::LossScale(double rows) const {
  if (!sums) return 1 / rows;
  return is_regression() ? label_dimension : 1;
}

std::string_view HeadName(HeadKind kind) {
  switch (kind) {
    case HeadKind::kBinary:
      return "binary";
    case HeadKind::kMultiClass:
      return "multi_class";
    case HeadKind::kMultiLabel:
      return "multi_label";
    case HeadKind::kRegression:
      break;
  }
  return "regression";
}

std::string_view LossName(RegressionLoss loss) {
  switch (loss) {
    case RegressionLoss::kMeanSquared:
      return "mean_squared";
    case RegressionLoss::kPoisson:
      return "poisson";
    case RegressionLoss::kLogNormal:
      return "log_normal";
    case RegressionLoss::kLogistic:
      break;
  }
  return "logistic";
}

absl::Status Validate(const HeadSpec& spec) {
  const auto between = [&](std::string_view what, int value, int low, std::string_view advice) {
    if (value >= low && value <= kMaxLogits) return absl::OkStatus();
    return absl::InvalidArgumentError(StrCat("head ", HeadName(spec.kind), ": ", what, " is ",
                                             value, ", it must be ", low, " to ", kMaxLogits,
                                             advice));
  };
  switch (spec.kind) {
    case HeadKind::kBinary:
      return absl::OkStatus();
    case HeadKind::kMultiClass:
      return between("classes", spec.classes, 3, " (for 2 classes say 'head: binary')");
    case HeadKind::kMultiLabel:
      return between("classes", spec.classes, 2, " (for one label say 'head: binary')");
    case HeadKind::kRegression:
      break;
  }
  return between("label_dimension", spec.label_dimension, 1, "");
}

int FindBadLabel(const HeadSpec& spec, std::span<const float> labels, std::string* why) {
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::string_view fault = Fault(spec, labels[i]);
    if (fault.empty()) continue;
    *why = StrCat(labels[i], " ", fault);
    if (spec.kind == HeadKind::kMultiClass) *why += StrCat(" of ", spec.classes, " classes");
    return static_cast<int>(i) / spec.labels_dimension();
  }
  return -1;
}

}  // namespace muster::engine
