#include "muster/files/hdfs/web_hdfs_answer.h"

#include <algorithm>
#include <array>

#include "muster/base/strings.h"
#include "muster/formats/json_fields.h"

namespace muster::files {
namespace {

using absl::StatusCode;

struct Known {
  std::string_view exception;
  StatusCode code;
  bool again = false, other_name_node = false, has_lease_of_other = false;
};

// By the simple name of Java's class.
constexpr std::array kKnown = {
    Known{"FileNotFoundException", StatusCode::kNotFound},
    Known{"AccessControlException", StatusCode::kPermissionDenied},
    Known{"NSQuotaExceededException", StatusCode::kResourceExhausted},
    Known{"DSQuotaExceededException", StatusCode::kResourceExhausted},
    Known{"QuotaByStorageTypeExceededException", StatusCode::kResourceExhausted},
    Known{"QuotaExceededException", StatusCode::kResourceExhausted},
    Known{"FileAlreadyExistsException", StatusCode::kFailedPrecondition},
    Known{"ParentNotDirectoryException", StatusCode::kFailedPrecondition},
    Known{"PathIsNotDirectoryException", StatusCode::kFailedPrecondition},
    Known{"PathIsNotEmptyDirectoryException", StatusCode::kFailedPrecondition},
    Known{"InvalidPathException", StatusCode::kInvalidArgument},
    Known{"IllegalArgumentException", StatusCode::kInvalidArgument},
    Known{"SecurityException", StatusCode::kUnauthenticated},
    Known{"StandbyException", StatusCode::kUnavailable, true, true},
    Known{"SafeModeException", StatusCode::kUnavailable, true},
    Known{"RetriableException", StatusCode::kUnavailable, true},
    Known{"AlreadyBeingCreatedException", StatusCode::kUnavailable, true, false, true},
    Known{"RecoveryInProgressException", StatusCode::kUnavailable, true, false, true},
    Known{"BlockMissingException", StatusCode::kUnavailable, true},
    Known{"CannotObtainBlockLengthException", StatusCode::kUnavailable, true},
    Known{"NotReplicatedYetException", StatusCode::kUnavailable, true},
    Known{"InvalidTopologyException", StatusCode::kUnavailable, true},
    // A DataNode that does not reach the NameNode.
    Known{"EOFException", StatusCode::kUnavailable, true},
    Known{"ConnectException", StatusCode::kUnavailable, true},
    Known{"ConnectTimeoutException", StatusCode::kUnavailable, true},
    Known{"NoRouteToHostException", StatusCode::kUnavailable, true},
    Known{"SocketException", StatusCode::kUnavailable, true},
    Known{"SocketTimeoutException", StatusCode::kUnavailable, true},
};

// An IOException has no class of its own for these.
constexpr std::string_view kNotEmpty = "not empty", kNonEmpty = "non empty";
constexpr std::string_view kInvalidToken = "InvalidToken";

// What passes, as after the start of a NameNode that knows no DataNode yet, or not all blocks, or
// after the loss of a DataNode. Of these, too, an IOException has no class of its own.
constexpr std::array<std::string_view, 12> kPassing = {
    "Failed to find datanode",           // NamenodeWebHdfsMethods.redirectURI
    "Namesystem has not been init",      // NamenodeWebHdfsMethods.chooseDatanode
    "No active nodes contain this",      // NamenodeWebHdfsMethods.bestNode
    "could only be written to",          // BlockManager.chooseTarget4NewBlock
    "could only be replicated to",       // the same in Hadoop 2
    "is not sufficiently replicated",    // FSDirAppendOp.appendFile
    "Could not obtain block",            // DFSInputStream.chooseDataNode
    "Could not obtain the last block",   // DFSInputStream.openInfo
    "Unable to create new block",        // DataStreamer.nextBlockOutputStream
    "Unable to close file because",      // DFSOutputStream.completeFile
    "are bad. Aborting",                 // DataStreamer.setupPipelineForAppendOrRecovery
    "Failed to replace a bad datanode",  // DataStreamer.findNewDatanode
};

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool IsPassing(std::string_view message) {
  return std::any_of(kPassing.begin(), kPassing.end(),
                     [&](std::string_view part) { return Contains(message, part); });
}

}  // namespace

WebHdfsVerdict JudgeAnswer(int http_status, std::string_view body, const std::string& what) {
  if (http_status < 400) return {};
  std::string exception, message;
  if (const auto json = formats::ParseJsonObject(body, what); json.ok()) {
    formats::JsonFields fields(*json, what);
    formats::JsonFields remote(fields.Object("RemoteException"), what);
    exception = remote.Text("exception");
    message = remote.Text("message");
    message = message.substr(0, message.find('\n'));
  }
  if (message.empty()) message = StrCat("HTTP status ", http_status);
  const auto verdict = [&](StatusCode code, bool again = false) {
    return WebHdfsVerdict{absl::Status(code, StrCat(what, ": ", message)), again};
  };
  const auto known = std::find_if(kKnown.begin(), kKnown.end(),
                                  [&](const Known& each) { return each.exception == exception; });
  // A token that has expired is told by an exception of one of these names or within one.
  if (http_status == 401 || Contains(exception, kInvalidToken) ||
      (exception == "SecurityException" && Contains(message, kInvalidToken))) {
    WebHdfsVerdict made = verdict(StatusCode::kUnauthenticated);
    made.wants_proof = true;
    return made;
  }
  if (known != kKnown.end()) {
    WebHdfsVerdict made = verdict(known->code, known->again);
    made.other_name_node = known->other_name_node;
    made.has_lease_of_other = known->has_lease_of_other;
    return made;
  }
  if (Contains(message, kNotEmpty) || Contains(message, kNonEmpty)) {
    return verdict(StatusCode::kFailedPrecondition);
  }
  if (IsPassing(message)) return verdict(StatusCode::kUnavailable, true);
  if (http_status == 404) {
    message = exception.empty() ? "there is no WebHDFS at this address (HTTP status 404)" : message;
    return verdict(exception.empty() ? StatusCode::kInvalidArgument : StatusCode::kNotFound);
  }
  if (http_status == 429 || http_status == 502 || http_status == 503 || http_status == 504) {
    return verdict(StatusCode::kUnavailable, true);
  }
  if (!exception.empty()) message = StrCat(exception, ": ", message);
  return verdict(StatusCode::kInternal);
}

}  // namespace muster::files
