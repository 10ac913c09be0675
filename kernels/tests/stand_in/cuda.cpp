// A stand-in of CUDA's driver: the functions that are used, with the types and numbers of CUDA's
// documentation. Built as `libcuda.so.1`.
#include "device.h"

#include <cstdio>

using namespace stand_in;

namespace {

bool initialised = false;
thread_local bool current = false;

const Kind& kind(int device) { return *settings().devices[size_t(device)]; }
bool exists(int device) { return device >= 0 && size_t(device) < settings().devices.size(); }
Device& device() { return Device::the(); }

// CUdevice_attribute
int attribute(int which, const Kind& kind) {
    switch (which) {
    case 8: return kind.shared_bytes_default; // MAX_SHARED_MEMORY_PER_BLOCK
    case 10: return kind.warp;                // WARP_SIZE
    case 13: return CLOCK_KHZ;                // CLOCK_RATE
    case 16: return PROCESSORS;               // MULTIPROCESSOR_COUNT
    case 38: return L2_BYTES;                 // L2_CACHE_SIZE
    case 39: return THREADS_OF_A_PROCESSOR;   // MAX_THREADS_PER_MULTIPROCESSOR
    case 75: return kind.major;               // COMPUTE_CAPABILITY_MAJOR
    case 76: return kind.minor;               // COMPUTE_CAPABILITY_MINOR
    case 95: return 1;                        // COOPERATIVE_LAUNCH
    case 97: return kind.shared_bytes;        // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    default: return -1;
    }
}

} // namespace

#define CUDA_FUNCTION(name)                                                                        \
    STAND_IN_FUNCTION(name);                                                                       \
    if (!initialised) return NOT_INITIALIZED
#define IN_CONTEXT(name)                                                                           \
    CUDA_FUNCTION(name);                                                                           \
    if (!current) return INVALID_CONTEXT

STAND_IN_EXPORT int cuInit(unsigned) {
    STAND_IN_FUNCTION(cuInit);
    if (settings().devices.empty())
        return NO_DEVICE;
    initialised = true;
    return SUCCESS;
}

STAND_IN_EXPORT int cuDriverGetVersion(int* version) {
    STAND_IN_FUNCTION(cuDriverGetVersion);
    *version = settings().version;
    return SUCCESS;
}

STAND_IN_EXPORT int cuGetErrorName(int error, const char** text) {
    *text = result_name(error);
    return *text != nullptr ? SUCCESS : INVALID_VALUE;
}

STAND_IN_EXPORT int cuGetErrorString(int error, const char** text) {
    *text = result_name(error) != nullptr ? result_meaning(error) : nullptr;
    return *text != nullptr ? SUCCESS : INVALID_VALUE;
}

STAND_IN_EXPORT int cuDeviceGetCount(int* count) {
    CUDA_FUNCTION(cuDeviceGetCount);
    *count = int(settings().devices.size());
    return SUCCESS;
}

STAND_IN_EXPORT int cuDeviceGet(int* handle, int ordinal) {
    CUDA_FUNCTION(cuDeviceGet);
    if (!exists(ordinal))
        return INVALID_DEVICE;
    *handle = ordinal;
    return SUCCESS;
}

STAND_IN_EXPORT int cuDeviceGetName(char* name, int length, int which) {
    CUDA_FUNCTION(cuDeviceGetName);
    snprintf(name, size_t(length), "Stand-in for %s (no GPU)", kind(which).name);
    return SUCCESS;
}

STAND_IN_EXPORT int cuDeviceGetAttribute(int* value, unsigned which, int of) {
    CUDA_FUNCTION(cuDeviceGetAttribute);
    *value = attribute(int(which), kind(of));
    return *value < 0 ? INVALID_VALUE : SUCCESS;
}

STAND_IN_EXPORT int cuDeviceGetPCIBusId(char* id, int length, int which) {
    CUDA_FUNCTION(cuDeviceGetPCIBusId);
    snprintf(id, size_t(length), "0000:%02X:00.0", which + 1);
    return SUCCESS;
}

STAND_IN_EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int) {
    CUDA_FUNCTION(cuDeviceTotalMem_v2);
    *bytes = settings().memory;
    return SUCCESS;
}

STAND_IN_EXPORT int cuDevicePrimaryCtxRetain(void** context, int which) {
    CUDA_FUNCTION(cuDevicePrimaryCtxRetain);
    if (!exists(which))
        return INVALID_DEVICE;
    *context = &device();
    device().counts.contexts++;
    return SUCCESS;
}

