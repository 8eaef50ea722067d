#include "muster/launch/kubernetes/api/kube_client.h"

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/launch/kubernetes/api/watch_lines.h"
#include "muster/net/http/test_peer.h"

namespace muster::launch::kubernetes {
namespace {

using net::RawPeer;
using net::ScriptedServer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPod[] = R"({"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"}})";

std::string Answer(std::string_view status, std::string_view body, std::string_view fields = "") {
  return StrCat("HTTP/1.1 ", status, "\r\nConnection: close\r\n", fields,
                "Content-Length: ", body.size(), "\r\n\r\n", body);
}

std::string StatusBody(int code, std::string_view reason, std::string_view message) {
  return StrCat(R"({"kind":"Status","code":)", code, R"(,"reason":")", reason, R"(","message":")",
                message, "\"}");
}

std::unique_ptr<KubeClient> ClientOf(const ScriptedServer& server, KubeClientOptions options = {}) {
  auto client = KubeClient::New({.server = server.url(), .source = "the test"}, options);
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

absl::Status StatusAfter(std::string_view http_status, const std::string& body) {
  const ScriptedServer server({ScriptedServer::Answer(Answer(http_status, body))});
  return ClientOf(server, {.patience = 0})->Get("/api/v1/pods").status();
}

TEST(KubeClientTest, AStatusSaysWhatToDoNext) {
  EXPECT_TRUE(absl::IsNotFound(StatusAfter("404 Not Found", StatusBody(404, "NotFound", "x"))));
  EXPECT_TRUE(
      absl::IsAlreadyExists(StatusAfter("409 Conflict", StatusBody(409, "AlreadyExists", "x"))));
  EXPECT_TRUE(absl::IsAborted(StatusAfter("409 Conflict", StatusBody(409, "Conflict", "x"))));
  EXPECT_TRUE(absl::IsOutOfRange(StatusAfter("410 Gone", StatusBody(410, "Expired", "x"))));
  EXPECT_TRUE(absl::IsInvalidArgument(StatusAfter("422 No", StatusBody(422, "Invalid", "x"))));
  EXPECT_TRUE(absl::IsUnavailable(StatusAfter("500 No", "a text")));
  const absl::Status forbidden =
      StatusAfter("403 Forbidden", StatusBody(403, "Forbidden", "u cannot list pods. "));
  EXPECT_TRUE(absl::IsPermissionDenied(forbidden));
  EXPECT_EQ(ToStd(forbidden.message()), "GET /api/v1/pods: u cannot list pods");
  const absl::Status unknown = StatusAfter("401 Unauthorized", StatusBody(401, "x", "y"));
  EXPECT_THAT(ToStd(unknown.message()), HasSubstr("the token or certificate of the test"));
}

TEST(KubeClientTest, RepeatsAfterTheTimeThatTheServerAsksFor) {
  const ScriptedServer server(
      {ScriptedServer::Answer(Answer("429 Too Many Requests", "", "Retry-After: 1\r\n")),
       ScriptedServer::Answer(Answer("503 No", "", "Retry-After: 0\r\n")),
       ScriptedServer::Answer(Answer("200 OK", kPod))});
  const auto client = ClientOf(server);
  const auto before = std::chrono::steady_clock::now();
  const auto pod = client->Get("/api/v1/pods/a");
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(GetName(*pod), "a");
  EXPECT_EQ(GetVersion(*pod), 7);
  EXPECT_EQ(client->calls(), 3U);
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::seconds(1));
}

TEST(KubeClientTest, RepeatsAfterACutConnection) {
  const ScriptedServer server({[](const RawPeer& peer) { peer.ReadUntil("\r\n\r\n"); },
                               ScriptedServer::Answer(Answer("201 Created", kPod))});
  EXPECT_TRUE(ClientOf(server)->Create("/api/v1/pods", Json::object()).ok());
}

TEST(KubeClientTest, WaitsNoLongerThanItsPatience) {
  const ScriptedServer server(
      {ScriptedServer::Answer(Answer("429 Too Many Requests", "", "Retry-After: 3600\r\n"))});
  EXPECT_TRUE(absl::IsUnavailable(ClientOf(server)->Get("/api/v1/pods").status()));
}

TEST(KubeClientTest, AListWhoseNextPageHasExpiredBeginsAgain) {
  const std::string first =
      R"({"metadata":{"resourceVersion":"5","continue":"a b"},"items":[{"metadata":{"name":"x"}}]})";
  const std::string last =
      R"({"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"y"}}]})";
  std::string asked;
  const ScriptedServer server({ScriptedServer::Answer(Answer("200 OK", first)),
                               [&](const RawPeer& peer) {
                                 asked = peer.ReadUntil("\r\n\r\n");
                                 peer.Send(Answer("410 Gone", StatusBody(410, "Expired", "old")));
                               },
                               ScriptedServer::Answer(Answer("200 OK", first)),
                               ScriptedServer::Answer(Answer("200 OK", last))});
  std::vector<std::string> names;
  const auto version = ClientOf(server)->List(
      "/api/v1/pods", "app=a", [&] { names.clear(); },
      [&](const Json& object) { names.push_back(GetName(object)); });
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(*version, "9");
  EXPECT_THAT(names, ElementsAre("x", "y"));
  EXPECT_THAT(asked, HasSubstr("labelSelector=app%3Da&continue=a%20b"));
}

