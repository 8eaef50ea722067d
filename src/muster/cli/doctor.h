// Examines what this machine has for Muster, and what is missing: each finding is about one thing.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace muster::cli {

enum class Health {
  kGood,
  kOptional,  // missing, but only some uses need it
  kBad,       // training cannot work
};

struct Finding {
  std::string name;  // "cores", as in --json
  Health health = Health::kGood;
  std::string text;         // what there is
  std::string advice = {};  // what to do about it; "": nothing
  nlohmann::ordered_json values =
      nlohmann::ordered_json::object();  // numbers and paths, for programs
};

// Examines everything, in the order in which a person wants to read it, and trains a small model in
// memory. Leaves no file. Takes a second or two.
std::vector<Finding> ExamineMachine();

}  // namespace muster::cli
