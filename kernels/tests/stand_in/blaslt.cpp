// A stand-in of cuBLASLt (`libcublasLt.so.12`) and, with STAND_IN_HIP, of hipBLASLt
// (`libhipblaslt.so.0`): column-major GEMMs in f32, one number at a time, without transposed
// operands, as work of the stream that the runtime's stand-in has made.
#include "device.h"
#include "number.h"

#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <string>

using namespace stand_in;

#ifdef STAND_IN_HIP
#define NAME(function) hipblasLt##function
#define RUNTIME "libamdhip64.so.6"
namespace {
constexpr int COMPUTE_32F = 2;
constexpr u32 EPILOGUE = 2, BIAS_POINTER = 3, BIAS_TYPE = 4;
constexpr size_t ALGORITHM_BYTES = 24;
#else
#define NAME(function) cublasLt##function
#define RUNTIME "libcuda.so.1"
namespace {
constexpr int COMPUTE_32F = 68;
constexpr u32 EPILOGUE = 7, BIAS_POINTER = 8, BIAS_TYPE = 26;
constexpr size_t ALGORITHM_BYTES = 64;
#endif

constexpr int STATUS_NOT_SUPPORTED = 15;
constexpr int R_32F = 0, R_16F = 2, R_16BF = 14;

struct Description {
    int compute;
    u32 epilogue = 1;
    const void* bias = nullptr;
    int bias_type = 0;
};

struct Layout {
    int type;
    u64 rows, cols;
    i64 stride;
};

struct Preference {
    u64 workspace = 0;
};

float read(const void* at, u64 index, int type) {
    if (type == R_16F) return port::to_float(static_cast<const port::f16*>(at)[index]);
    if (type == R_16BF) return port::to_float(static_cast<const port::bf16*>(at)[index]);
    return static_cast<const float*>(at)[index];
}

void write(void* at, u64 index, int type, float x) {
    if (type == R_16F)
        static_cast<port::f16*>(at)[index] = port::from_float<port::f16>(x);
    else if (type == R_16BF)
        static_cast<port::bf16*>(at)[index] = port::from_float<port::bf16>(x);
    else
        static_cast<float*>(at)[index] = x;
}

struct Gemm {
    Description description;
    Layout a, b, d;
    const void *first, *second;
    void* result;
};

int run(void* data) {
    const Gemm& gemm = *static_cast<const Gemm*>(data);
    const auto& [description, a, b, d, first, second, result] = gemm;
    for (u64 col = 0; col < d.cols; col++) {
        for (u64 row = 0; row < d.rows; row++) {
            float sum = 0;
            for (u64 k = 0; k < a.cols; k++)
                sum += read(first, row + k * u64(a.stride), a.type) *
                       read(second, k + col * u64(b.stride), b.type);
            if (description.epilogue & 4) sum += read(description.bias, row, description.bias_type);
            if (description.epilogue & 2) sum = std::fmax(sum, 0.0f);
            // The approximation, as in the libraries.
            if (description.epilogue & 32)
                sum *= 0.5f * (1 + std::tanh(0.7978845608f * (sum + 0.044715f * sum * sum * sum)));
            write(result, row + col * u64(d.stride), d.type, sum);
        }
    }
    return SUCCESS;
}

void drop(void* data) { delete static_cast<Gemm*>(data); }

using Submit = int (*)(Stream*, int (*)(void*), void*, void (*)(void*));

// The function of the runtime in this library's folder.
Submit runtime() {
    Dl_info info;
    if (!dladdr(reinterpret_cast<void*>(&run), &info)) return nullptr;
    std::string path = info.dli_fname;
    path = path.substr(0, path.rfind('/') + 1) + RUNTIME;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    return library ? reinterpret_cast<Submit>(dlsym(library, "stand_in_submit")) : nullptr;
}

} // namespace

#ifdef STAND_IN_HIP
STAND_IN_EXPORT int hipblasLtGetVersion(void*, int* version) {
    STAND_IN_FUNCTION(hipblasLtGetVersion);
    *version = 700;
    return SUCCESS;
}
#else
STAND_IN_EXPORT size_t cublasLtGetVersion() { return 120803; }
#endif

STAND_IN_EXPORT int NAME(Create)(void** handle) {
    STAND_IN_FUNCTION(blasltCreate);
    *handle = new int(0);
    return SUCCESS;
}

STAND_IN_EXPORT int NAME(Destroy)(void* handle) {
    delete static_cast<int*>(handle);
    return SUCCESS;
}

STAND_IN_EXPORT int NAME(MatmulDescCreate)(Description** description, int compute, int scale) {
    if (compute != COMPUTE_32F || scale != R_32F) return INVALID_VALUE;
    *description = new Description{compute};
    return SUCCESS;
}

STAND_IN_EXPORT int NAME(MatmulDescDestroy)(Description* description) {
    delete description;
    return SUCCESS;
}

STAND_IN_EXPORT int NAME(MatmulDescSetAttribute)(Description* description, u32 attribute,
                                                 const void* value, size_t bytes) {
    if (attribute == EPILOGUE && bytes == sizeof(description->epilogue))
        memcpy(&description->epilogue, value, bytes);
    else if (attribute == BIAS_POINTER && bytes == sizeof(description->bias))
        memcpy(&description->bias, value, bytes);
    else if (attribute == BIAS_TYPE && bytes == sizeof(description->bias_type))
        memcpy(&description->bias_type, value, bytes);
    else
        return INVALID_VALUE;
    return SUCCESS;
}

STAND_IN_EXPORT int NAME(MatrixLayoutCreate)(Layout** layout, int type, u64 rows, u64 cols,
                                             i64 stride) {
    *layout = new Layout{type, rows, cols, stride};
    return SUCCESS;
}

STAND_IN_EXPORT int NAME(MatrixLayoutDestroy)(Layout* layout) {
    delete layout;
    return SUCCESS;
}

STAND_IN_EXPORT int NAME(MatmulPreferenceCreate)(Preference** preference) {
    *preference = new Preference;
    return SUCCESS;
}

STAND_IN_EXPORT int NAME(MatmulPreferenceDestroy)(Preference* preference) {
    delete preference;
    return SUCCESS;
}

STAND_IN_EXPORT int NAME(MatmulPreferenceSetAttribute)(Preference* preference, u32 attribute,
                                                       const void* value, size_t bytes) {
    constexpr u32 MAX_WORKSPACE_BYTES = 1;
    if (attribute != MAX_WORKSPACE_BYTES || bytes != sizeof(preference->workspace))
        return INVALID_VALUE;
    memcpy(&preference->workspace, value, bytes);
    return SUCCESS;
}

// As in the libraries, only what can be multiplied has an algorithm.
STAND_IN_EXPORT int NAME(MatmulAlgoGetHeuristic)(void*, Description* description, Layout* a,
                                                 Layout* b, Layout*, Layout* d, Preference*,
                                                 int wanted, u8* results, int* count) {
    STAND_IN_FUNCTION(blasltHeuristic);
    *count = 0;
    bool fits = a->cols == b->rows && a->rows == d->rows && b->cols == d->cols && wanted > 0;
    bool strides = u64(a->stride) >= a->rows && u64(b->stride) >= b->rows;
    if (!fits || !strides) return STATUS_NOT_SUPPORTED;
    if (description->epilogue & 4 && description->bias == nullptr) return STATUS_NOT_SUPPORTED;
    memset(results, 0x5a, ALGORITHM_BYTES);
    *count = 1;
    return SUCCESS;
}

STAND_IN_EXPORT int NAME(Matmul)(void*, Description* description, const float* alpha,
                                 const void* first, Layout* a, const void* second, Layout* b,
                                 const float* beta, const void*, Layout*, void* result, Layout* d,
                                 const u8* algorithm, void*, size_t, Stream* stream) {
    STAND_IN_FUNCTION(blasltMatmul);
    static Submit submit = runtime();
    // Only the algorithm that this library gave.
    for (size_t i = 0; i < ALGORITHM_BYTES; i++)
        if (algorithm[i] != 0x5a) return INVALID_VALUE;
    if (!submit || *alpha != 1 || *beta != 0) return INVALID_VALUE;
    auto* gemm = new Gemm{*description, *a, *b, *d, first, second, result};
    return submit(stream, run, gemm, drop);
}