TEST(KubeClientTest, AWatchThatIsTooOldIsOutOfRangeInBothItsForms) {
  const std::string event =
      R"({"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}})";
  const ScriptedServer server(
      {ScriptedServer::Answer(Answer("410 Gone", StatusBody(410, "Expired", "old"))),
       ScriptedServer::Answer(Answer("200 OK", event + "\n"))});
  const auto client = ClientOf(server);
  for (int form = 0; form < 2; ++form) {
    EXPECT_TRUE(absl::IsOutOfRange(client->Watch("/api/v1/pods", "", "1", [](KubeEvent) {})));
  }
}

TEST(KubeClientTest, CancelEndsAWatch) {
  const ScriptedServer server({[](const RawPeer& peer) {
    peer.ReadUntil("\r\n\r\n");
    peer.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    peer.ReadToEnd();
  }});
  const auto client = ClientOf(server);
  std::thread canceller([&] { client->Cancel(); });
  EXPECT_TRUE(absl::IsCancelled(client->Watch("/api/v1/pods", "", "1", [](KubeEvent) {})));
  EXPECT_FALSE(client->Wait(3600));
  canceller.join();
}

TEST(KubeObject, LeavesMembersOut) {
  const std::pair<std::string, std::string> texts[] = {
      {R"({"a":1})", R"({"a":1})"},
      {R"({"spec":{"x":[1,{"y":"}"}]},"b":2})", R"({"spec":{},"b":2})"},
      {R"({"m":{"managedFields":[{"a":"]\"]"}],"n":1},"spec":{}})",
       R"({"m":{"managedFields":[],"n":1},"spec":{}})"},
      // Neither a text nor a longer name is a member of this name.
      {R"({"a":"\"spec\":{1","myspec":{"b":1},"spec":"c"})",
       R"({"a":"\"spec\":{1","myspec":{"b":1},"spec":"c"})"},
      // What is cut off is left as it is.
      {R"({"spec":{"a":[1)", R"({"spec":{"a":[1)"},
      {R"({"spec":)", R"({"spec":)"},
      {R"({"spec":{},"spec":{"a":1}})", R"({"spec":{},"spec":{}})"},
  };
  constexpr std::string_view kNames[] = {"managedFields", "spec"};
  for (const auto& [text, rest] : texts) {
    EXPECT_EQ(LeaveOut(text, kNames), rest) << text;
  }
}

TEST(WatchLinesTest, TakesLinesHoweverTheyAreCut) {
  const std::string text = StrCat(R"({"type":"ADDED","object":)", kPod, "}\n\n",
                                  R"({"type":"BOOKMARK","object":)", kPod, "}\n");
  for (size_t piece = 1; piece <= text.size(); piece += 5) {
    std::vector<KubeEvent::Kind> kinds;
    WatchLines lines("watch", [&](const KubeEvent& event) {
      kinds.push_back(event.kind);
      EXPECT_EQ(GetName(event.object), "a");
    });
    for (size_t at = 0; at < text.size(); at += piece) {
      ASSERT_TRUE(lines.Put(std::string_view(text).substr(at, piece)).ok());
    }
    EXPECT_THAT(kinds, ElementsAre(KubeEvent::Kind::kAdded, KubeEvent::Kind::kBookmark));
  }
}

