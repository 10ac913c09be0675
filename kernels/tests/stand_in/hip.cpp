// A stand-in of HIP's runtime: the functions that are used, with the types and numbers of ROCm's
// headers. Built as `libamdhip64.so.6`.
#include "device.h"

#include <cstddef>
#include <cstdio>

using namespace stand_in;

namespace {

thread_local int current = 0;

const Kind& kind(int device) { return *settings().devices[size_t(device)]; }
bool exists(int device) { return device >= 0 && size_t(device) < settings().devices.size(); }
Device& device() { return Device::the(); }

// hipDeviceAttribute_t of ROCm 5 and 6
int attribute(int which, const Kind& kind) {
    switch (which) {
    case 5: return CLOCK_KHZ;        // hipDeviceAttributeClockRate
    case 19: return L2_BYTES;        // hipDeviceAttributeL2CacheSize
    case 63: return PROCESSORS;      // hipDeviceAttributeMultiprocessorCount
    case 74: return kind.shared_bytes; // hipDeviceAttributeMaxSharedMemoryPerBlock
    case 10017: return TICKS_KHZ;    // hipDeviceAttributeWallClockRate
    default: return -1;
    }
}

// Where the runtime writes the architecture's name in the 1,472 bytes of `hipDeviceProp_tR0600`.
struct Properties {
    char before[1160];
    char architecture[256];
    char behind[56];
};
static_assert(sizeof(Properties) == 1472);

} // namespace

STAND_IN_EXPORT int hipInit(unsigned) {
    STAND_IN_FUNCTION(hipInit);
    return settings().devices.empty() ? INVALID_DEVICE : SUCCESS;
}

STAND_IN_EXPORT int hipDriverGetVersion(int* version) {
    STAND_IN_FUNCTION(hipDriverGetVersion);
    *version = settings().version;
    return SUCCESS;
}

STAND_IN_EXPORT int hipRuntimeGetVersion(int* version) {
    STAND_IN_FUNCTION(hipRuntimeGetVersion);
    *version = settings().version;
    return SUCCESS;
}

STAND_IN_EXPORT const char* hipGetErrorName(int error) { return result_name(error); }
STAND_IN_EXPORT const char* hipGetErrorString(int error) { return result_meaning(error); }

STAND_IN_EXPORT int hipGetDeviceCount(int* count) {
    STAND_IN_FUNCTION(hipGetDeviceCount);
    *count = int(settings().devices.size());
    return *count == 0 ? NO_DEVICE : SUCCESS;
}

STAND_IN_EXPORT int hipSetDevice(int which) {
    STAND_IN_FUNCTION(hipSetDevice);
    if (!exists(which))
        return INVALID_DEVICE;
    current = which;
    return SUCCESS;
}

STAND_IN_EXPORT int hipDeviceGet(int* handle, int ordinal) {
    STAND_IN_FUNCTION(hipDeviceGet);
    if (!exists(ordinal))
        return INVALID_DEVICE;
    *handle = ordinal;
    return SUCCESS;
}

STAND_IN_EXPORT int hipDeviceGetName(char* name, int length, int which) {
    STAND_IN_FUNCTION(hipDeviceGetName);
    snprintf(name, size_t(length), "Stand-in for %s (no GPU)", kind(which).name);
    return SUCCESS;
}

STAND_IN_EXPORT int hipDeviceGetAttribute(int* value, unsigned which, int of) {
    STAND_IN_FUNCTION(hipDeviceGetAttribute);
    if (!exists(of))
        return INVALID_DEVICE;
    *value = attribute(int(which), kind(of));
    return *value < 0 ? INVALID_VALUE : SUCCESS;
}

STAND_IN_EXPORT int hipDeviceGetPCIBusId(char* id, int length, int which) {
    STAND_IN_FUNCTION(hipDeviceGetPCIBusId);
    snprintf(id, size_t(length), "0000:%02X:00.0", which + 1);
    return SUCCESS;
}

STAND_IN_EXPORT int hipDeviceTotalMem(size_t* bytes, int) {
    STAND_IN_FUNCTION(hipDeviceTotalMem);
    *bytes = settings().memory;
    return SUCCESS;
}

