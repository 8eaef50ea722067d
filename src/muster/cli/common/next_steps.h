// Suggests what a person may want to do after a verb has succeeded.
#pragma once

#include <string>
#include <vector>

namespace muster::cli {

// Prints the commands once on stderr, if both stderr and stdout are a person's terminal; prints
// nothing if a program or a file reads one of them.
void SayNextSteps(const std::vector<std::string>& commands);

}  // namespace muster::cli
