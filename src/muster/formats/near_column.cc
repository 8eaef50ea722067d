#include "muster/formats/near_column.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"

#include "muster/base/nearest.h"
#include "muster/base/strings.h"
#include "muster/base/utf8.h"

namespace muster::formats {

std::string DidYouMeanColumn(const std::string& name, const std::vector<std::string>& header) {
  std::vector<std::string> shown;  // bytes that are not UTF-8 would spoil the message
  std::ranges::copy_if(header, std::back_inserter(shown), IsUtf8);
  std::string text = DidYouMean(name, shown);
  const std::string near = Nearest(name, shown);
  if (absl::StripAsciiWhitespace(near).size() < near.size()) {
    text += "; that name has spaces around it, which --trim leaves out";
  }
  if (shown.size() == header.size()) return text;
  return StrCat(text,
                "; the header is not UTF-8: if it is Latin-1, give --encoding-errors latin1, or "
                "'format: {encoding_errors: latin1}' in the model file");
}

}  // namespace muster::formats
