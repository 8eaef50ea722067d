// The part of a regression head that its metrics use.
#pragma once

#include <string_view>

namespace muster::engine {

// Returns the function that turns a logit into a prediction; `loss` is the name of a regression
// loss.
float (*GetInverseLink(std::string_view loss))(float logit);

}  // namespace muster::engine
