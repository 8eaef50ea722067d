#include "muster/train/input/usual_rates.h"

#include <map>
#include <string_view>

#include "absl/strings/str_format.h"

namespace muster::train {
namespace {

// 0 for an optimizer without one.
double UsualRate(std::string_view optimizer) {
  static const std::map<std::string_view, double> kRates = {
      {"ftrl", 0.1}, {"adagrad", 0.05}, {"adam", 0.001}, {"rmsprop", 0.001}, {"sgd", 0.01}};
  const auto found = kRates.find(optimizer);
  return found == kRates.end() ? 0 : found->second;
}

void AddPart(std::string_view part, const optim::OptimizerSpec& optimizer,
             std::vector<std::string>* lines) {
  const double usual = UsualRate(optimizer.kind);
  if (optimizer.learning_rate >= usual / 2) return;
  lines->push_back(absl::StrFormat("optimizer: {%s: {learning_rate: %g}} in model.%s (it is %g)",
                                   optimizer.kind, usual, part, optimizer.learning_rate));
}

}  // namespace

std::vector<std::string> DescribeSlowParts(const model::ModelSpec& model) {
  std::vector<std::string> lines;
  if (model.linear) AddPart("linear", model.linear->optimizer, &lines);
  if (model.fm) AddPart("fm", model.fm->optimizer, &lines);
  for (const auto& [name, part] : model.DeepParts()) AddPart(name, part->optimizer, &lines);
  return lines;
}

}  // namespace muster::train
