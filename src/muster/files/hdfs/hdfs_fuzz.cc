// Any bytes as a Hadoop configuration, as a file or text of tokens, as the status of files, and as
// the answer of a NameNode: the first byte chooses. What is read of a configuration resolves
// without a crash; what is read of tokens prints back; an answer of an error status is never taken
// for success.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "muster/files/hdfs/file_status.h"
#include "muster/files/hdfs/hadoop_config.h"
#include "muster/files/hdfs/hadoop_token.h"
#include "muster/files/hdfs/web_hdfs_answer.h"
#include "muster/io/memory_file_system.h"

namespace {

constexpr int kStatuses[] = {400, 401, 403, 404, 500, 503};

void ReadConfig(std::string_view text) {
  const auto files = muster::io::NewMemoryFileSystem();
  if (!muster::io::WriteFileAtomically(*files, "/hdfs-site.xml", text).ok()) abort();
  const auto config = muster::files::HadoopConfig::Read(*files, "/");
  if (!config.ok()) return;
  for (const char* const authority : {"", "ns", "host", "host:1", "[::1]"}) {
    const auto nodes = config->OfHdfs(authority);
    if (nodes.ok() && nodes->urls.empty()) abort();
    (void)config->OfWebHdfs(authority, true);
  }
}

void ReadTokens(std::string_view bytes) {
  const auto tokens = muster::files::ParseTokenFile(bytes, "file");
  if (tokens.ok()) {
    const auto again =
        muster::files::ParseTokenFile(muster::files::PrintTokenFile(*tokens), "file");
    if (!again.ok() || *again != *tokens) abort();
  }
  (void)muster::files::ParseTokenText(bytes);
}

void ReadStatus(std::string_view text) {
  const auto json = muster::formats::ParseJsonObject(text, "answer");
  if (!json.ok()) return;
  (void)muster::files::ParseFileStatus(*json, "answer");
  (void)muster::files::ParseFileStatuses(*json, "answer");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 0) {
    ReadConfig(rest);
  } else if (data[0] == 1) {
    ReadTokens(rest);
  } else if (data[0] == 2) {
    ReadStatus(rest);
  } else if (muster::files::JudgeAnswer(kStatuses[data[0] % std::size(kStatuses)], rest, "OPEN /x")
                 .status.ok()) {
    abort();
  }
  return 0;
}