STAND_IN_EXPORT int cuDevicePrimaryCtxRelease_v2(int) {
    CUDA_FUNCTION(cuDevicePrimaryCtxRelease_v2);
    device().counts.contexts--;
    return SUCCESS;
}

STAND_IN_EXPORT int cuCtxSetCurrent(void* context) {
    CUDA_FUNCTION(cuCtxSetCurrent);
    current = context != nullptr && device().counts.contexts > 0;
    return context == nullptr || current ? SUCCESS : INVALID_CONTEXT;
}

STAND_IN_EXPORT int cuStreamCreate(Stream** stream, unsigned) {
    IN_CONTEXT(cuStreamCreate);
    return device().create_stream(stream);
}

STAND_IN_EXPORT int cuStreamDestroy_v2(Stream* stream) {
    IN_CONTEXT(cuStreamDestroy_v2);
    return device().destroy_stream(stream);
}

STAND_IN_EXPORT int cuStreamSynchronize(Stream* stream) {
    CUDA_FUNCTION(cuStreamSynchronize);
    return device().synchronize(stream);
}

STAND_IN_EXPORT int cuStreamBeginCapture_v2(Stream* stream, unsigned) {
    CUDA_FUNCTION(cuStreamBeginCapture_v2);
    return device().begin_capture(stream);
}

STAND_IN_EXPORT int cuStreamEndCapture(Stream* stream, Graph** graph) {
    CUDA_FUNCTION(cuStreamEndCapture);
    return device().end_capture(stream, graph);
}

STAND_IN_EXPORT int cuGraphInstantiateWithFlags(Graph** executable, Graph* graph,
                                                unsigned long long) {
    CUDA_FUNCTION(cuGraphInstantiateWithFlags);
    return device().instantiate(executable, graph);
}

STAND_IN_EXPORT int cuGraphUpload(Graph*, Stream*) {
    CUDA_FUNCTION(cuGraphUpload);
    return SUCCESS;
}

STAND_IN_EXPORT int cuGraphLaunch(Graph* executable, Stream* stream) {
    CUDA_FUNCTION(cuGraphLaunch);
    return device().launch(executable, stream);
}

STAND_IN_EXPORT int cuGraphDestroy(Graph* graph) {
    CUDA_FUNCTION(cuGraphDestroy);
    return device().destroy(graph);
}

STAND_IN_EXPORT int cuGraphExecDestroy(Graph* executable) {
    CUDA_FUNCTION(cuGraphExecDestroy);
    return device().destroy(executable);
}

STAND_IN_EXPORT int cuMemAlloc_v2(u64* address, size_t bytes) {
    IN_CONTEXT(cuMemAlloc_v2);
    return device().allocate(address, bytes);
}

STAND_IN_EXPORT int cuMemFree_v2(u64 address) {
    IN_CONTEXT(cuMemFree_v2);
    return device().free(address);
}

STAND_IN_EXPORT int cuMemGetInfo_v2(size_t* free, size_t* total) {
    IN_CONTEXT(cuMemGetInfo_v2);
    u64 left = 0, all = 0;
    device().memory(&left, &all);
    *free = left;
    *total = all;
    return SUCCESS;
}

STAND_IN_EXPORT int cuMemcpyHtoDAsync_v2(u64 to, const void* from, size_t bytes, Stream* stream) {
    CUDA_FUNCTION(cuMemcpyHtoDAsync_v2);
    return device().copy(reinterpret_cast<void*>(to), from, bytes, to, stream);
}

STAND_IN_EXPORT int cuMemcpyDtoHAsync_v2(void* to, u64 from, size_t bytes, Stream* stream) {
    CUDA_FUNCTION(cuMemcpyDtoHAsync_v2);
    return device().copy(to, reinterpret_cast<const void*>(from), bytes, from, stream);
}

STAND_IN_EXPORT int cuMemsetD32Async(u64 to, unsigned pattern, size_t words, Stream* stream) {
    CUDA_FUNCTION(cuMemsetD32Async);
    return device().fill(to, pattern, words, stream);
}

STAND_IN_EXPORT int cuModuleLoadData(Module** module, const void* image) {
    IN_CONTEXT(cuModuleLoadData);
    return device().load(module, image);
}

STAND_IN_EXPORT int cuModuleUnload(Module* module) {
    IN_CONTEXT(cuModuleUnload);
    return device().unload(module);
}

STAND_IN_EXPORT int cuModuleGetFunction(Function** function, Module* module, const char* name) {
    CUDA_FUNCTION(cuModuleGetFunction);
    return device().function(function, module, name);
}

