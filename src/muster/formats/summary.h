// Summary: the data of one event at one step, in the forms that TensorBoard reads
// (docs/formats/event.md): scalars, histograms, texts, and the data of its hparams page
// (hparams.h). Source: tensorflow/core/framework/summary.proto;
// tensorboard/plugins/text/metadata.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::formats {

// A HistogramProto: `count` numbers, buckets[i] of which are in [limits[i-1], limits[i]); the first
// bucket begins at `min`, the last one ends at its limit, `max`.
struct Histogram {
  double min = 0, max = 0;
  double count = 0;
  double sum = 0, sum_of_squares = 0;
  std::vector<double> limits;
  std::vector<double> buckets;
};

// Values with their tags, encoded as they are added. A '/' in a tag groups values on the page. Tags
// must be UTF-8: TensorBoard does not read an event with another tag.
class Summary {
 public:
  void AddScalar(std::string_view tag, float value);
  void AddHistogram(std::string_view tag, const Histogram& histogram);
  void AddText(std::string_view tag, std::string_view markdown);
  // Adds an empty tensor whose metadata carries `content` for the plugin.
  void AddMetadata(std::string_view tag, std::string_view plugin, std::string_view content);

  bool empty() const { return bytes_.empty(); }
  const std::string& bytes() const { return bytes_; }  // the encoded tensorflow.Summary

 private:
  std::string bytes_;
};

// Returns Markdown that shows `text` verbatim.
std::string CodeBlock(std::string_view text);

}  // namespace muster::formats
