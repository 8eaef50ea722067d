#include "muster/files/hdfs/read_window.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <iterator>
#include <system_error>
#include <thread>

#include "muster/base/strings.h"

namespace muster::files {
namespace {

constexpr int kInOrder = 3;  // after so many reads in order, more is fetched than was asked for
constexpr size_t kFirstPiece = size_t{1} << 20;
constexpr size_t kGrowth = 4;
constexpr size_t kLargePage = size_t{2} << 20;  // of memory
constexpr size_t kMostPieces = 3;  // with the one before the current: threads overtake each other

}  // namespace

struct ReadWindow::Piece {
  Piece(ReadWindow& its_window, uint64_t begins, size_t bytes_of_it)
      : window(its_window), begin(begins), size(bytes_of_it) {}
  ~Piece() {
    if (thread.joinable()) thread.join();
    window.GiveBack(std::move(bytes), size);
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  void Load() {
    bytes = window.TakeMemory(size);
    done.set_value(bytes != nullptr
                       ? window.fetch_(begin, size, bytes.get())
                       : absl::ResourceExhaustedError(StrCat("no memory for ", size, " bytes")));
  }
  bool Has(uint64_t offset) const { return offset >= begin && offset - begin < size; }

  ReadWindow& window;
  const uint64_t begin;
  const size_t size;
  Memory bytes = {};
  size_t used = 0;  // bytes that were read; under the window's mutex
  std::promise<absl::Status> done = {};
  const std::shared_future<absl::Status> fetched = done.get_future().share();
  std::jthread thread = {};  // that loads it, unless its first reader does; ends before the rest
};

ReadWindow::~ReadWindow() {
  Pieces dropped;
  const std::lock_guard lock(mutex_);
  dropped.swap(pieces_);
}

absl::Status ReadWindow::Read(uint64_t offset, size_t size, char* buffer, uint64_t end) {
  for (size_t done = 0; done < size;) {
    const uint64_t at = offset + done;
    Pieces dropped;
    Found found;
    {
      const std::lock_guard lock(mutex_);
      if (done == 0) NoteOrder(offset, size);
      found = FindOrBegin(at, size - done, end, &dropped);
      if (found.piece != nullptr) FetchNext(found.piece, end);
    }
    if (found.piece == nullptr) return fetch_(at, size - done, buffer + done);
    Piece& piece = *found.piece;
    if (found.is_new) piece.Load();
    if (const absl::Status& status = piece.fetched.get(); !status.ok()) {
      const std::lock_guard lock(mutex_);
      DropFrom(found.piece, &dropped);
      return status;
    }
    const size_t from = static_cast<size_t>(at - piece.begin);
    const size_t count = std::min(size - done, piece.size - from);
    std::memcpy(buffer + done, piece.bytes.get() + from, count);
    done += count;
    const std::lock_guard lock(mutex_);
    piece.used += count;
    DropUsed(&dropped);
  }
  return absl::OkStatus();
}

ReadWindow::Memory ReadWindow::TakeMemory(size_t size) {
  if (size < kFirstPiece) return Memory(static_cast<char*>(std::malloc(size)));
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      Memory memory = std::move(spare_.back());
      spare_.pop_back();
      return memory;
    }
  }
  Memory memory(static_cast<char*>(std::aligned_alloc(kLargePage, kMostRead)));
  if (memory != nullptr) (void)madvise(memory.get(), kMostRead, MADV_HUGEPAGE);
  return memory;
}

void ReadWindow::GiveBack(Memory memory, size_t size) {
  if (memory == nullptr || size < kFirstPiece) return;
  const std::lock_guard lock(mutex_);
  // A file that was read to its end keeps no memory.
  if (!pieces_.empty() && spare_.size() < kMostPieces) spare_.push_back(std::move(memory));
}

// Threads that read the pieces of a file do not arrive in their order: a read may begin two of its
// lengths before or after the place where the ones before it have arrived.
void ReadWindow::NoteOrder(uint64_t offset, size_t size) {
  const uint64_t slack = 2 * uint64_t{size};
  const bool follows = offset <= frontier_ + slack && offset + slack >= frontier_;
  in_order_ = follows ? std::min(in_order_ + 1, kInOrder) : 0;
  frontier_ = follows ? std::max(frontier_, offset + size) : offset + size;
}

ReadWindow::Found ReadWindow::FindOrBegin(uint64_t offset, size_t size, uint64_t end,
                                          Pieces* dropped) {
  for (const PiecePtr& piece : pieces_) {
    if (piece->Has(offset)) return {piece};
  }
  const bool in_order = in_order_ == kInOrder;
  if (!in_order && size >= kLeastRead) return {};
  // A thread that was overtaken must not move the others' window back.
  if (in_order && !pieces_.empty() && offset < pieces_.front()->begin) return {};
  dropped->swap(pieces_);
  const uint64_t count = std::min<uint64_t>(in_order ? kFirstPiece : kLeastRead, end - offset);
  pieces_.push_back(std::make_shared<Piece>(*this, offset, static_cast<size_t>(count)));
  return {pieces_.back(), true};
}

void ReadWindow::FetchNext(const PiecePtr& used, uint64_t end) {
  const uint64_t begin = used->begin + used->size;
  if (in_order_ < kInOrder || used != pieces_.back() || begin >= end) return;
  const uint64_t count = std::min<uint64_t>(std::min(kGrowth * used->size, kMostRead), end - begin);
  auto piece = std::make_shared<Piece>(*this, begin, static_cast<size_t>(count));
  try {
    piece->thread = std::jthread([raw = piece.get()] { raw->Load(); });
  } catch (const std::system_error&) {
    return;  // there are too many threads: the reader will fetch it
  }
  pieces_.push_back(std::move(piece));
}

void ReadWindow::DropUsed(Pieces* dropped) {
  while (!pieces_.empty() &&
         (pieces_.front()->used >= pieces_.front()->size || pieces_.size() > kMostPieces)) {
    dropped->push_back(std::move(pieces_.front()));
    pieces_.pop_front();
  }
  if (pieces_.empty()) spare_.clear();
}

void ReadWindow::DropFrom(const PiecePtr& first, Pieces* dropped) {
  const auto found = std::find(pieces_.begin(), pieces_.end(), first);
  std::move(found, pieces_.end(), std::back_inserter(*dropped));
  pieces_.erase(found, pieces_.end());
}

}  // namespace muster::files
