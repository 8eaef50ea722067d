// Pages of 2 MiB for memory that is read and written at random, such as large tables of weights:
// with pages of 4 KiB the processor looks up the page of nearly every row that it touches.
#pragma once

#include <cstddef>
#include <vector>

namespace muster {

// Less memory than this is not worth huge pages.
inline constexpr size_t kWorthHugePages = size_t{4} << 20;
inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Asks the kernel for huge pages where `bytes` bytes at `data` hold whole ones; does nothing for
// less than kWorthHugePages or where the kernel has none. Call before the memory is written for
// the first time. A huge page takes its 2 MiB at the first write to it, so that memory which is
// never written to its end takes one page more.
void AskForHugePages(void* data, size_t bytes);

// Makes `values` as many zeros, with huge pages if they are worth that.
void MakeZeros(size_t count, std::vector<float>* values);

// Makes room for `count` more values. Where that takes other memory, it is at least twice as much,
// and has huge pages if it is worth that.
void ReserveMore(size_t count, std::vector<float>* values);

}  // namespace muster
