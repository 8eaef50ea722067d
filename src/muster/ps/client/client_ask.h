// The functions of Client that send a request and receive its answer. Included by Client's .cc
// files only.
#pragma once

#include <utility>

#include "muster/ps/client/client.h"

namespace muster::ps {

// The ABORTED error for a server that cannot be reached or breaks the protocol.
inline absl::Status Lost(size_t server, const absl::Status& why) {
  return absl::AbortedError(StrCat("ps-", server, ": ", ToStd(why.message())));
}

template <class M>
absl::Status Client::Send(size_t server, uint16_t type, const M& message) {
  if (connections_[server] == nullptr) {
    return closed_.ok() ? Lost(server, absl::AbortedError("not connected")) : closed_;
  }
  Print(message, &wires_[server].bytes);
  const absl::Status sent = connections_[server]->Send(type, wires_[server].bytes);
  return sent.ok() ? sent : Lost(server, sent);
}

// The result may point into wires_[server].answer; it is valid until the next Receive of that
// server.
template <class M>
absl::StatusOr<M> Client::Receive(size_t server) {
  MUSTER_ASSIGN_OR_RETURN(wires_[server].answer, ReceiveAnswer(server));
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
