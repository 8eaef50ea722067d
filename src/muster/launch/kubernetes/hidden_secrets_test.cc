#include "muster/launch/kubernetes/hidden_secrets.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace muster::launch::kubernetes {
namespace {

TEST(HiddenSecretsTest, WhatLooksLikeASecretIsHidden) {
  const std::pair<std::string, std::string> lines[] = {
      {"ValueError: DB_PASSWORD=hunter2 is wrong", "ValueError: DB_PASSWORD=*** is wrong"},
      {R"({"user": "me", "apiKey": "a b c", "n": 1})",
       R"({"user": "me", "apiKey": "***", "n": 1})"},
      {"aws_secret_access_key = abc/def+1=", "aws_secret_access_key = ***"},
      {"usage: train --token t0p --steps 5", "usage: train --token *** --steps 5"},
      {"Authorization: Bearer abc.def", "Authorization: ***"},
      {"sent Bearer abc.def, got 401", "sent Bearer ***, got 401"},
      {"connect to https://me:pa55@db.example/x?y=1 failed",
       "connect to https://***@db.example/x?y=1 failed"},
      {"GET /x?access_token=abc&page=2", "GET /x?access_token=***&page=2"},
      {"key AKIAIOSFODNN7EXAMPLE is disabled", "key *** is disabled"},
      {"refused eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln.", "refused ***"},
      {"client_secret: ''", "client_secret: ''"},
      {"password=", "password="},
  };
  for (const auto& [line, hidden] : lines) EXPECT_EQ(HideSecrets(line), hidden) << line;
}

TEST(HiddenSecretsTest, OtherLinesStayAsTheyAre) {
  for (const std::string line :
       {"", "KeyError: 'label'", "ValueError: no such token", "12 tokens: 5 unknown",
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating "
        "tensor",
        "see https://tensorflow.org/a@b", "step 12: loss = 0.5", "the key is missing",
        "FileNotFoundError: [Errno 2] No such file: '/data/key'", "AKIA is short"}) {
    EXPECT_EQ(HideSecrets(line), line);
  }
}

TEST(HiddenSecretsTest, AnyBytesEnd) {
  std::string line;
  for (int i = 0; i < 3000; ++i) {
    line += static_cast<char>((i * 7919) % 256);
    if (i % 50 == 0) line += "token=\"://@";
    HideSecrets(line.substr(line.size() > 300 ? line.size() - 300 : 0));
  }
}

}  // namespace
}  // namespace muster::launch::kubernetes
