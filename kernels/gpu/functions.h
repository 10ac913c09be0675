// Elementary functions on f32, good to a few units in the last place, the same on every device.
//
// Only the instructions at the bottom of them differ. NaN goes through. Results that are smaller
// than the smallest normal number may be zero.
#pragma once

namespace port {

#if defined(PORT_CUDA)
PORT_DEVICE u32 bits(float x) { return __float_as_uint(x); }
PORT_DEVICE float float_of_bits(u32 x) { return __uint_as_float(x); }
#else
PORT_DEVICE u32 bits(float x) { return __builtin_bit_cast(u32, x); }
PORT_DEVICE float float_of_bits(u32 x) { return __builtin_bit_cast(float, x); }
#endif

constexpr u32 INFINITY_BITS = 0x7f800000u;
PORT_DEVICE float infinity() { return float_of_bits(INFINITY_BITS); }
PORT_DEVICE bool is_nan(float x) { return x != x; }

// What is an instruction everywhere. `max_number` leaves out a NaN where the other is a number, as
// the maximum of a softmax does.
#if defined(PORT_CUDA)
PORT_DEVICE float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
PORT_DEVICE float exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
PORT_DEVICE float recip(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
PORT_DEVICE float rsqrt(float x) {
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
PORT_DEVICE float max_number(float a, float b) {
    float y;
    asm("max.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}
#elif defined(PORT_HIP)
PORT_DEVICE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
PORT_DEVICE float exp2(float x) { return __builtin_amdgcn_exp2f(x); }
PORT_DEVICE float recip(float x) { return __builtin_amdgcn_rcpf(x); }
PORT_DEVICE float rsqrt(float x) { return __builtin_amdgcn_rsqf(x); }
PORT_DEVICE float max_number(float a, float b) { return __builtin_fmaxf(a, b); }
#else
PORT_DEVICE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
PORT_DEVICE float exp2(float x) { return __builtin_exp2f(x); }
PORT_DEVICE float recip(float x) { return 1.0f / x; }
PORT_DEVICE float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
PORT_DEVICE float max_number(float a, float b) { return __builtin_fmaxf(a, b); }
#endif

// The larger and the smaller of two; NaN where either is NaN.
#if defined(PORT_CUDA) && __CUDA_ARCH__ >= 800
PORT_DEVICE float max(float a, float b) {
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}
PORT_DEVICE float min(float a, float b) {
    float y;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}
#else
PORT_DEVICE float max(float a, float b) { return a > b || is_nan(a) ? a : b; }
PORT_DEVICE float min(float a, float b) { return a < b || is_nan(a) ? a : b; }
#endif

PORT_DEVICE float divide(float a, float b) { return a * recip(b); }

// e to the power of `x`: a power of two, corrected for what was rounded off its exponent.
PORT_DEVICE float exp(float x) {
    // log2 e, and the part of it that f32 has no room for.
    const float high = 1.44269502e+0f, low = 1.92596299e-8f;
    const float ln_2 = 6.93147182e-1f;
    // Beyond these the result is zero or infinite; an infinite `x` would leave a NaN as the rest.
    x = max(min(x, 128.0f), -128.0f);
    const float exponent = x * high;
    const float rest = fma(x, low, fma(x, high, -exponent));
    return exp2(exponent) * fma(rest, ln_2, 1.0f);
}

// `x P(x^2) / Q(x^2)` of `x` between the limits, highest powers first.
template <int N, int M>
PORT_DEVICE float odd_rational(float x, float limit, const float (&p)[N], const float (&q)[M]) {
    x = max(min(x, limit), -limit);
    const float square = x * x;
    float over = p[0], under = q[0];
#pragma unroll
    for (int i = 1; i < N; ++i) over = fma(over, square, p[i]);
#pragma unroll
    for (int i = 1; i < M; ++i) under = fma(under, square, q[i]);
    return divide(x * over, under);
}

// Hyperbolic tangent: the rational approximation that Eigen documents. It is 1 at the limit.
PORT_DEVICE float tanh(float x) {
    constexpr float p[] = {-2.7607685e-16f, 2.000188e-13f, -8.604672e-11f, 5.1222973e-8f,
                           1.48572235e-5f,  6.3726194e-4f, 4.8935246e-3f};
    constexpr float q[] = {1.1982584e-6f, 1.1853471e-4f, 2.2684346e-3f, 4.893525e-3f};
    return odd_rational(x, 7.905311f, p, q);
}

// The error function, likewise.
PORT_DEVICE float erf(float x) {
    constexpr float p[] = {-2.7261424e-10f, 2.7706815e-8f, -2.101024e-6f,  -5.6925065e-5f,
                           -7.3499064e-4f,  -2.9546e-3f,   -1.6096034e-2f};
    constexpr float q[] = {-1.4566072e-5f, -2.1337406e-4f, -1.682827e-3f, -7.373329e-3f,
                           -1.426474e-2f};
    return odd_rational(x, 4.0f, p, q);
}

// Zero where `chance < limit`, else `x`.
PORT_DEVICE float zero_where_less(float x, float chance, float limit) {
    return chance < limit ? 0.0f : x;
}

// A uniform number in [0, 1) with 23 bits for an index; the constants are those of the hash that
// the reference uses, and come from there.
PORT_DEVICE float uniform(u32 index, u32 seed, u32 mix_1, u32 mix_2) {
    u32 hash = index ^ seed;
    hash = (hash ^ (hash >> 16)) * mix_1;
    hash = (hash ^ (hash >> 15)) * mix_2;
    hash ^= hash >> 16;
    return float_of_bits((hash >> 9) | 0x3f800000u) - 1.0f;
}

// Division of sizes, in 32 bits where that is enough: GPUs have no instruction for it, and 64 bits
// take several times as long.
PORT_DEVICE i64 quotient(i64 a, i64 b) {
    const u64 either = static_cast<u64>(a) | static_cast<u64>(b);
    if (either >> 32 == 0) return static_cast<u32>(a) / static_cast<u32>(b);
    return static_cast<i64>(static_cast<u64>(a) / static_cast<u64>(b));
}

} // namespace port
