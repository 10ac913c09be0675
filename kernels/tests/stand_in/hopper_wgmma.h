// `wgmma` of sm_90a on a host, for kernels/gpu/hopper/wgmma.h.
//
// After the PTX ISA's "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions". A
// wgmma is computed when it is waited for, and until then its registers hold NaN. What it reads
// in shared memory must be the same when it was started and when it is computed, since the
// hardware reads it at any time in between.
#pragma once

#include <limits>
#include <map>
#include <vector>

namespace port::hopper {
namespace emulated {

struct Matrix {
    u32 start, leading, stride;
    int n_major;

    // K and M, or K and N.
    u16 at(int k, int i) const {
        const u32 offset = n_major ? i / 64 * leading + k / 8 * stride + k % 8 * 128 + i % 64 * 2
                                   : i / 8 * stride + i % 8 * 128 + k * 2;
        const u32 address = swizzled(start + offset);
        if (address < SHARED_START || address + 2 > SHARED_START + host::self().shared_bytes)
            host::fail("a wgmma reads outside of shared memory");
        u16 number;
        memcpy(&number, in_shared(address), 2);
        return number;
    }
};

inline Matrix matrix_of(u64 descriptor, int n_major) {
    const auto field = [&](int bit) { return static_cast<u32>(descriptor >> bit & 0x3FFF) << 4; };
    if ((descriptor >> 46 & 0xFFFF) != 0 || descriptor >> 62 != 1 ||
        (descriptor >> 14 & 3) != 0 || (descriptor >> 30 & 3) != 0)
        host::fail("not a descriptor with the 128-byte swizzle");
    return {field(0), field(16), field(32), n_major};
}

struct Wgmma {
    float* c;
    int size;
    bool accumulate;
    std::vector<u16> a[2]; // this lane's two rows
    std::vector<u16> b;    // its columns
    Matrix from_a, from_b;
    bool a_in_registers;
    const u32* registers; // where they are, and what they held
    u32 held[4];
    float (*to_float)(u16);

    void read(std::vector<u16> (&rows)[2], std::vector<u16>& columns) const {
        for (int half = 0; half < 2 && !a_in_registers; half++)
            for (int k = 0; k < WGMMA_DEPTH; k++)
                rows[half].push_back(from_a.at(k, wgmma_row(2 * half)));
        for (int i = 0; i < size; i++)
            if (i / 2 % 2 == 0)
                for (int k = 0; k < WGMMA_DEPTH; k++)
                    columns.push_back(from_b.at(k, wgmma_col(i)));
    }
};

struct Flying {
    std::vector<float> c;
    int started = 0;
};

// What one thread has started.
struct Pending {
    u64 run = 0;
    std::vector<Wgmma> open;
    std::vector<std::vector<Wgmma>> groups;
    std::map<float*, Flying> flying;
    bool fenced = false;
};

inline Pending& mine() {
    static thread_local std::map<const host::Fiber*, Pending> all;
    Pending& pending = all[&host::self()];
    const u64 run = host::self().cluster->run;
    if (pending.run != run) {
        pending = {};
        pending.run = run;
    }
    return pending;
}

inline void compute(const Wgmma& operation) {
    Pending& pending = mine();
    std::vector<u16> rows[2], columns;
    operation.read(rows, columns);
    const bool same_a =
        operation.a_in_registers || (rows[0] == operation.a[0] && rows[1] == operation.a[1]);
    if (!same_a || columns != operation.b)
        host::fail("what a wgmma reads has changed while it was under way");
    if (operation.a_in_registers && memcmp(operation.registers, operation.held, 16) != 0)
        host::fail("registers of a wgmma have changed while it was under way");
    Flying& flying = pending.flying[operation.c];
    for (int i = 0; i < operation.size; i++) {
        const u16* row = operation.a[i / 2 % 2].data();
        const u16* col = operation.b.data() + (i / 4 * 2 + i % 2) * WGMMA_DEPTH;
        float sum = operation.accumulate ? flying.c[i] : 0.0f;
        for (int k = 0; k < WGMMA_DEPTH; k++)
            sum += operation.to_float(row[k]) * operation.to_float(col[k]);
        flying.c[i] = sum;
    }
    if (--flying.started == 0) {
        memcpy(operation.c, flying.c.data(), operation.size * sizeof(float));
        pending.flying.erase(operation.c);
    }
}

template <typename T>
float number_of(u16 bits) {
    return to_float(T{bits});
}

template <typename T, int SIZE>
void start(float (&c)[SIZE], Wgmma operation, int accumulate) {
    Pending& pending = mine();
    if (!pending.fenced) host::fail("a wgmma without a fence before it");
    operation.c = c;
    operation.size = SIZE;
    operation.accumulate = accumulate != 0;
    operation.to_float = number_of<T>;
    operation.read(operation.a, operation.b);
    Flying& flying = pending.flying[c];
    if (flying.started++ == 0) {
        flying.c.assign(c, c + SIZE);
        for (float& x : c) x = std::numeric_limits<float>::quiet_NaN();
    }
    pending.open.push_back(operation);
}

} // namespace emulated

inline void wgmma_fence(PORT_PLACE) {
    sync_warp(file, line);
    emulated::mine().fenced = true;
}

inline void wgmma_commit(PORT_PLACE) {
    sync_warp(file, line);
    emulated::Pending& pending = emulated::mine();
    pending.groups.push_back(pending.open);
    pending.open.clear();
    pending.fenced = false;
}

template <int PENDING>
void wgmma_wait(PORT_PLACE) {
    sync_warp(file, line);
    std::vector<std::vector<emulated::Wgmma>>& groups = emulated::mine().groups;
    while (groups.size() > PENDING) {
        for (const emulated::Wgmma& operation : groups.front()) emulated::compute(operation);
        groups.erase(groups.begin());
    }
    // The wgmmas of a warp are done at once. Here each lane has its part of them, and none may go on
    // and say that shared memory is free while another still reads it.
    sync_warp(file, line);
}

template <int SIZE>
void wgmma_keep(float (&)[SIZE]) {}

template <typename T, int N_MAJOR, int SIZE>
void wgmma(float (&c)[SIZE], u64 a, u64 b, int accumulate, PORT_PLACE) {
    sync_warp(file, line);
    emulated::Wgmma operation{};
    operation.from_a = emulated::matrix_of(a, 0);
    operation.from_b = emulated::matrix_of(b, N_MAJOR);
    emulated::start<T>(c, operation, accumulate);
}

template <typename T, int N_MAJOR, int SIZE>
void wgmma(float (&c)[SIZE], const u32 (&a)[4], u64 b, int accumulate, PORT_PLACE) {
    struct Registers {
        u32 x[4];
    } registers;
    memcpy(registers.x, a, sizeof(registers));
    Registers all[WARP];
    host::gather(&registers, sizeof(registers), all, file, line);
    emulated::Wgmma operation{};
    operation.a_in_registers = true;
    operation.registers = a;
    memcpy(operation.held, a, sizeof(operation.held));
    // Row lane / 4 + 8 h of the warp's 16, and columns 2 (lane % 4) + 8 g, are in register
    // 2 g + h of that lane.
    for (int half = 0; half < 2; half++)
        for (int k = 0; k < WGMMA_DEPTH; k++) {
            const u32 pair = all[lane() / 4 * 4 + k % 8 / 2].x[k / 8 * 2 + half];
            operation.a[half].push_back(static_cast<u16>(pair >> k % 2 * 16));
        }
    operation.from_b = emulated::matrix_of(b, N_MAJOR);
    emulated::start<T>(c, operation, accumulate);
}

} // namespace port::hopper
