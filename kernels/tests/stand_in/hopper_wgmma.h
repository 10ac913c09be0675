// `wgmma` of sm_90a on a host, for kernels/gpu/hopper/wgmma.h.
//
// After the PTX ISA's "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions". A
// wgmma is computed when it is waited for, and until then its registers hold NaN. What it reads
// in shared memory must be the same when it was started and when it is computed, since the
// hardware reads it at any time in between.
#pragma once

#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace port::hopper {
namespace emulated {

// The block's shared memory, as a matrix core reads it.
struct Shared {
    const u8* first;
    u32 bytes;

    template <u32 BYTES>
    void copy(u32 from, u16* numbers) const {
        const u32 at = swizzled(from) - SHARED_START;
        if (at > bytes || bytes - at < BYTES) host::fail("a wgmma reads outside of shared memory");
        memcpy(numbers, first + at, BYTES);
    }
};

struct Matrix {
    u32 start, leading, stride;
    int n_major;

    // The numbers along K in row or column `i`.
    void read(const Shared& from, int i, u16 (&numbers)[WGMMA_DEPTH]) const {
        if (n_major) {
            const u32 column = start + i / 64 * leading + i % 64 * 2;
            for (int k = 0; k < WGMMA_DEPTH; k++)
                from.copy<2>(column + k / 8 * stride + k % 8 * 128, &numbers[k]);
        } else {
            // The swizzle moves 16 bytes together.
            const u32 row = start + i / 8 * stride + i % 8 * 128;
            for (int k = 0; k < WGMMA_DEPTH; k += 8) from.copy<16>(row + k * 2, &numbers[k]);
        }
    }
};

inline Matrix matrix_of(u64 descriptor, int n_major) {
    const auto field = [&](int bit) { return static_cast<u32>(descriptor >> bit & 0x3FFF) << 4; };
    if ((descriptor >> 46 & 0xFFFF) != 0 || descriptor >> 62 != 1 ||
        (descriptor >> 14 & 3) != 0 || (descriptor >> 30 & 3) != 0)
        host::fail("not a descriptor with the 128-byte swizzle");
    return {field(0), field(16), field(32), n_major};
}

struct Numbers {
    u16 k[WGMMA_DEPTH];

    bool operator!=(const Numbers& other) const { return memcmp(k, other.k, sizeof(k)) != 0; }
};

// What a lane multiplies: its two rows of A, and its columns of B.
struct Operands {
    Numbers a[2];
    std::vector<Numbers> b;
};

struct Wgmma {
    float* c;
    int size;
    bool accumulate;
    Operands operands;
    Matrix from_a, from_b;
    bool a_in_registers;
    const u32* registers; // where they are, and what they held
    u32 held[4];
    void (*multiply)(const Operands&, float* c);

    void read(Operands& to) const {
        const Shared from = {shared(), host::self().shared_bytes};
        for (int half = 0; half < 2 && !a_in_registers; half++)
            from_a.read(from, wgmma_row(2 * half), to.a[half].k);
        to.b.resize(size / 2);
        const int first = wgmma_col(0);
        for (int column = 0; column < size / 2; column++)
            from_b.read(from, first + column / 2 * 8 + column % 2, to.b[column].k);
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

inline void compute(const Wgmma& operation, Pending& pending) {
    static thread_local Operands now;
    operation.read(now);
    const Operands& then = operation.operands;
    bool differs = !operation.a_in_registers && (now.a[0] != then.a[0] || now.a[1] != then.a[1]);
    for (int column = 0; column < operation.size / 2; column++)
        differs |= now.b[column] != then.b[column];
    if (differs) host::fail("what a wgmma reads has changed while it was under way");
    if (operation.a_in_registers && memcmp(operation.registers, operation.held, 16) != 0)
        host::fail("registers of a wgmma have changed while it was under way");
    Flying& flying = pending.flying[operation.c];
    if (!operation.accumulate) flying.c.assign(operation.size, 0.0f);
    operation.multiply(then, flying.c.data());
    if (--flying.started == 0) {
        memcpy(operation.c, flying.c.data(), operation.size * sizeof(float));
        pending.flying.erase(operation.c);
    }
}

template <typename T>
void multiply(const Operands& operands, float* c) {
    float rows[2][WGMMA_DEPTH];
    for (int half = 0; half < 2; half++)
        for (int k = 0; k < WGMMA_DEPTH; k++) rows[half][k] = to_float(T{operands.a[half].k[k]});
    for (const Numbers& numbers : operands.b) {
        const int column = static_cast<int>(&numbers - operands.b.data());
        float factors[WGMMA_DEPTH];
        for (int k = 0; k < WGMMA_DEPTH; k++) factors[k] = to_float(T{numbers.k[k]});
        for (int half = 0; half < 2; half++) {
            float& sum = c[column / 2 * 4 + half * 2 + column % 2];
            for (int k = 0; k < WGMMA_DEPTH; k++) sum += rows[half][k] * factors[k];
        }
    }
}

template <typename T, int SIZE>
void start(float (&c)[SIZE], Wgmma operation, int accumulate) {
    Pending& pending = mine();
    if (!pending.fenced) host::fail("a wgmma without a fence before it");
    operation.c = c;
    operation.size = SIZE;
    operation.accumulate = accumulate != 0;
    operation.multiply = multiply<T>;
    operation.read(operation.operands);
    Flying& flying = pending.flying[c];
    if (flying.started++ == 0) {
        flying.c.assign(c, c + SIZE);
        for (float& x : c) x = std::numeric_limits<float>::quiet_NaN();
    }
    pending.open.push_back(std::move(operation));
}

} // namespace emulated

inline void wgmma_fence(PORT_PLACE) {
    sync_warp(file, line);
    emulated::mine().fenced = true;
}

inline void wgmma_commit(PORT_PLACE) {
    sync_warp(file, line);
    emulated::Pending& pending = emulated::mine();
    pending.groups.push_back(std::move(pending.open));
    pending.open.clear();
    pending.fenced = false;
}

template <int PENDING>
void wgmma_wait(PORT_PLACE) {
    sync_warp(file, line);
    emulated::Pending& pending = emulated::mine();
    std::vector<std::vector<emulated::Wgmma>>& groups = pending.groups;
    while (groups.size() > PENDING) {
        for (const emulated::Wgmma& operation : groups.front())
            emulated::compute(operation, pending);
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
    emulated::start<T>(c, std::move(operation), accumulate);
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
            operation.operands.a[half].k[k] = static_cast<u16>(pair >> k % 2 * 16);
        }
    operation.from_b = emulated::matrix_of(b, N_MAJOR);
    emulated::start<T>(c, std::move(operation), accumulate);
}

} // namespace port::hopper
