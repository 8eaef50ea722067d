// What this machine has for Muster, and what is missing: one finding for each thing looked at.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace muster::cli {

enum class Health {
  kGood,
  kOptional,  // missing, and only some uses need it
  kBad,       // training cannot work
};

struct Finding {
  std::string name;  // "cores", as --json has it
  Health health = Health::kGood;
  std::string text;         // what there is
  std::string advice = {};  // what to do about it; "" where nothing has to be done
  nlohmann::ordered_json values =
      nlohmann::ordered_json::object();  // numbers and paths, for programs
};

// Looks at everything, in the order in which a person wants to read it; trains a small model in
// memory. Leaves no file behind. Takes a second or two.
std::vector<Finding> ExamineMachine();

}  // namespace muster::cli
