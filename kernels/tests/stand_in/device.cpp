// A device that is none; see device.h.
#include "device.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <dlfcn.h>
#include <elf.h>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace stand_in {
namespace {

constexpr u64 PAGE = 4096;

struct Description {
    int result;
    const char* cuda;
    const char* hip;
    const char* meaning;
};

constexpr Description DESCRIPTIONS[] = {
    {SUCCESS, "CUDA_SUCCESS", "hipSuccess", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "hipErrorInvalidValue", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "hipErrorOutOfMemory", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "hipErrorNotInitialized",
     "initialization error"},
    {INSUFFICIENT_DRIVER, "CUDA_ERROR_INSUFFICIENT_DRIVER", "hipErrorInsufficientDriver",
     "driver version is insufficient for runtime version"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "hipErrorNoDevice", "no capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "hipErrorInvalidDevice",
     "invalid device ordinal"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "hipErrorInvalidImage",
     "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "hipErrorInvalidContext",
     "invalid device context"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "hipErrorInvalidHandle",
     "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "hipErrorNotFound", "named symbol not found"},
    {NOT_READY, "CUDA_ERROR_NOT_READY", "hipErrorNotReady", "device not ready"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "hipErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "hipErrorLaunchOutOfResources", "too many resources requested for launch"},
    {COOPERATIVE_LAUNCH_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
     "hipErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
    {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "hipErrorNotSupported",
     "operation not supported"},
    {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "hipErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "hipErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"},
};

const Description* description(int result) {
    for (const Description& known : DESCRIPTIONS)
        if (known.result == result)
            return &known;
    return nullptr;
}

double now_in_milliseconds() {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(now).count();
}

} // namespace

const char* result_name(int result) {
    const Description* known = description(result);
#if defined(STAND_IN_HIP)
    return known != nullptr ? known->hip : "hipErrorUnknown";
#else
    return known != nullptr ? known->cuda : nullptr;
#endif
}

const char* result_meaning(int result) {
    const Description* known = description(result);
    return known != nullptr ? known->meaning : "unknown error";
}

std::unique_lock<std::recursive_mutex> alone() {
    static std::recursive_mutex mutex;
    return std::unique_lock(mutex);
}

Device& Device::the() {
    static Device device;
    return device;
}

int Device::allocate(u64* address, u64 bytes) {
    if (broken)
        return broken;
    if (bytes == 0)
        return INVALID_VALUE;
    u64 left = 0;
    memory(&left, nullptr);
    if (bytes > left)
        return OUT_OF_MEMORY;
    // A page behind it that cannot be accessed.
    u64 pages = (bytes + PAGE - 1) / PAGE * PAGE;
    void* start = mmap(nullptr, pages + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
    if (start == MAP_FAILED)
        return OUT_OF_MEMORY;
    mprotect(static_cast<char*>(start) + pages, PAGE, PROT_NONE);
    memset(start, 0xCD, pages);
    *address = u64(start) + (pages - bytes) / 256 * 256;
    allocations[*address] = bytes;
    counts.allocations++;
    counts.bytes += i64(bytes);
    return SUCCESS;
}

int Device::free(u64 address) {
    auto found = allocations.find(address);
    if (found == allocations.end())
        return INVALID_VALUE;
    munmap(reinterpret_cast<void*>(address / PAGE * PAGE),
           (address % PAGE + found->second + PAGE - 1) / PAGE * PAGE + PAGE);
    counts.allocations--;
    counts.bytes -= i64(found->second);
    allocations.erase(found);
    return broken;
}

void Device::memory(u64* free, u64* total) const {
    if (free != nullptr)
        *free = settings().memory - u64(counts.bytes);
    if (total != nullptr)
        *total = settings().memory;
}

bool Device::allocated(u64 address, u64 bytes) const {
    auto next = allocations.upper_bound(address);
    if (next == allocations.begin())
        return false;
    auto [start, size] = *--next;
    return address + bytes <= start + size;
}

// An image is a shared library. It says itself how long it is.
int Device::load(Module** module, const void* image) {
    if (broken)
        return broken;
    Elf64_Ehdr header;
    memcpy(&header, image, sizeof(header));
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return INVALID_IMAGE;
    u64 bytes = header.e_shoff + u64(header.e_shnum) * header.e_shentsize;
    // A file of its own: the loader takes one of a name that it knows for what it has.
    char path[] = "/tmp/stand-in-kernel-XXXXXX";
    int file = mkstemp(path);
    if (file < 0)
        return OUT_OF_MEMORY;
    const bool written = write(file, image, bytes) == i64(bytes);
    close(file);
    void* handle = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    ::unlink(path);
    if (handle == nullptr) {
        fprintf(stderr, "stand-in: %s\n", dlerror());
        return INVALID_IMAGE;
    }
    *module = new Module{handle};
    counts.modules++;
    return SUCCESS;
}

int Device::unload(Module* module) {
    // Its functions stay as records of what they were.
    dlclose(module->handle);
    delete module;
    counts.modules--;
    return broken;
}

int Device::function(Function** function, Module* module, const char* name) {
    if (broken)
        return broken;
    void* entry = dlsym(module->handle, name);
    std::string facts = std::string("port_facts_of_") + name;
    void* known = dlsym(module->handle, facts.c_str());
    if (entry == nullptr || known == nullptr)
        return NOT_FOUND;
    *function = new Function{module, name, reinterpret_cast<void (*)(const void*)>(entry),
                             static_cast<const port::host::KernelFacts*>(known),
                             settings().devices[0]->shared_bytes_default};
    return SUCCESS;
}

int Device::allow_shared(Function* function, int bytes) {
    if (bytes < 0 || bytes > settings().devices[0]->shared_bytes)
        return INVALID_VALUE;
    function->shared_bytes = std::max(function->shared_bytes, bytes);
    return SUCCESS;
}

int Device::resident_blocks(int* blocks, const Function* function, int threads,
                            u64 shared_bytes) const {
    if (threads <= 0 || u32(threads) > function->facts->threads ||
        shared_bytes > u64(settings().devices[0]->shared_bytes))
        return INVALID_VALUE;
    u64 most = u64(settings().devices[0]->shared_bytes);
    u64 by_memory = shared_bytes == 0 ? 32 : most / shared_bytes;
    *blocks = int(std::min<u64>(u64(THREADS_OF_A_PROCESSOR / threads), by_memory));
    return SUCCESS;
}

int Device::create_stream(Stream** stream) {
    if (broken)
        return broken;
    *stream = new Stream;
    counts.streams++;
    return SUCCESS;
}

int Device::destroy_stream(Stream* stream) {
    delete stream;
    counts.streams--;
    return broken;
}

int Device::submit(Stream* stream, Work work) {
    if (broken)
        return broken;
    if (stream->capturing)
        stream->captured->work.push_back(std::move(work));
    else
        stream->work.push_back(std::move(work));
    return SUCCESS;
}

int Device::synchronize(Stream* stream) {
    if (stream->capturing) {
        stream->invalidated = true;
        return CAPTURE_UNSUPPORTED;
    }
    std::vector<Work> work;
    work.swap(stream->work);
    for (const Work& one : work) {
        if (broken)
            break;
        broken = one();
    }
    return broken;
}

int Device::begin_capture(Stream* stream) {
    if (broken)
        return broken;
    if (stream->capturing)
        return INVALID_VALUE;
    stream->capturing = true;
    stream->invalidated = false;
    stream->captured = std::make_unique<Graph>();
    return SUCCESS;
}

int Device::end_capture(Stream* stream, Graph** graph) {
    if (!stream->capturing)
        return INVALID_VALUE;
    stream->capturing = false;
    *graph = nullptr;
    if (stream->invalidated)
        return CAPTURE_INVALIDATED;
    *graph = stream->captured.release();
    counts.graphs++;
    return SUCCESS;
}

int Device::instantiate(Graph** executable, const Graph* graph) {
    if (broken)
        return broken;
    *executable = new Graph(*graph);
    counts.graphs++;
    return SUCCESS;
}

int Device::destroy(Graph* graph) {
    delete graph;
    counts.graphs--;
    return broken;
}

int Device::launch(Graph* executable, Stream* stream) {
    counts.graph_launches++;
    for (const Work& work : executable->work)
        if (int result = submit(stream, work))
            return result;
    return SUCCESS;
}

int Device::copy(void* to, const void* from, u64 bytes, u64 on_device, Stream* stream) {
    if (stream->capturing) {
        stream->invalidated = true;
        return CAPTURE_UNSUPPORTED;
    }
    if (!allocated(on_device, bytes))
        return INVALID_VALUE;
    return submit(stream, [=] {
        memcpy(to, from, bytes);
        return SUCCESS;
    });
}

int Device::fill(u64 to, u32 pattern, u64 words, Stream* stream) {
    if (!allocated(to, words * 4) || to % 4 != 0)
        return INVALID_VALUE;
    return submit(stream, [=] {
        for (u64 word = 0; word < words; word++)
            memcpy(reinterpret_cast<void*>(to + word * 4), &pattern, 4);
        return SUCCESS;
    });
}

int Device::launch(Function* function, u64 blocks, u32 threads, u32 shared_bytes,
                   bool cooperative, const void* arguments, Stream* stream) {
    if (int(shared_bytes) > function->shared_bytes)
        return INVALID_VALUE;
    if (blocks == 0 || threads == 0 || threads > function->facts->threads)
        return INVALID_VALUE;
    if (is_flawed("launch", function->facts->core, function->name))
        return LAUNCH_OUT_OF_RESOURCES;
    int resident = 0;
    resident_blocks(&resident, function, int(threads), shared_bytes);
    if (resident == 0)
        return LAUNCH_OUT_OF_RESOURCES;
    if (cooperative && blocks > u64(resident) * PROCESSORS)
        return COOPERATIVE_LAUNCH_TOO_LARGE;
    // Arguments are copied when a kernel is launched.
    struct alignas(64) Line {
        char bytes[64];
    };
    u32 length = function->facts->arguments_bytes;
    auto copied = std::make_shared<std::vector<Line>>(length / sizeof(Line) + 1);
    memcpy(copied->data(), arguments, length);
    // The function itself, since it may be gone when this runs.
    Function called = *function;
    return submit(stream, [=]() -> int {
        counts.launches++;
        if (++kernels == settings().fault)
            return ILLEGAL_ADDRESS;
        const u64 run = ++runs[called.name];
        while (is_flawed("hang", called.facts->core, called.name, run))
            pause();
        if (is_flawed("wrong", called.facts->core, called.name, run))
            return SUCCESS;
        port::host::Launch launch{};
        launch.name = called.name.c_str();
        launch.entry = called.entry;
        launch.facts = called.facts;
        launch.arguments = copied->data();
        launch.arguments_bytes = length;
        launch.blocks = blocks;
        launch.threads = threads;
        launch.shared_bytes = shared_bytes;
        launch.cooperative = cooperative;
        launch.order = port::host::FORWARD;
        port::host::Outcome outcome;
        if (port_launch(&launch, &outcome) == 0)
            return SUCCESS;
        fprintf(stderr, "stand-in: %s\n", outcome.error);
        return ILLEGAL_ADDRESS;
    });
}

int Device::create_event(Event** event) {
    if (broken)
        return broken;
    *event = new Event;
    counts.events++;
    return SUCCESS;
}

int Device::destroy_event(Event* event) {
    delete event;
    counts.events--;
    return broken;
}

int Device::record(Event* event, Stream* stream) {
    event->recorded = true;
    event->done = false;
    return submit(stream, [=] {
        event->done = true;
        event->milliseconds = now_in_milliseconds();
        return SUCCESS;
    });
}

int Device::elapsed(float* milliseconds, const Event* start, const Event* end) const {
    if (broken)
        return broken;
    if (!start->recorded || !end->recorded)
        return INVALID_HANDLE;
    if (!start->done || !end->done)
        return NOT_READY;
    *milliseconds = float(end->milliseconds - start->milliseconds);
    return SUCCESS;
}

} // namespace stand_in

STAND_IN_EXPORT void stand_in_counts(long long* numbers, int count) {
    auto lock = stand_in::alone();
    const stand_in::Counts& counts = stand_in::Device::the().counts;
    const long long all[] = {counts.allocations, counts.bytes,    counts.modules,
                             counts.events,      counts.graphs,   counts.streams,
                             counts.contexts,    counts.launches, counts.graph_launches,
                             counts.programs,    counts.compilations};
    for (int index = 0; index < count && index < 11; index++)
        numbers[index] = all[index];
}

// For libraries that submit work of their own, which is dropped with the graph or when it is done.
STAND_IN_EXPORT int stand_in_submit(stand_in::Stream* stream, int (*work)(void*), void* data,
                                    void (*drop)(void*)) {
    auto lock = stand_in::alone();
    std::shared_ptr<void> owned(data, drop);
    return stand_in::Device::the().submit(stream, [=] { return work(owned.get()); });
}
