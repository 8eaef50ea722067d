// What a regression head's metrics need of it.
#pragma once

#include <string_view>

namespace muster::engine {

// Gives the prediction for a logit; `loss` is one of a regression head's.
float (*GetInverseLink(std::string_view loss))(float logit);

}  // namespace muster::engine