TEST(WatchLinesTest, WhatIsKnownIsNotRead) {
  std::vector<std::pair<KubeEvent::Kind, int64_t>> taken;
  std::vector<int64_t> asked;
  WatchLines lines(
      "watch",
      [&](const KubeEvent& event) { taken.emplace_back(event.kind, GetVersion(event.object)); },
      kManagedFields,
      [&](int64_t version) {
        asked.push_back(version);
        return version == 8;
      });
  const auto put = [&](const std::string& type, const std::string& metadata) {
    return lines.Put(StrCat(R"({"type":")", type, R"(","object":{"kind":"Pod","metadata":{)",
                            metadata, R"(},"spec":{"a":[1,true,{}]}}})", "\n"));
  };
  ASSERT_TRUE(put("ADDED", R"("name":"a","resourceVersion":"7")").ok());
  // As a custom object has it, whose annotation is not its version.
  ASSERT_TRUE(put("MODIFIED", R"("annotations":{"resourceVersion":"3","x":"\"}"},"generation":1,)"
                              R"("name":"a","resourceVersion":"8")")
                  .ok());
  ASSERT_TRUE(put("DELETED", R"("name":"a","resourceVersion":"8")").ok());
  using Kind = KubeEvent::Kind;
  using Taken = std::pair<KubeEvent::Kind, int64_t>;
  EXPECT_THAT(taken, ElementsAre(Taken{Kind::kAdded, 7}, Taken{Kind::kBookmark, 8},
                                 Taken{Kind::kDeleted, 8}));
  EXPECT_THAT(asked, ElementsAre(7, 8));
}

TEST(KubeObject, FindsTheTextOfAMember) {
  constexpr std::string_view kText = R"({"a":"x\"y","b":{"c":[1,"}"]},"d":-1.5,"e":true})";
  EXPECT_EQ(FindMember(kText, "a"), R"("x\"y")");
  EXPECT_EQ(FindMember(kText, "b"), R"({"c":[1,"}"]})");
  EXPECT_EQ(FindMember(kText, "d"), "-1.5");
  EXPECT_EQ(FindMember(kText, "e"), "true");
  EXPECT_EQ(FindMember(FindMember(kText, "b"), "c"), R"([1,"}"])");
  for (const std::string_view text :
       {"", "{", "{}", "[]", R"({"a)", R"({"a":)", R"({"a":"x)", R"({"b":1,"c")", R"({ "a":1})"}) {
    EXPECT_EQ(FindMember(text, "a"), "") << text;
  }
}

TEST(WatchLinesTest, RefusesWhatIsNoEvent) {
  WatchLines lines("watch", [](const KubeEvent&) {});
  EXPECT_TRUE(absl::IsInvalidArgument(lines.Put("<html>\n")));
  EXPECT_TRUE(absl::IsInvalidArgument(lines.Put(R"({"type":"NEW"})"
                                                "\n")));
}

TEST(KubeObjectTest, ATargetHasTheGroupAndTheNamespace) {
  EXPECT_EQ(GetTarget(kPods, "team", "a", "log"), "/api/v1/namespaces/team/pods/a/log");
  EXPECT_EQ(GetTarget(kTfJobs, ""), "/apis/kubeflow.org/v1/tfjobs");
}

TEST(KubeObjectTest, FieldsOfAnotherTypeAreAbsent) {
  const Json object = {{"metadata", {{"name", 3}, {"resourceVersion", "x7"}}}, {"items", "none"}};
  EXPECT_EQ(GetName(object), "");
  EXPECT_EQ(GetVersion(object), 0);
  EXPECT_TRUE(Child(Child(object, "items"), "a").is_null());
}

}  // namespace
}  // namespace muster::launch::kubernetes
