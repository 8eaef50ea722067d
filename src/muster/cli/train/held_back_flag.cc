#include "muster/cli/train/held_back_flag.h"

#include <string_view>

#include "absl/strings/numbers.h"

#include "muster/base/strings.h"
#include "muster/data/batch_stream_reader.h"

namespace muster::cli {

bool NamesShare(const std::string& text) {
  constexpr std::string_view kOfNumbers = "0123456789.";
  return text.size() > 1 && text.ends_with('%') &&
         text.find_first_not_of(kOfNumbers) == text.size() - 1;
}

absl::Status HoldBack(TrainFlags* flags) {
  const std::vector<std::string>& given = flags->eval.data.patterns;
  if (given.size() != 1 || !NamesShare(given.front())) return absl::OkStatus();
  const std::string text = given.front();
  double percent = 0;
  if (!absl::SimpleAtod(text.substr(0, text.size() - 1), &percent) || percent <= 0 ||
      percent >= 100) {
    return absl::InvalidArgumentError(
        StrCat("--eval ", text, ": a share lies between 0% and 100%, such as 10%"));
  }
  flags->data.held_back = {.share = percent / 100, .is_read = false};
  const data::SourceSpec source = {.patterns = flags->data.patterns};
  if (data::IsBatchStream(source)) {
    return absl::InvalidArgumentError(
        StrCat("--eval ", text, ": a stream of batches is read once; give other data to --eval"));
  }
  const int batch_size = flags->eval.data.batch_size;
  flags->eval.data = flags->data;
  flags->eval.data.batch_size = batch_size;
  flags->eval.data.held_back.is_read = true;
  return absl::OkStatus();
}

}  // namespace muster::cli
