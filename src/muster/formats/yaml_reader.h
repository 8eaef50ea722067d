// YamlReader: typed access to a YAML document with errors that name file, line and key.
//
// The first error is kept: later calls return their fallback, so a parser reads from top to bottom
// without a branch per line, and checks status() once. Unknown and repeated keys are errors.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/status.h"

namespace muster::formats {

// One node and its place in the document. Copies share the document's error.
class YamlReader {
 public:
  YamlReader(const YamlReader&) = default;
  // Unlike YAML::Node's assignment, this does not overwrite the node in the document.
  YamlReader& operator=(const YamlReader& other);

  // INVALID_ARGUMENT "NAME:LINE: ..." if `text` is not YAML in UTF-8, or nests deeper than 32.
  static absl::StatusOr<YamlReader> Parse(std::string_view text, const std::string& name);

  // Returns each document of a stream ("---" between them); at least one.
  static absl::StatusOr<std::vector<YamlReader>> ParseAll(std::string_view text,
                                                          const std::string& name);

  // Changes the document below this node: `setting` is "a.b.c=VALUE", where VALUE is YAML, and
  // missing maps on the path are created. A value that an alias shares changes everywhere. Errors
  // about a changed value name the setting instead of a line. INVALID_ARGUMENT if `setting` has
  // another form, or its path leads through something that is not a map.
  absl::Status Set(std::string_view setting);

  const absl::Status& status() const { return document_->status; }
  bool ok() const { return status().ok(); }
  // Records "NAME:LINE: PATH: message" as the document's error, unless there is one already.
  void Fail(std::string_view message) const;

  bool IsMap() const { return node_.IsMap(); }
  bool IsScalar() const { return node_.IsScalar(); }
  const std::string& path() const { return path_; }
  const YAML::Node& node() const { return node_; }

  // The node must be a map whose keys are all in `known`.
  void CheckKeys(std::span<const std::string_view> known) const;
  void CheckKeys(std::initializer_list<std::string_view> known) const {
    CheckKeys(std::span(known.begin(), known.size()));
  }
  bool Has(std::string_view key) const;
  // Returns the child; a missing child is an error of this node.
  YamlReader At(std::string_view key) const;
  // Returns the items of a list, in order; empty (and an error) if the node is not a list.
  std::vector<YamlReader> Items() const;
  // Calls `visit` for each entry of a map, in the document's order; keys are distinct.
  void ForEach(const std::function<void(const std::string& key, const YamlReader&)>& visit) const;

  // Return this node as a value; another form of node is an error.
  std::string AsString() const;
  int64_t AsInt(int64_t low, int64_t high) const;
  uint64_t AsSeed() const;
  double AsNumber(double low, double high) const;
  bool AsBool() const;
  std::vector<std::string> AsStrings() const;  // a list, or one scalar
  std::vector<float> AsFloats() const;

  // Return a child as a value, or `fallback` if it is absent.
  std::string String(std::string_view key, std::string fallback = "") const;
  int64_t Int(std::string_view key, int64_t fallback, int64_t low, int64_t high) const;
  double Number(std::string_view key, double fallback, double low, double high) const;
  bool Bool(std::string_view key, bool fallback) const;
  std::vector<std::string> Strings(std::string_view key) const;

 private:
  struct Document {
    std::string name;
    absl::Status status;
    // path, whole text of the setting
    std::vector<std::pair<std::string, std::string>> settings = {};
  };

  YamlReader(std::shared_ptr<Document> document, const YAML::Node& node, std::string path)
      : document_(std::move(document)), node_(node), path_(std::move(path)) {}
  std::string Scalar(std::string_view expected) const;
  std::string Where() const;

  std::shared_ptr<Document> document_;
  YAML::Node node_;
  std::string path_;
};

}  // namespace muster::formats
