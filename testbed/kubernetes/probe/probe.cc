// The client of Kubernetes' API as a program. Each line of stdin is a call as a JSON object, each
// line of stdout its result; "reflect" prints a line for each change until stdin ends.
//   usage: muster-kubernetes-probe KUBECONFIG [PAGE_SIZE]
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "muster/files/file_systems.h"
#include "muster/launch/kubernetes/api/reflector.h"

namespace muster::launch::kubernetes {
namespace {

void Print(const Json& line) {
  std::printf("%s\n", formats::PrintJson(line).c_str());
  std::fflush(stdout);
}

Json ToJson(const absl::StatusOr<Json>& result) {
  if (result.ok()) return {{"ok", *result}};
  return {{"code", ToStd(absl::StatusCodeToString(result.status().code()))},
          {"message", ToStd(result.status().message())}};
}

// Prints what a reflector tells.
class PrintingSink : public ObjectSink {
 public:
  void BeginList() override { Print({{"event", "list"}}); }
  void Set(Json object) override { Print({{"event", "set"}, {"name", GetName(object)}}); }
  void Remove(const Json& object) override {
    Print({{"event", "remove"}, {"name", GetName(object)}});
  }
  void EndList(int64_t version) override { Print({{"event", "listed"}, {"version", version}}); }
};

absl::StatusOr<Json> Call(KubeClient& client, const Json& call) {
  const std::string op = GetText(call, "op"), target = GetText(call, "target");
  const Json& body = Child(call, "body");
  if (op == "get") return client.Get(target);
  if (op == "create") return client.Create(target, body);
  if (op == "replace") return client.Replace(target, body);
  if (op == "merge") return client.MergePatch(target, body);
  if (op == "delete") {
    MUSTER_RETURN_IF_ERROR(
        client.Delete(target, GetText(call, "uid"), GetNumber(call, "grace", -1)));
    return Json::object();
  }
  if (op == "list") {
    Json names = Json::array();
    const auto version = client.List(
        target, GetText(call, "selector"), [&] { names.clear(); },
        [&](const Json& object) { names.push_back(GetName(object)); });
    MUSTER_RETURN_IF_ERROR(version.status());
    return Json{{"names", names}, {"version", *version}};
  }
  if (op == "watch") {
    MUSTER_RETURN_IF_ERROR(client.Watch(target, "", GetText(call, "version"), [](KubeEvent) {}));
    return Json::object();
  }
  return absl::InvalidArgumentError(StrCat("no call '", op, "'"));
}

absl::Status Run(const std::string& kubeconfig, int page_size) {
  const auto files = files::OpenFileSystems();
  MUSTER_ASSIGN_OR_RETURN(KubeAccess access, ReadKubeAccess({.kubeconfig = kubeconfig}, *files));
  MUSTER_ASSIGN_OR_RETURN(const auto client,
                          KubeClient::New(std::move(access), {.page_size = page_size}));
  std::string line;
  while (std::getline(std::cin, line)) {
    MUSTER_ASSIGN_OR_RETURN(const Json call, ParseKubeObject(line, "stdin"));
    if (GetText(call, "op") != "reflect") {
      Print(ToJson(Call(*client, call)));
      continue;
    }
    PrintingSink sink;
    Reflector reflector(*client, GetText(call, "target"), GetText(call, "selector"), sink);
    std::jthread thread([&] { reflector.Run(); });
    while (std::getline(std::cin, line)) Print({{"problem", reflector.problem()}});
    client->Cancel();
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster::launch::kubernetes

int main(int argc, char** argv) {
  const absl::Status status = muster::launch::kubernetes::Run(
      argc > 1 ? argv[1] : "",
      argc > 2 ? static_cast<int>(std::strtol(argv[2], nullptr, 10)) : 500);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(muster::ToStd(status.message())).c_str());
  return 1;
}