STAND_IN_EXPORT int hipGetDevicePropertiesR0600(Properties* properties, int which) {
    STAND_IN_FUNCTION(hipGetDevicePropertiesR0600);
    if (!exists(which))
        return INVALID_DEVICE;
    memset(properties, 0, sizeof(*properties));
    snprintf(properties->before, 256, "Stand-in for %s (no GPU)", kind(which).name);
    const bool has_features = kind(which).warp == 64;
    snprintf(properties->architecture, sizeof(properties->architecture), "%s%s", kind(which).name,
             has_features ? ":sramecc+:xnack-" : "");
    return SUCCESS;
}

STAND_IN_EXPORT int hipMemGetInfo(size_t* free, size_t* total) {
    STAND_IN_FUNCTION(hipMemGetInfo);
    u64 left = 0, all = 0;
    device().memory(&left, &all);
    *free = left;
    *total = all;
    return SUCCESS;
}

STAND_IN_EXPORT int hipMalloc(void** address, size_t bytes) {
    STAND_IN_FUNCTION(hipMalloc);
    u64 found = 0;
    int result = device().allocate(&found, bytes);
    *address = reinterpret_cast<void*>(found);
    return result;
}

STAND_IN_EXPORT int hipFree(void* address) {
    STAND_IN_FUNCTION(hipFree);
    return device().free(u64(address));
}

STAND_IN_EXPORT int hipMemcpyHtoDAsync(void* to, void* from, size_t bytes, Stream* stream) {
    STAND_IN_FUNCTION(hipMemcpyHtoDAsync);
    return device().copy(to, from, bytes, u64(to), stream);
}

STAND_IN_EXPORT int hipMemcpyDtoHAsync(void* to, void* from, size_t bytes, Stream* stream) {
    STAND_IN_FUNCTION(hipMemcpyDtoHAsync);
    return device().copy(to, from, bytes, u64(from), stream);
}

STAND_IN_EXPORT int hipMemsetD32Async(void* to, int pattern, size_t words, Stream* stream) {
    STAND_IN_FUNCTION(hipMemsetD32Async);
    return device().fill(u64(to), u32(pattern), words, stream);
}

STAND_IN_EXPORT int hipStreamCreateWithFlags(Stream** stream, unsigned) {
    STAND_IN_FUNCTION(hipStreamCreateWithFlags);
    return device().create_stream(stream);
}

STAND_IN_EXPORT int hipStreamDestroy(Stream* stream) {
    STAND_IN_FUNCTION(hipStreamDestroy);
    return device().destroy_stream(stream);
}

STAND_IN_EXPORT int hipStreamSynchronize(Stream* stream) {
    STAND_IN_FUNCTION(hipStreamSynchronize);
    return device().synchronize(stream);
}

STAND_IN_EXPORT int hipStreamBeginCapture(Stream* stream, unsigned) {
    STAND_IN_FUNCTION(hipStreamBeginCapture);
    return device().begin_capture(stream);
}

STAND_IN_EXPORT int hipStreamEndCapture(Stream* stream, Graph** graph) {
    STAND_IN_FUNCTION(hipStreamEndCapture);
    return device().end_capture(stream, graph);
}

STAND_IN_EXPORT int hipGraphInstantiateWithFlags(Graph** executable, Graph* graph,
                                                 unsigned long long) {
    STAND_IN_FUNCTION(hipGraphInstantiateWithFlags);
    return device().instantiate(executable, graph);
}

STAND_IN_EXPORT int hipGraphUpload(Graph*, Stream*) {
    STAND_IN_FUNCTION(hipGraphUpload);
    return SUCCESS;
}

STAND_IN_EXPORT int hipGraphLaunch(Graph* executable, Stream* stream) {
    STAND_IN_FUNCTION(hipGraphLaunch);
    return device().launch(executable, stream);
}

STAND_IN_EXPORT int hipGraphDestroy(Graph* graph) {
    STAND_IN_FUNCTION(hipGraphDestroy);
    return device().destroy(graph);
}