// CUfunction_attribute
STAND_IN_EXPORT int cuFuncGetAttribute(int* value, unsigned which, Function* function) {
    CUDA_FUNCTION(cuFuncGetAttribute);
    switch (which) {
    case 0: *value = int(function->facts->threads); return SUCCESS; // MAX_THREADS_PER_BLOCK
    case 1: *value = 0; return SUCCESS;                             // SHARED_SIZE_BYTES
    case 3: *value = 0; return SUCCESS;                             // LOCAL_SIZE_BYTES
    case 4: *value = REGISTERS; return SUCCESS;                     // NUM_REGS
    case 8: *value = function->shared_bytes; return SUCCESS; // MAX_DYNAMIC_SHARED_SIZE_BYTES
    default: return INVALID_VALUE;
    }
}

STAND_IN_EXPORT int cuFuncSetAttribute(Function* function, unsigned which, int value) {
    CUDA_FUNCTION(cuFuncSetAttribute);
    return which == 8 ? device().allow_shared(function, value) : int(INVALID_VALUE);
}

STAND_IN_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function* function,
                                                                int threads, size_t shared_bytes) {
    CUDA_FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    return device().resident_blocks(blocks, function, threads, shared_bytes);
}

STAND_IN_EXPORT int cuLaunchKernel(Function* function, unsigned x, unsigned y, unsigned z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned shared_bytes, Stream* stream, void** parameters,
                                   void** extra) {
    CUDA_FUNCTION(cuLaunchKernel);
    if (y != 1 || z != 1 || block_y != 1 || block_z != 1 || extra != nullptr)
        return INVALID_VALUE;
    return device().launch(function, x, block_x, shared_bytes, false, parameters[0], stream);
}

STAND_IN_EXPORT int cuLaunchCooperativeKernel(Function* function, unsigned x, unsigned y,
                                              unsigned z, unsigned block_x, unsigned block_y,
                                              unsigned block_z, unsigned shared_bytes,
                                              Stream* stream, void** parameters) {
    CUDA_FUNCTION(cuLaunchCooperativeKernel);
    if (y != 1 || z != 1 || block_y != 1 || block_z != 1)
        return INVALID_VALUE;
    return device().launch(function, x, block_x, shared_bytes, true, parameters[0], stream);
}

STAND_IN_EXPORT int cuEventCreate(Event** event, unsigned) {
    IN_CONTEXT(cuEventCreate);
    return device().create_event(event);
}

STAND_IN_EXPORT int cuEventDestroy_v2(Event* event) {
    CUDA_FUNCTION(cuEventDestroy_v2);
    return device().destroy_event(event);
}

STAND_IN_EXPORT int cuEventRecord(Event* event, Stream* stream) {
    CUDA_FUNCTION(cuEventRecord);
    return device().record(event, stream);
}

STAND_IN_EXPORT int cuEventElapsedTime(float* milliseconds, Event* start, Event* end) {
    CUDA_FUNCTION(cuEventElapsedTime);
    return device().elapsed(milliseconds, start, end);
}

STAND_IN_EXPORT int cuEventElapsedTime_v2(float* milliseconds, Event* start, Event* end) {
    CUDA_FUNCTION(cuEventElapsedTime_v2);
    return device().elapsed(milliseconds, start, end);
}

// As kernels on a host read it: where the numbers are, how many matrices, rows and columns there
// are, and the rows and columns of a box.
STAND_IN_EXPORT int cuTensorMapEncodeTiled(TensorMap* map, unsigned type, unsigned rank,
                                           void* address, const u64* sizes, const u64* strides,
                                           const unsigned* box, const unsigned* steps,
                                           unsigned interleave, unsigned swizzle, unsigned,
                                           unsigned fill) {
    CUDA_FUNCTION(cuTensorMapEncodeTiled);
    constexpr unsigned F16 = 6, BF16 = 9, SWIZZLE_128B = 3;
    const bool packed = strides[0] == sizes[0] * 2 && strides[1] == strides[0] * sizes[1];
    if ((type != F16 && type != BF16) || rank != 3 || u64(address) % 16 != 0 || !packed ||
        strides[0] % 16 != 0 || box[0] * 2 > 128 || box[1] > 256 || box[2] != 1 || steps[0] != 1 ||
        interleave != 0 || swizzle != SWIZZLE_128B || fill != 0)
        return INVALID_VALUE;
    *map = {{u64(address), sizes[2], sizes[1], sizes[0], box[1], box[0]}};
    return SUCCESS;
}
