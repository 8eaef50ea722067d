// ReadWindow: the part of a file that lies in memory while it is read from its beginning to its
// end. It is fetched in pieces that become longer, and the next piece is fetched by a thread while
// the current one is used: few calls are made, and the reader rarely waits.
//
// Reads in order may come from several threads, a little out of order, and have any size. Other
// reads of kLeastRead bytes or more are fetched each by itself, at the same time; a smaller one
// keeps what was fetched around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "muster/base/status.h"

namespace muster::files {

class ReadWindow {
 public:
  static constexpr size_t kLeastRead = size_t{256} << 10;  // bytes of a fetch
  static constexpr size_t kMostRead = size_t{16} << 20;

  // Fetches exactly these bytes of the file. Any thread calls it, also at the same time.
  using Fetch = std::function<absl::Status(uint64_t offset, size_t size, char* buffer)>;

  explicit ReadWindow(Fetch fetch) : fetch_(std::move(fetch)) {}
  ~ReadWindow();  // waits for a fetch in progress
  ReadWindow(const ReadWindow&) = delete;
  ReadWindow& operator=(const ReadWindow&) = delete;

  // Reads the bytes, all of which lie before `end`, the file's length. Any thread. Errors are those
  // of `fetch`; the piece that failed is fetched again by the next read that needs it.
  absl::Status Read(uint64_t offset, size_t size, char* buffer, uint64_t end);

 private:
  struct Piece;
  using PiecePtr = std::shared_ptr<Piece>;
  using Pieces = std::deque<PiecePtr>;
  struct Found {
    PiecePtr piece = nullptr;  // null: the read is fetched by itself
    bool is_new = false;       // its first reader fetches it
  };

  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<char[], Free>;

  // Memory for a piece. That of longer pieces has room for the longest ones and is used again:
  // fresh memory costs more than the bytes. Null if there is none.
  Memory TakeMemory(size_t size);
  void GiveBack(Memory memory, size_t size);

  // What follows is called with the mutex. Pieces end their threads when they are destroyed, so
  // that they are moved to `dropped`, which is destroyed without it.

  // Counts the reads that follow one another.
  void NoteOrder(uint64_t offset, size_t size);
  Found FindOrBegin(uint64_t offset, size_t size, uint64_t end, Pieces* dropped);
  // Begins to fetch what follows the last piece if that one is `used`.
  void FetchNext(const PiecePtr& used, uint64_t end);
  // Drops the pieces that were read to their end, and the oldest of too many.
  void DropUsed(Pieces* dropped);
  void DropFrom(const PiecePtr& first, Pieces* dropped);

  const Fetch fetch_;
  std::mutex mutex_;           // of what follows
  std::vector<Memory> spare_;  // of kMostRead bytes each
  Pieces pieces_;              // each begins where the one before ends
  uint64_t frontier_ = 0;      // where the reads in order have arrived
  int in_order_ = 0;           // how many they are
};

}  // namespace muster::files
