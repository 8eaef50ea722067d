// "Did you mean" for the name of a column that a header of CSV does not have.
#pragma once

#include <string>
#include <vector>

namespace muster::formats {

// Returns DidYouMean(name, header) and, where the near name has spaces around it or the header is
// not UTF-8, the flag that mends it. To append to an error message; it is UTF-8.
std::string DidYouMeanColumn(const std::string& name, const std::vector<std::string>& header);

}  // namespace muster::formats
