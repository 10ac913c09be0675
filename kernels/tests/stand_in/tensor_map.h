// What a tensor map holds on a host: the address of the first number, how many matrices there are,
// their rows and columns, and the rows and columns of a box.
//
// As a driver would encode it for the device: three-dimensional, of 16-bit numbers, with the
// 128-byte swizzle and zeros outside.
#pragma once

namespace port::hopper::emulated {

struct Map {
    u64 address;
    i64 matrices, rows, cols;
    u32 box_rows, box_cols;
};

// Fails for what `cuTensorMapEncodeTiled` refuses.
inline Map decode(const TensorMap& map, PORT_PLACE) {
    const u64* w = map.words;
    const auto require = [&](bool holds, const char* what) {
        if (!holds) host::fail(what, file, line);
    };
    const auto size_fits = [](u64 size) { return size >= 1 && size <= 1ull << 32; };
    require(reinterpret_cast<u64>(&map) % 64 == 0, "a tensor map not at 64 bytes");
    require(w[0] != 0 && w[0] % 16 == 0, "a matrix not at 16 bytes");
    require(size_fits(w[1]) && size_fits(w[2]) && size_fits(w[3]), "a matrix of no such size");
    require(w[3] % 8 == 0, "rows that are not multiples of 16 bytes");
    require(w[2] * w[3] * 2 < 1ull << 40, "matrices too far apart");
    require(w[4] >= 1 && w[4] <= 256, "a box of no such height");
    require(w[5] == BOX_COLS, "a box of no such width");
    return {w[0],
            static_cast<i64>(w[1]),
            static_cast<i64>(w[2]),
            static_cast<i64>(w[3]),
            static_cast<u32>(w[4]),
            static_cast<u32>(w[5])};
}

} // namespace port::hopper::emulated
