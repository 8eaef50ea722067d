// Quantities of resources as Kubernetes writes them: "500m", "2", "1536Mi", "1e3".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "muster/launch/kubernetes/api/kube_object.h"

namespace muster::launch::kubernetes {

class Quantity {
 public:
  // nullopt for what is no quantity, is below 10^-9, or is greater than 10^27.
  static std::optional<Quantity> Parse(std::string_view text);

  // The sum has the form of the first of both that is not 0.
  void Add(const Quantity& other);
  // The shortest text without a fraction, as an API server writes it.
  std::string Print() const;

 private:
  enum class Form { kDecimal, kBinary, kExponent };

  __extension__ using Int128 = __int128;
  Int128 nanos_ = 0;
  Form form_ = Form::kDecimal;
};

// By the name of the resource, in the order of names.
using ResourceList = std::map<std::string, Quantity>;

// Adds what the container asks for: its requests or, if it has none, its limits. What is no
// quantity is left out.
void AddRequests(const Json& container, ResourceList* sum);
Json PrintResources(const ResourceList& resources);

}  // namespace muster::launch::kubernetes
