// Matrix instructions of GPUs on a host, from where their definitions put each element of each
// operand: NVIDIA's PTX ISA ("Matrix Fragments for mma.m16n8k16", "ldmatrix"), AMD's instruction
// set references for MI200, RDNA3 and RDNA4 (dense matrix layouts of V_MFMA_F32_16X16X16,
// V_MFMA_F32_32X32X8 and V_WMMA_F32_16X16X16).
//
// Every lane hands over its registers, and each computes the elements of the result that are its
// own.
#pragma once

#include <cstring>

namespace port::host {

template <class T> float number(u32 word, int half) {
    return to_float(__builtin_bit_cast(T, u16(word >> 16 * half)));
}

// The registers of both operands of a lane: what lanes handed over stays only until they do so
// again.
template <int FIRST, int SECOND> struct Operands {
    u32 first[FIRST];
    u32 second[SECOND];
};

template <int FIRST, int SECOND>
const Operands<FIRST, SECOND>* operands(const u32* first, const u32* second) {
    Operands<FIRST, SECOND> mine;
    std::memcpy(mine.first, first, sizeof mine.first);
    std::memcpy(mine.second, second, sizeof mine.second);
    return gather(mine);
}

// Lane l names row l % 8 of matrix l / 8. It gets numbers 2 (l % 4) and the next one of row l / 4
// of each matrix, or of column l / 4 of the transposed load.
inline void ldmatrix_x4(u32 (&x)[4], const void* row, bool transposed) {
    const auto rows = gather(row);
    for (int matrix = 0; matrix < 4; matrix++) {
        u16 pair[2];
        for (int i = 0; i < 2; i++) {
            const int along = lane() % 4 * 2 + i, across = lane() / 4;
            const int r = transposed ? along : across, c = transposed ? across : along;
            pair[i] = static_cast<const u16*>(rows[8 * matrix + r])[c];
        }
        x[matrix] = pair[0] | u32(pair[1]) << 16;
    }
}

// Every fragment is described by the lane and the number in it that hold an element. With g the
// row or column and t the place in it, as in the figures of the definition:
//   A[16][16]: row g or g + 8, numbers a0..a7: a0,a1 (g, 2t..), a2,a3 (g + 8, 2t..),
//              a4,a5 (g, 2t + 8..), a6,a7 (g + 8, 2t + 8..), lane 4 g + t
//   B[16][8]:  b0,b1 (2t.., g), b2,b3 (2t + 8.., g), lane 4 g + t
//   C[16][8]:  c0,c1 (g, 2t..), c2,c3 (g + 8, 2t..), lane 4 g + t
template <class T> void mma_m16n8k16(float* c, const u32 (&a)[4], const u32* b) {
    const auto* lanes = operands<4, 2>(a, b);
    const auto a_at = [&](int row, int k) {
        const int number = row / 8 * 2 + k / 8 * 4 + k % 2;
        return host::number<T>(lanes[row % 8 * 4 + k % 8 / 2].first[number / 2], number % 2);
    };
    const auto b_at = [&](int k, int col) {
        const int number = k / 8 * 2 + k % 2;
        return host::number<T>(lanes[col * 4 + k % 8 / 2].second[number / 2], number % 2);
    };
    for (int i = 0; i < 4; i++) {
        const int row = lane() / 4 + (i >= 2 ? 8 : 0), col = lane() % 4 * 2 + i % 2;
        for (int k = 0; k < 16; k++)
            c[i] += a_at(row, k) * b_at(k, col);
    }
}

// 64 lanes: element (i, k) of the first operand is number k % 4 of lane 16 (k / 4) + i, (k, j) of
// the second is number k % 4 of lane 16 (k / 4) + j, and (i, j) of the result is number i % 4 of
// lane 16 (i / 4) + j.
template <class T> void mfma_16x16x16(float (&c)[4], u64 first, u64 second) {
    const u32 firsts[] = {u32(first), u32(first >> 32)};
    const u32 seconds[] = {u32(second), u32(second >> 32)};
    const auto* lanes = operands<2, 2>(firsts, seconds);
    const auto first_at = [&](int i, int k) {
        return number<T>(lanes[16 * (k / 4) + i].first[k % 4 / 2], k % 2);
    };
    const auto second_at = [&](int k, int j) {
        return number<T>(lanes[16 * (k / 4) + j].second[k % 4 / 2], k % 2);
    };
    for (int x = 0; x < 4; x++) {
        const int i = lane() / 16 * 4 + x, j = lane() % 16;
        for (int k = 0; k < 16; k++)
            c[x] += first_at(i, k) * second_at(k, j);
    }
}

// 64 lanes: element (i, k) of the first operand is number k % 4 of lane 32 (k / 4) + i, (k, j) of the
// second is number k % 4 of lane 32 (k / 4) + j, and (i, j) of the result is number
// 4 (i / 8) + i % 4 of lane 32 (i / 4 % 2) + j.
template <class T> void mfma_32x32x8(float (&c)[16], u64 first, u64 second) {
    const u32 firsts[] = {u32(first), u32(first >> 32)};
    const u32 seconds[] = {u32(second), u32(second >> 32)};
    const auto* lanes = operands<2, 2>(firsts, seconds);
    const auto first_at = [&](int i, int k) {
        return number<T>(lanes[32 * (k / 4) + i].first[k % 4 / 2], k % 2);
    };
    const auto second_at = [&](int k, int j) {
        return number<T>(lanes[32 * (k / 4) + j].second[k % 4 / 2], k % 2);
    };
    for (int x = 0; x < 16; x++) {
        const int i = x / 4 * 8 + lane() / 32 * 4 + x % 4, j = lane() % 32;
        for (int k = 0; k < 8; k++)
            c[x] += first_at(i, k) * second_at(k, j);
    }
}

// gfx11, 32 lanes: (i, k) of the first operand is number k of lane i and of lane i + 16, which must
// be equal, likewise (k, j) of the second, and (i, j) of the result is number i / 2 of lane
// 16 (i % 2) + j.
template <class T>
void wmma_16x16x16_gfx11(float (&c)[8], const u32 (&first)[8], const u32 (&second)[8]) {
    const auto* lanes = operands<8, 8>(first, second);
    // What the halves hold differently shows as NaN.
    const auto at = [](const u32(&lower)[8], const u32(&upper)[8], int k) {
        const bool same = lower[k / 2] == upper[k / 2];
        return same ? number<T>(lower[k / 2], k % 2) : __builtin_nanf("");
    };
    const auto first_at = [&](int i, int k) {
        return at(lanes[i].first, lanes[i + 16].first, k);
    };
    const auto second_at = [&](int k, int j) {
        return at(lanes[j].second, lanes[j + 16].second, k);
    };
    for (int x = 0; x < 8; x++) {
        const int i = 2 * x + lane() / 16, j = lane() % 16;
        for (int k = 0; k < 16; k++)
            c[x] += first_at(i, k) * second_at(k, j);
    }
}

// gfx12, 32 lanes: (i, k) of the first operand is number k % 8 of lane 16 (k / 8) + i, likewise
// (k, j) of the second, and (i, j) of the result is number i % 8 of lane 16 (i / 8) + j.
template <class T>
void wmma_16x16x16_gfx12(float (&c)[8], const u32 (&first)[4], const u32 (&second)[4]) {
    const auto* lanes = operands<4, 4>(first, second);
    const auto first_at = [&](int i, int k) {
        return number<T>(lanes[16 * (k / 8) + i].first[k % 8 / 2], k % 2);
    };
    const auto second_at = [&](int k, int j) {
        return number<T>(lanes[16 * (k / 8) + j].second[k % 8 / 2], k % 2);
    };
    for (int x = 0; x < 8; x++) {
        const int i = lane() / 16 * 8 + x, j = lane() % 16;
        for (int k = 0; k < 16; k++)
            c[x] += first_at(i, k) * second_at(k, j);
    }
}

} // namespace port::host