STAND_IN_EXPORT int hipGraphExecDestroy(Graph* executable) {
    STAND_IN_FUNCTION(hipGraphExecDestroy);
    return device().destroy(executable);
}

STAND_IN_EXPORT int hipModuleLoadData(Module** module, const void* image) {
    STAND_IN_FUNCTION(hipModuleLoadData);
    return device().load(module, image);
}

STAND_IN_EXPORT int hipModuleUnload(Module* module) {
    STAND_IN_FUNCTION(hipModuleUnload);
    return device().unload(module);
}

STAND_IN_EXPORT int hipModuleGetFunction(Function** function, Module* module, const char* name) {
    STAND_IN_FUNCTION(hipModuleGetFunction);
    return device().function(function, module, name);
}

// hipFunction_attribute
STAND_IN_EXPORT int hipFuncGetAttribute(int* value, unsigned which, Function* function) {
    STAND_IN_FUNCTION(hipFuncGetAttribute);
    switch (which) {
    case 0: *value = int(function->facts->threads); return SUCCESS; // MAX_THREADS_PER_BLOCK
    case 1: *value = 0; return SUCCESS;                             // SHARED_SIZE_BYTES
    case 3: *value = 0; return SUCCESS;                             // LOCAL_SIZE_BYTES
    case 4: *value = REGISTERS; return SUCCESS;                     // NUM_REGS
    default: return INVALID_VALUE;
    }
}

STAND_IN_EXPORT int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                       Function* function,
                                                                       int threads,
                                                                       size_t shared_bytes) {
    STAND_IN_FUNCTION(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor);
    return device().resident_blocks(blocks, function, threads, shared_bytes);
}

STAND_IN_EXPORT int hipModuleLaunchKernel(Function* function, unsigned x, unsigned y, unsigned z,
                                          unsigned block_x, unsigned block_y, unsigned block_z,
                                          unsigned shared_bytes, Stream* stream,
                                          void** parameters, void** extra) {
    STAND_IN_FUNCTION(hipModuleLaunchKernel);
    if (y != 1 || z != 1 || block_y != 1 || block_z != 1)
        return INVALID_VALUE;
    const void* arguments = nullptr;
    if (parameters != nullptr && extra == nullptr) {
        arguments = parameters[0];
    } else if (parameters == nullptr && extra != nullptr && extra[0] == reinterpret_cast<void*>(1) &&
               extra[2] == reinterpret_cast<void*>(2) && extra[4] == reinterpret_cast<void*>(3)) {
        // HIP_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END
        if (*static_cast<size_t*>(extra[3]) < function->facts->arguments_bytes)
            return INVALID_VALUE;
        arguments = extra[1];
    } else {
        return INVALID_VALUE;
    }
    return device().launch(function, x, block_x, shared_bytes, false, arguments, stream);
}

STAND_IN_EXPORT int hipModuleLaunchCooperativeKernel(Function* function, unsigned x, unsigned y,
                                                     unsigned z, unsigned block_x,
                                                     unsigned block_y, unsigned block_z,
                                                     unsigned shared_bytes, Stream* stream,
                                                     void** parameters) {
    STAND_IN_FUNCTION(hipModuleLaunchCooperativeKernel);
    if (y != 1 || z != 1 || block_y != 1 || block_z != 1)
        return INVALID_VALUE;
    return device().launch(function, x, block_x, shared_bytes, true, parameters[0], stream);
}

STAND_IN_EXPORT int hipEventCreateWithFlags(Event** event, unsigned) {
    STAND_IN_FUNCTION(hipEventCreateWithFlags);
    return device().create_event(event);
}

STAND_IN_EXPORT int hipEventDestroy(Event* event) {
    STAND_IN_FUNCTION(hipEventDestroy);
    return device().destroy_event(event);
}

STAND_IN_EXPORT int hipEventRecord(Event* event, Stream* stream) {
    STAND_IN_FUNCTION(hipEventRecord);
    return device().record(event, stream);
}

STAND_IN_EXPORT int hipEventElapsedTime(float* milliseconds, Event* start, Event* end) {
    STAND_IN_FUNCTION(hipEventElapsedTime);
    return device().elapsed(milliseconds, start, end);
}
