// The numbers of tensors: f32, f16 and bf16, which are all computed on as f32.
#pragma once

#include "port.h"

namespace port {

// IEEE 754 binary16, and the upper half of an f32.
struct f16 {
    u16 bits;
};
struct bf16 {
    u16 bits;
};

PORT_DEVICE float to_float(float x) { return x; }
PORT_DEVICE float to_float(bf16 x) { return float_of_bits(static_cast<u32>(x.bits) << 16); }

// Rounding to nearest, ties to even; NaN stays NaN.
template <typename T> PORT_DEVICE T from_float(float x);
template <> PORT_DEVICE float from_float<float>(float x) { return x; }

PORT_DEVICE u16 bf16_bits(float x) {
    const u32 all = bits(x);
    const u32 rounded = all + 0x7fff + (all >> 16 & 1);
    // The carry of a NaN's bits could make an infinity, or a zero, of it. Both results are there
    // before the choice: a branch would cost lanes that run in step more than the addition.
    return static_cast<u16>((is_nan(x) ? all | 0x400000 : rounded) >> 16);
}

// Two numbers in a word, the first one in its lower half.
template <typename T> PORT_DEVICE u32 pack(float first, float second);
template <typename T> PORT_DEVICE void unpack(u32 pair, float& first, float& second);

#if defined(PORT_CUDA)
PORT_DEVICE float to_float(f16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
template <> PORT_DEVICE f16 from_float<f16>(float x) {
    f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
#elif defined(PORT_HIP)
PORT_DEVICE float to_float(f16 x) { return __builtin_bit_cast(_Float16, x.bits); }
template <> PORT_DEVICE f16 from_float<f16>(float x) {
    return {__builtin_bit_cast(u16, static_cast<_Float16>(x))};
}
#else
PORT_DEVICE float to_float(f16 x) {
    const u32 sign = static_cast<u32>(x.bits & 0x8000) << 16;
    const u32 exponent = x.bits >> 10 & 31, fraction = x.bits & 0x3ff;
    if (exponent == 31) return float_of_bits(sign | INFINITY_BITS | fraction << 13);
    if (exponent != 0) return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    const float smallest = float_of_bits(103u << 23); // 2^-24
    const float value = static_cast<float>(fraction) * smallest;
    return float_of_bits(sign | bits(value));
}
template <> PORT_DEVICE f16 from_float<f16>(float x) {
    const u16 sign = static_cast<u16>(bits(x) >> 16 & 0x8000);
    const u32 size = bits(x) & 0x7fffffff;
    u32 rounded;
    if (size > INFINITY_BITS) {
        rounded = 0x7e00;
    } else if (size >= bits(65536.0f)) {
        rounded = 0x7c00;
    } else if (size < bits(6.103515625e-5f)) { // 2^-14, the smallest that is normal
        // One half more, and what is left of the fraction are the bits of a denormal number.
        rounded = bits(float_of_bits(size) + 0.5f) - bits(0.5f);
    } else {
        const u32 rebiased = size - (112u << 23);
        rounded = (rebiased + 0xfff + (rebiased >> 13 & 1)) >> 13;
    }
    return {static_cast<u16>(sign | rounded)};
}
#endif

#if defined(PORT_CUDA) && __CUDA_ARCH__ >= 800
template <> PORT_DEVICE bf16 from_float<bf16>(float x) {
    bf16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
template <> PORT_DEVICE u32 pack<f16>(float first, float second) {
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}
template <> PORT_DEVICE u32 pack<bf16>(float first, float second) {
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}
#else
template <> PORT_DEVICE bf16 from_float<bf16>(float x) { return {bf16_bits(x)}; }
template <> PORT_DEVICE u32 pack<f16>(float first, float second) {
    const u32 upper = from_float<f16>(second).bits;
    return upper << 16 | from_float<f16>(first).bits;
}
template <> PORT_DEVICE u32 pack<bf16>(float first, float second) {
    return static_cast<u32>(bf16_bits(second)) << 16 | bf16_bits(first);
}
#endif

template <> PORT_DEVICE void unpack<f16>(u32 pair, float& first, float& second) {
    first = to_float(f16{static_cast<u16>(pair)});
    second = to_float(f16{static_cast<u16>(pair >> 16)});
}
template <> PORT_DEVICE void unpack<bf16>(u32 pair, float& first, float& second) {
    first = float_of_bits(pair << 16);
    second = float_of_bits(pair & 0xffff0000u);
}

// This many bytes as one memory access.
template <int BYTES> struct alignas(BYTES) Words {
    u32 x[BYTES / 4];
};

template <int BYTES> PORT_DEVICE Words<BYTES> load_words(const void* p) {
#if defined(PORT_CUDA)
    return *static_cast<const Words<BYTES>*>(p);
#else
    Words<BYTES> words;
    __builtin_memcpy(&words, __builtin_assume_aligned(p, BYTES), BYTES);
    return words;
#endif
}

template <int BYTES> PORT_DEVICE void store_words(void* p, const Words<BYTES>& words) {
#if defined(PORT_CUDA)
    *static_cast<Words<BYTES>*>(p) = words;
#else
    __builtin_memcpy(__builtin_assume_aligned(p, BYTES), &words, BYTES);
#endif
}

constexpr int smaller(int a, int b) { return a < b ? a : b; }

// How the numbers lie in words.
template <typename T> struct Packing {
    static constexpr int NUMBERS = 2;
    static PORT_DEVICE void read(u32 word, float* x) { unpack<T>(word, x[0], x[1]); }
    static PORT_DEVICE u32 write(const float* x) { return pack<T>(x[0], x[1]); }
};
template <> struct Packing<float> {
    static constexpr int NUMBERS = 1;
    static PORT_DEVICE void read(u32 word, float* x) { x[0] = float_of_bits(word); }
    static PORT_DEVICE u32 write(const float* x) { return bits(x[0]); }
};

// `V` numbers that lie side by side, 1, 2, 4 or 8, at a multiple of their size; in accesses of at
// most 16 bytes.
template <int V, typename T> PORT_DEVICE void load(const T* p, float (&x)[V]) {
    if constexpr (V == 1) {
        x[0] = to_float(*p);
    } else {
        constexpr int BYTES = smaller(V * static_cast<int>(sizeof(T)), 16);
        constexpr int NUMBERS = BYTES / static_cast<int>(sizeof(T));
#pragma unroll
        for (int i = 0; i < V; i += NUMBERS) {
            const Words<BYTES> words = load_words<BYTES>(p + i);
#pragma unroll
            for (int w = 0; w < BYTES / 4; ++w)
                Packing<T>::read(words.x[w], x + i + w * Packing<T>::NUMBERS);
        }
    }
}

template <int V, typename T> PORT_DEVICE void store(T* p, const float (&x)[V]) {
    if constexpr (V == 1) {
        *p = from_float<T>(x[0]);
    } else {
        constexpr int BYTES = smaller(V * static_cast<int>(sizeof(T)), 16);
        constexpr int NUMBERS = BYTES / static_cast<int>(sizeof(T));
#pragma unroll
        for (int i = 0; i < V; i += NUMBERS) {
            Words<BYTES> words;
#pragma unroll
            for (int w = 0; w < BYTES / 4; ++w)
                words.x[w] = Packing<T>::write(x + i + w * Packing<T>::NUMBERS);
            store_words<BYTES>(p + i, words);
        }
    }
}

} // namespace port
