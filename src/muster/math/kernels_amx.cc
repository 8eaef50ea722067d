// Products in bfloat16 on AMX tiles, as gemm.h describes them for GemmCall::bf16.
//
// A tile is 16 rows of 64 bytes. Both operands are rounded and packed into tiles that follow one
// another along k: for A, 16 rows x 32 k; for B, 16 pairs of k x 16 columns, the two values of a
// pair side by side (the layout of TDPBF16PS). Four tiles of C, 32 x 32 floats, stay in registers
// over a block of k. Method: Intel, "64 and IA-32 Architectures Optimization Reference Manual",
// chapter 20.
#if defined(__x86_64__)
#include <immintrin.h>

#include "muster/math/gemm.h"
#include "muster/math/kernel_tables.h"

namespace muster::math {
namespace {

constexpr int kTileRows = 16;
constexpr int kTileK = 32;
constexpr int kTileElements = kTileRows * kTileK;
constexpr int64_t kTileStride = 64;     // bytes from row to row
constexpr int kSquare = 2 * kTileRows;  // rows and columns of C in registers
constexpr int kLongestK = 1024;         // the longest block of k
constexpr int kPackedRows = 256;        // rows of A packed at once
constexpr int kCachedSteps = 16;        // tiles of k for which a panel of B stays in the L1 cache

constexpr int Min(int a, int b) { return a < b ? a : b; }
constexpr int RoundUp(int n, int unit) { return (n + unit - 1) / unit * unit; }

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_a_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

inline __mmask16 GetMask(int lanes) {
  return static_cast<__mmask16>(lanes >= 16 ? 0xffff : lanes <= 0 ? 0 : (1u << lanes) - 1);
}

// Rounds 32 floats to bfloat16 and keeps their order.
inline __m512i Round(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

// Transposes 16 rows of 16 pairs: pair j of x[i] becomes pair i of x[j].
inline void Transpose(__m512i* x) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    x[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    x[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    x[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(x[i], x[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(x[i], x[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(x[i + 8], x[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(x[i + 8], x[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    x[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    x[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    x[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    x[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// An operand: 16 lanes (rows of A, columns of B) by k. `ld` is the distance of lanes if k is
// contiguous, else the distance of k.
struct Operand {
  const float* data;
  int64_t ld;
  bool k_contiguous;
  bool lanes_are_rows;  // the tile's rows are lanes (A); else they are pairs of k (B)
};

// Packs one tile of up to 16 lanes and 32 k; the rest of the tile becomes 0.
template <bool kContiguous, bool kTransposed>
inline void PackTile(const float* from, int64_t ld, int lanes, int k, uint16_t* to) {
  __m512i rows[16];
  if constexpr (kContiguous) {
    const __mmask16 low = GetMask(k), high = GetMask(k - 16);
    for (int i = 0; i < 16; ++i) {
      const __mmask16 here = i < lanes ? 0xffff : 0;
      const float* const row = from + (i < lanes ? i * ld : 0);
      rows[i] = Round(_mm512_maskz_loadu_ps(low & here, row),
                      _mm512_maskz_loadu_ps(high & here, row + 16));
    }
  } else {
    alignas(64) static constexpr uint16_t kInterleave[32] = {
        0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i order = _mm512_load_si512(kInterleave);
    const __mmask16 mask = GetMask(lanes);
    for (int i = 0; i < 16; ++i) {
      const float* const row = from + (2 * i < k ? 2 * i * ld : 0);
      const __m512 even = _mm512_maskz_loadu_ps(2 * i < k ? mask : 0, row);
      const __m512 odd = _mm512_maskz_loadu_ps(2 * i + 1 < k ? mask : 0, row + ld);
      rows[i] = _mm512_permutexvar_epi16(order, Round(even, odd));
    }
  }
  if constexpr (kTransposed) Transpose(rows);
  for (int i = 0; i < 16; ++i) _mm512_store_si512(to + i * kTileK, rows[i]);
}

// Packs `lanes` lanes from `first` on and `k` k from `begin` on: the tiles of lanes 0 to 15 along
// k, then those of lanes 16 to 31, and so on. Memory is read in its order.
template <bool kContiguous, bool kTransposed>
__attribute__((noinline)) void PackTiles(const Operand& operand, int first, int lanes, int begin,
                                         int k, uint16_t* to) {
  const int lane_tiles = RoundUp(lanes, kSquare) / kTileRows, k_tiles = RoundUp(k, kTileK) / kTileK;
  const int64_t lane_step = kContiguous ? operand.ld : 1, k_step = kContiguous ? 1 : operand.ld;
  const auto pack = [&](int i, int j) __attribute__((always_inline)) {
    const int lanes_here = Min(kTileRows, lanes - i * kTileRows);
    const float* from = operand.data;
    if (lanes_here > 0) {
      from += (first + i * kTileRows) * lane_step + (begin + j * kTileK) * k_step;
    }
    PackTile<kContiguous, kTransposed>(from, operand.ld, lanes_here, Min(kTileK, k - j * kTileK),
                                       to + (int64_t{i} * k_tiles + j) * kTileElements);
  };
  if constexpr (kContiguous) {
    for (int i = 0; i < lane_tiles; ++i) {
      for (int j = 0; j < k_tiles; ++j) pack(i, j);
    }
  } else {
    for (int j = 0; j < k_tiles; ++j) {
      for (int i = 0; i < lane_tiles; ++i) pack(i, j);
    }
  }
}

void Pack(const Operand& operand, int first, int lanes, int begin, int k, uint16_t* to) {
  if (operand.lanes_are_rows) {
    (operand.k_contiguous ? PackTiles<true, false> : PackTiles<false, true>)(operand, first, lanes,
                                                                             begin, k, to);
  } else {
    (operand.k_contiguous ? PackTiles<true, true> : PackTiles<false, false>)(operand, first, lanes,
                                                                             begin, k, to);
  }
}

// c[32][32] = two tile rows of A by two tile columns of B over `steps` tiles of k, or C += that.
// The second ones lie `next` elements after the first.
__attribute__((noinline)) void MultiplySquare(const uint16_t* a, const uint16_t* b, int64_t next,
                                              int steps, bool accumulate, float* c) {
  constexpr int64_t kRowBytes = kSquare * sizeof(float);
  if (accumulate) {
    _tile_loadd(0, c, kRowBytes);
    _tile_loadd(1, c + kTileRows, kRowBytes);
    _tile_loadd(2, c + kTileRows * kSquare, kRowBytes);
    _tile_loadd(3, c + kTileRows * kSquare + kTileRows, kRowBytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int step = 0; step < steps; ++step, a += kTileElements, b += kTileElements) {
    _tile_loadd(4, a, kTileStride);
    _tile_loadd(6, b, kTileStride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + next, kTileStride);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + next, kTileStride);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, kRowBytes);
  _tile_stored(1, c + kTileRows, kRowBytes);
  _tile_stored(2, c + kTileRows * kSquare, kRowBytes);
  _tile_stored(3, c + kTileRows * kSquare + kTileRows, kRowBytes);
}

// Where a square of C is written, and what is done with it on the way.
struct Target {
  float* c;
  int64_t ldc;
  int rows, columns;
  bool accumulate;
  const float* bias;
  bool relu;
  const float* mask;
  int64_t ldmask;
};

// Prefetches C and the mask, which are in distant memory, before the square is computed.
inline void Prefetch(const Target& to) {
  for (int i = 0; i < to.rows; ++i) {
    for (int j = 0; j < to.columns; j += 16) {
      __builtin_prefetch(to.c + i * to.ldc + j, 1);
      if (to.mask != nullptr) __builtin_prefetch(to.mask + i * to.ldmask + j);
    }
  }
}

void StoreSquare(const float* square, const Target& to) {
  for (int j = 0; j < to.columns; j += 16) {
    const __mmask16 lanes = GetMask(to.columns - j);
    const __m512 bias =
        to.bias != nullptr ? _mm512_maskz_loadu_ps(lanes, to.bias + j) : _mm512_setzero_ps();
    for (int i = 0; i < to.rows; ++i) {
      __m512 v = _mm512_load_ps(square + i * kSquare + j);
      float* const c = to.c + i * to.ldc + j;
      if (to.accumulate) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(lanes, c));
      if (to.bias != nullptr) v = _mm512_add_ps(v, bias);
      if (to.relu) v = _mm512_max_ps(_mm512_setzero_ps(), v);  // keeps NaN
      if (to.mask != nullptr) {
        const __m512 mask = _mm512_maskz_loadu_ps(lanes, to.mask + i * to.ldmask + j);
        v = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(mask, _mm512_setzero_ps(), _CMP_GT_OQ), v);
      }
      _mm512_mask_storeu_ps(c, lanes, v);
    }
  }
}

// Sizes and offsets in floats.
struct Workspace {
  size_t b, a, squares;
  explicit Workspace(const GemmCall& call) {
    const auto k = static_cast<size_t>(RoundUp(Min(call.k, kLongestK), kTileK));
    b = call.packed_b != nullptr ? 0 : k * static_cast<size_t>(RoundUp(call.n, kSquare)) / 2;
    a = k * static_cast<size_t>(RoundUp(Min(call.m, kPackedRows), kSquare)) / 2;
    squares = kPackedRows * kSquare;
  }
};

size_t GemmWorkspaceSize(const GemmCall& call) {
  const Workspace parts(call);
  return parts.b + parts.a + parts.squares;
}

Operand OperandB(const GemmCall& call) { return {call.b, call.ldb, call.b_transposed, false}; }

// Returns the floats of a packed B, whose blocks of k lie one after the other, each with all
// columns.
size_t PackedBSize(const GemmCall& call) {
  return static_cast<size_t>(RoundUp(call.k, kTileK)) *
         static_cast<size_t>(RoundUp(call.n, kSquare)) / 2;
}

void PackPartOfB(const GemmCall& call, int part, int parts, float* to) {
  const int squares = RoundUp(call.n, kSquare) / kSquare;
  const int first = squares * part / parts * kSquare;
  const int columns = Min(squares * (part + 1) / parts * kSquare, call.n) - first;
  if (columns <= 0) return;
  const int64_t width = RoundUp(call.n, kSquare);
  for (int begin = 0; begin < call.k; begin += kLongestK) {
    const int k = Min(kLongestK, call.k - begin);
    uint16_t* const block = reinterpret_cast<uint16_t*>(to) + begin * width;
    Pack(OperandB(call), first, columns, begin, k, block + int64_t{first} * RoundUp(k, kTileK));
  }
}

// One block of k for one block of rows of A: what is packed, and where its part of C is.
struct PackedBlock {
  const uint16_t* a;
  const uint16_t* b;
  int steps;  // the number of tiles of k
  int rows;
  float* squares;  // squares of a panel of C
};

// Computes 32 columns of C. It cuts k into parts, so that a panel of B stays in the L1 cache.
void MultiplyPanel(const PackedBlock& block, const Target& panel) {
  const int64_t row = int64_t{block.steps} * kTileElements;
  const int parts = (block.steps + kCachedSteps - 1) / kCachedSteps;
  for (int part = 0, step = 0; part < parts; ++part) {
    const int steps = (block.steps - step) / (parts - part);
    const bool last = part + 1 == parts;
    const int64_t at = int64_t{step} * kTileElements;
    for (int i = 0; i < block.rows; i += kSquare) {
      float* const square = block.squares + i * kSquare;
      Target to = panel;
      to.c += i * panel.ldc;
      to.rows = Min(kSquare, block.rows - i);
      if (to.mask != nullptr) to.mask += i * panel.ldmask;
      if (last) Prefetch(to);
      MultiplySquare(block.a + i / kTileRows * row + at, block.b + at, row, steps, part > 0,
                     square);
      if (last) StoreSquare(square, to);
    }
    step += steps;
  }
}

void Gemm(const GemmCall& call, float* workspace) {
  const Workspace parts(call);
  uint16_t* const packed_b = reinterpret_cast<uint16_t*>(workspace);
  uint16_t* const packed_a = reinterpret_cast<uint16_t*>(workspace + parts.b);
  const Operand a{call.a, call.a_col == 1 ? call.a_row : call.a_col, call.a_col == 1, true};
  const TileConfig config;
  _tile_loadconfig(&config);
  for (int begin = 0; begin < call.k; begin += kLongestK) {
    const int k = Min(kLongestK, call.k - begin);
    const bool ends = begin + k == call.k;
    PackedBlock block = {.a = packed_a,
                         .b = nullptr,
                         .steps = (k + kTileK - 1) / kTileK,
                         .rows = 0,
                         .squares = workspace + parts.b + parts.a};
    const uint16_t* block_of_b = packed_b;
    if (call.packed_b != nullptr) {
      block_of_b =
          static_cast<const uint16_t*>(call.packed_b) + int64_t{begin} * RoundUp(call.n, kSquare);
    } else {
      Pack(OperandB(call), 0, call.n, begin, k, packed_b);
    }
    for (int row = 0; row < call.m; row += kPackedRows) {
      block.rows = Min(kPackedRows, call.m - row);
      Pack(a, row, block.rows, begin, k, packed_a);
      for (int j = 0; j < call.n; j += kSquare) {
        block.b = block_of_b + int64_t{j} / kTileRows * block.steps * kTileElements;
        MultiplyPanel(
            block,
            {.c = call.c + row * call.ldc + j,
             .ldc = call.ldc,
             .rows = 0,
             .columns = Min(kSquare, call.n - j),
             .accumulate = call.accumulate || begin > 0,
             .bias = ends && call.bias != nullptr ? call.bias + j : nullptr,
             .relu = ends && call.relu,
             .mask = ends && call.mask != nullptr ? call.mask + row * call.ldmask + j : nullptr,
             .ldmask = call.ldmask});
      }
    }
  }
  _tile_release();
}

}  // namespace

const TileKernels& AmxKernels() {
  static constexpr TileKernels kTable = {
      .name = "amx",
      .gemm_workspace = GemmWorkspaceSize,
      .gemm = Gemm,
      .packed_b_floats = PackedBSize,
      .pack_b = PackPartOfB,
  };
  return kTable;
}

}  // namespace muster::math
#endif
