// One connection of an HttpServer: reads requests one after the other, has each checked by its
// header, reads the body, passes the request to its handler, writes the answer. Every wait has a
// deadline. Included by .cc files of this layer only. Used on the io thread only.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/steady_timer.hpp>

#include "muster/net/http/request_reader.h"
#include "muster/net/http/server.h"
#include "muster/net/http/stream.h"

namespace muster::net::internal {

class HttpConnection;

// The decision made from a request's header.
struct RequestPlan {
  bool is_stranger = true;  // no token, or a wrong one
  std::optional<HttpResponse> refusal = {};
  size_t route = 0;
  HttpTarget target = {};
  std::map<std::string, std::string> parameters = {};
};

// The interface of the server to its connections.
class ConnectionHost {
 public:
  virtual ~ConnectionHost() = default;
  virtual const HttpLimits& limits() const = 0;
  virtual bool stopping() const = 0;
  virtual RequestPlan Judge(const HttpRequestReader& reader) = 0;
  // Called when the connection has shown that it is not a stranger's; returns false if there are
  // too many such connections.
  virtual bool Admit(HttpConnection* connection) = 0;
  // Runs the handler. The connection keeps only a weak reference to the state: when the last copy
  // is destroyed without an answer, 500 is sent.
  virtual std::weak_ptr<ReplyState> Handle(HttpConnection* connection, RequestPlan plan,
                                           const HttpRequestReader& reader) = 0;
  virtual void CountTimeOut() = 0;
  virtual void Forget(HttpConnection* connection) = 0;  // may drop its last reference
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(std::unique_ptr<HttpStream> stream, ConnectionHost* host, std::string peer);

  void Start();
  void Close();
  void Stop();  // the server stops: a waiting request gets 503

  // Answers the request with this number if it still waits.
  void Answer(uint64_t number, const HttpResponse& response);
  void AnswerAfter(uint64_t number, double seconds, HttpResponse response);

  const std::string& peer() const { return peer_; }
  uint64_t request_number() const { return number_; }
  bool admitted() const { return admitted_; }

 private:
  void Arm(double seconds, std::function<void()> expired);
  void ArmToClose(double seconds);
  void BeginRequest();
  void ReadMore();
  void Parse();
  bool JudgeHeader();  // false when the request was refused
  void SendContinue();
  void Refuse(const HttpResponse& response);
  void Dispatch();
  void WatchForEnd();
  void Write(const HttpResponse& response, bool keep_alive);
  void Linger();
  void DrainMore();

  std::unique_ptr<HttpStream> stream_;
  ConnectionHost* const host_;
  const std::string peer_;
  boost::asio::steady_timer deadline_;
  uint64_t armed_ = 0;  // the number of the deadline that is in force

  std::optional<HttpRequestReader> reader_;
  std::optional<RequestPlan> plan_;
  std::weak_ptr<ReplyState> reply_;
  std::chrono::steady_clock::time_point answer_by_ = {};
  std::array<char, 4096> chunk_;
  std::string buffer_;  // read, not yet taken by reader_; at most header_bytes
  std::string output_;
  size_t drained_ = 0;
  uint64_t number_ = 0;  // the request's
  bool admitted_ = false;
  bool idle_ = false;     // between two requests
  bool waiting_ = false;  // for the handler's answer
  bool writing_ = false;
  bool closed_ = false;
};

}  // namespace muster::net::internal
