#include "muster/formats/json_tree.h"

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace muster::formats {
namespace {

// What the library's parser calls, in the text's order; false ends it.
class TreeBuilder {
 public:
  explicit TreeBuilder(size_t max_depth) : max_depth_(max_depth) {}

  // Once the text has ended in order.
  Json Take() && { return std::move(members_.front().value); }

  bool null() { return Put(nullptr); }
  bool boolean(bool value) { return Put(value); }
  bool number_integer(int64_t value) { return Put(value); }
  bool number_unsigned(uint64_t value) { return Put(value); }
  bool number_float(double value, const std::string& /*text*/) { return Put(value); }
  bool string(std::string& value) { return Put(std::move(value)); }
  bool binary(Json::binary_t& /*value*/) { return false; }  // of other formats
  bool key(std::string& name) {
    name_ = std::move(name);
    return true;
  }
  bool start_object(size_t /*size*/) { return Open(); }
  bool start_array(size_t /*size*/) { return Open(); }
  bool end_object() {
    Json::object_t object;
    object.reserve(members_.size() - open_.back().first);
    for (auto member = Begin(); member != members_.end(); ++member) {
      object.emplace_back(std::move(member->name), std::move(member->value));
    }
    return Close(std::move(object));
  }
  bool end_array() {
    Json::array_t array;
    array.reserve(members_.size() - open_.back().first);
    for (auto member = Begin(); member != members_.end(); ++member) {
      array.push_back(std::move(member->value));
    }
    return Close(std::move(array));
  }
  bool parse_error(size_t /*byte*/, const std::string& /*token*/,
                   const Json::exception& /*error*/) {
    return false;
  }

 private:
  struct Member {
    std::string name = {};  // "" in a list
    Json value = {};
  };
  struct Opened {
    size_t first = 0;  // of its members
    std::string name = {};
  };

  std::vector<Member>::iterator Begin() {
    return std::next(members_.begin(), static_cast<std::ptrdiff_t>(open_.back().first));
  }
  bool Put(Json value) {
    members_.push_back({.name = std::move(name_), .value = std::move(value)});
    name_.clear();
    return true;
  }
  bool Open() {
    if (open_.size() >= max_depth_) return false;
    open_.push_back({.first = members_.size(), .name = std::move(name_)});
    name_.clear();
    return true;
  }
  bool Close(Json value) {
    members_.erase(Begin(), members_.end());
    name_ = std::move(open_.back().name);
    open_.pop_back();
    return Put(std::move(value));
  }

  const size_t max_depth_;
  std::string name_ = {};             // of the next value
  std::vector<Member> members_ = {};  // of the lists and objects that are open, outermost first
  std::vector<Opened> open_ = {};
};

}  // namespace

std::optional<Json> ParseJsonTree(std::string_view text, size_t max_depth) {
  TreeBuilder builder(max_depth);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) return std::nullopt;
  return std::move(builder).Take();
}

}  // namespace muster::formats
