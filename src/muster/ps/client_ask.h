// Client: a request and its answer. Included by Client's .cc files only.
#pragma once

#include <utility>

#include "muster/ps/client.h"

namespace muster::ps {

// Of a server that cannot be reached, or does not speak as it should.
inline absl::Status Lost(size_t server, const absl::Status& why) {
  return absl::AbortedError(StrCat("ps-", server, ": ", ToStd(why.message())));
}

template <class M>
absl::Status Client::Send(size_t server, uint16_t type, const M& message) {
  if (lines_[server] == nullptr) return Lost(server, absl::AbortedError("not connected"));
  Print(message, &wires_[server].bytes);
  const absl::Status sent = lines_[server]->Send(type, wires_[server].bytes);
  return sent.ok() ? sent : Lost(server, sent);
}

// What is returned may point into the wire's answer, until the next call for that server.
template <class M>
absl::StatusOr<M> Client::Receive(size_t server) {
  auto got = lines_[server]->Receive();
  if (!got.ok()) return Lost(server, got.status());
  wires_[server].answer = *std::move(got);
  const ConstBytes bytes = wires_[server].answer.bytes();
  if (wires_[server].answer.type == kRefused) {
    const auto refused = Parse<Refused>(bytes);
    if (!refused.ok()) return Lost(server, refused.status());
    const absl::Status said(static_cast<absl::StatusCode>(refused->code), refused->text);
    return said.ok() ? Lost(server, absl::AbortedError("refused without a reason")) : said;
  }
  auto answer = Parse<M>(bytes);
  if (!answer.ok()) return Lost(server, answer.status());
  return answer;
}

template <class A, class M>
absl::StatusOr<A> Client::Ask(size_t server, uint16_t type, const M& message) {
  MUSTER_RETURN_IF_ERROR(Send(server, type, message));
  return Receive<A>(server);
}

}  // namespace muster::ps
