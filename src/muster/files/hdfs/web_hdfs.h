// WebHdfs: the calls of WebHDFS, HDFS's REST interface, which HttpFS has, too
// (https://hadoop.apache.org/docs/r3.4.2/hadoop-project-dist/hadoop-hdfs/WebHDFS.html). A call goes
// to the NameNode that is active; data go to and come from the DataNode that it names.
//
// A call that did not reach its server, or whose answer was lost, is repeated, through the other
// NameNodes and DataNodes, until WebHdfsOptions::patience has passed; so is one that the NameNode
// refuses for now (standby, safe mode). Until some NameNode has answered once, a call is repeated
// for `first_patience` only, since the address may be wrong.
//
// Where the NameNode wants Kerberos, a delegation token is got once by the caller's ticket (SPNEGO)
// and goes with each call, also to DataNodes; a new one is got when it is no longer valid.
//
// Errors, which name the operation and the path:
//   NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED (a quota), FAILED_PRECONDITION (a file where a
//   folder is needed, a folder that is not empty)   what the NameNode says
//   UNAUTHENTICATED   the NameNode wants another user, or Kerberos knows no valid ticket
//   UNAVAILABLE       no NameNode or no DataNode answers, or the NameNode is in safe mode
//   INVALID_ARGUMENT  there is no WebHDFS at the address
//   INTERNAL          any other exception of the server, by its name
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/files/hdfs/block_places.h"
#include "muster/files/hdfs/file_status.h"
#include "muster/files/hdfs/hadoop_config.h"
#include "muster/files/hdfs/hadoop_token.h"
#include "muster/files/hdfs/spnego.h"
#include "muster/files/hdfs/web_hdfs_answer.h"
#include "muster/formats/json_fields.h"
#include "muster/net/http/exchange.h"

namespace muster::files {

struct WebHdfsOptions {
  std::string user = {};        // user.name; "": the server's default. Not used with Kerberos
  std::string proxy_user = {};  // for whom the user calls (doas); "": itself
  std::string token = {};       // the text of a delegation token, to be used in place of a ticket
  double first_patience = 5;    // seconds
  double patience = 120;        // seconds; a NameNode needs some to start or to take over
  double call_seconds = 60;     // of one sending of a call to a NameNode
  double silence_seconds = 30;  // of a DataNode
  // Told once in each call that waits for longer than a moment, why and for how long at most. Any
  // thread calls it. May be empty.
  std::function<void(const std::string& text)> note = {};
};

// `path` is absolute, without a scheme.
struct WebHdfsCall {
  std::string method = {};  // "GET"
  std::string op = {};      // "GETFILESTATUS"
  std::string path = {};
  std::vector<std::pair<std::string, std::string>> parameters = {};
};

// Any thread.
class WebHdfs {
 public:
  // Makes no connection.
  static absl::StatusOr<std::unique_ptr<WebHdfs>> New(NameNodes name_nodes, WebHdfsOptions options);

  // Sends a call that has no data and returns the JSON object of its answer, {} for an empty one.
  // The call may be carried out more than once.
  absl::StatusOr<formats::Json> Call(const WebHdfsCall& call);

  // What the NameNode says of a file or folder.
  absl::StatusOr<HdfsFileStatus> GetStatus(const std::string& path);

  // Renames `from`, whose inode is `identity`, and replaces a file or an empty folder `to`. HttpFS
  // cannot replace: there `to` is removed before, and is not there for a moment.
  absl::Status Rename(const std::string& from, const std::string& identity, const std::string& to);

  // Gets a delegation token of the caller, whom a ticket must name, that `renewer` ("": the caller)
  // may renew. FAILED_PRECONDITION if this HDFS is not secure.
  absl::StatusOr<HadoopToken> GetToken(const std::string& renewer, const std::string& service);
  // Returns until when the token is valid, in milliseconds since the Unix epoch.
  absl::StatusOr<int64_t> RenewToken(const HadoopToken& token);
  absl::Status CancelToken(const HadoopToken& token);

  // Reads up to `size` bytes at `offset` and returns how many; fewer only at the file's end, and 0
  // from there on. `places` are those of this file.
  absl::StatusOr<size_t> Read(const std::string& path, uint64_t offset, size_t size, char* buffer,
                              BlockPlaces& places);

  // Makes the file, or replaces the one there is, with these bytes. It may be made several times.
  // `mode`: octal digits, of which the server's mask may take some away; "": the server's default.
  absl::Status Create(const std::string& path, std::string_view bytes,
                      const std::string& mode = "");

  // Adds the bytes at the end of a file whose length is `length` before: once, or, after an error,
  // perhaps in part. HDFS lets one client append at a time: for a minute after a DataNode was lost
  // in the middle of an append, the NameNode takes that append for another client's. Without
  // `waits_for_lease` this is ABORTED at once.
  absl::Status Append(const std::string& path, uint64_t length, std::string_view bytes,
                      bool waits_for_lease);

 private:
  struct Answer;
  struct Proof;
  class Filling;
  class Patience;
  WebHdfs(NameNodes name_nodes, WebHdfsOptions options, std::shared_ptr<net::HttpPool> pool)
      : name_nodes_(std::move(name_nodes)),
        options_(std::move(options)),
        pool_(std::move(pool)),
        token_(options_.token) {}

  absl::StatusOr<net::HttpExchange*> Server(const std::string& url);
  std::string Target(const WebHdfsCall& call, const Proof& proof) const;
  // One sending to the NameNode that answered last; data of a 200 that is not JSON go to `sink`.
  Answer Send(const WebHdfsCall& call, const net::BodySink& sink, const Proof& proof);
  // The same with proof of who calls; two sendings if the one before was not enough.
  Answer Ask(const WebHdfsCall& call, const net::BodySink& sink);
  Answer SendWithTicket(const WebHdfsCall& call);
  // Puts a valid token in the place of the one that was not.
  Answer ReplaceToken(std::string* token);
  // Whether a rename can replace; a call once, which renames nothing. HttpFS ignores the option.
  absl::StatusOr<bool> CanReplace(const std::string& from);
  absl::Status RenameOverNothing(const std::string& from, const std::string& to);
  // The URL of a DataNode for a call with data.
  absl::StatusOr<net::HttpLocation> Locate(const Answer& answer, const WebHdfsCall& call) const;
  // One sending of a call for data to a DataNode.
  WebHdfsVerdict ReadFrom(const net::HttpLocation& place, const std::string& what,
                          Filling& filling);
  WebHdfsVerdict Put(WebHdfsCall call, std::string_view bytes, bool* may_be_done);
  // Adds the DataNodes that did not answer lately, which the NameNode may still name.
  void ExcludeSuspects(WebHdfsCall* call);
  // Notes that a DataNode did not answer.
  void Suspect(const std::string& url);
  // For a NameNode that has no other DataNode to name.
  void ForgetSuspects();

  const NameNodes name_nodes_;
  const WebHdfsOptions options_;
  const std::shared_ptr<net::HttpPool> pool_;
  std::atomic<size_t> active_ = 0;  // the NameNode to ask first
  std::atomic<bool> answered_ = false;
  enum class Replacing { kUnknown, kYes, kNo };
  std::atomic<Replacing> replacing_ = Replacing::kUnknown;
  std::mutex proof_mutex_;
  std::string token_;               // "": none yet, or none is needed
  std::unique_ptr<Spnego> spnego_;  // once it is needed
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<net::HttpExchange>> servers_;
  std::map<std::string, std::chrono::steady_clock::time_point> suspects_;  // HOST:PORT, since when
};

}  // namespace muster::files
