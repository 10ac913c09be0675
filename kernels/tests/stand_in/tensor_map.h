// What the stand-in's tensor maps hold: written where a driver would encode one for the device,
// read by the emulation of bulk copies.
//
// A map is three-dimensional, of 16-bit numbers, with the 128-byte swizzle and zeros outside.
#pragma once

#include "port.h"

namespace port::stand_in {

constexpr u64 MAP_MARK = 0x70616D726F736E65;

struct DecodedMap {
    bool valid;
    u64 address;
    i64 cols, rows, matrices;
    u32 box_cols, box_rows;
};

inline DecodedMap decode(const TensorMap& map) {
    const u64* w = map.words;
    return {w[0] == MAP_MARK,
            w[1],
            static_cast<i64>(w[2]),
            static_cast<i64>(w[3]),
            static_cast<i64>(w[4]),
            static_cast<u32>(w[5]),
            static_cast<u32>(w[6])};
}

// False for what `cuTensorMapEncodeTiled` refuses: an address not at 16 bytes, rows that are not
// multiples of 16 bytes, nothing or too much in a dimension or a box.
inline bool encode(TensorMap& map, u64 address, u64 cols, u64 rows, u64 matrices, u32 box_cols,
                   u32 box_rows) {
    const auto size_fits = [](u64 size) { return size >= 1 && size <= 1ull << 32; };
    const bool valid = address % 16 == 0 && cols * 2 % 16 == 0 && size_fits(cols) &&
                       size_fits(rows) && size_fits(matrices) && box_rows >= 1 &&
                       box_rows <= 256 && box_cols >= 1 && box_cols * 2 <= 128 &&
                       box_cols * 2 % 16 == 0 && cols * 2 < 1ull << 40 &&
                       rows * cols * 2 < 1ull << 40;
    map = {{valid ? MAP_MARK : 0, address, cols, rows, matrices, box_cols, box_rows}};
    return valid;
}

} // namespace port::stand_in
