// A device that is none: what the stand-ins of the vendors' runtimes have in common.
//
// Its kernels run as fibers in the calling thread. What is submitted to a stream is done when
// somebody waits for it, and not before, so that a host which does not wait sees nothing done.
//
// `stand_in.txt` in the library's folder says what it pretends to be and what fails, one thing a
// line:
//
//     device sm_80                   one more device
//     version 12040                  of the driver, as the interface gives it
//     runtime 12020                  of the runtime compiler, likewise
//     memory 1000000                 bytes of each device
//     objects FOLDER                 where compiled kernels are kept
//     fail cuMemAlloc_v2 2           what a function returns, at every call,
//     fail cuLaunchKernel 701 3      or only at the third one
//     fault 2                        the second kernel that runs accesses memory that is not there
//     abort hiprtcCompileProgram     a function that ends the process
//     hang cuModuleUnload 2          a function that never returns, here from its second call on
//     flaw wgmma hang linear         kernels of a core whose names contain a word never end,
//     flaw wgmma hang linear 9       or only from the ninth run of one of them on,
//     flaw mma wrong linear          compute nothing,
//     flaw plain launch linear       are refused when they are launched,
//     flaw mfma compile linear       or do not compile
#pragma once

#include "launch.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace stand_in {


// Results that CUDA's driver and HIP have in common.
enum Result : int {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INSUFFICIENT_DRIVER = 35,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_OUT_OF_RESOURCES = 701,
    COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
};

const char* result_name(int result);
const char* result_meaning(int result);

// What is known of an architecture.
struct Kind {
    const char* name;
    int major, minor;
    int warp;
    int shared_bytes;         // of a block at most
    int shared_bytes_default; // of a block that asks for no more
};

const Kind* kind_of(const std::string& name);

// The folder that this library is in, with a slash at its end.
std::string folder();

struct Settings {
    std::vector<const Kind*> devices;
    int version = 0;
    int runtime = 0;
    u64 memory = 1ull << 30;
    std::string objects;
    u64 fault = 0;
    struct Failure {
        std::string function;
        int result;
        u64 nth; // 0 for every call
        enum { RETURNS, ABORTS, HANGS } how;
    };
    std::vector<Failure> failures;
    struct Flaw {
        std::string core, kind, word;
        u64 from; // the first run of a kernel that it shows in
    };
    std::vector<Flaw> flaws;
};

const Settings& settings();

// What a call of a function is to return in any case; counts the calls.
int injected(const char* function);

// Whether a kernel of a core has a flaw of this kind, in its run with this number.
bool is_flawed(const char* kind, const std::string& core, const std::string& kernel, u64 run = 1);

constexpr int PROCESSORS = 3;
constexpr int L2_BYTES = 64 << 10;
constexpr int CLOCK_KHZ = 1'000'000;
constexpr int TICKS_KHZ = 1'000'000; // those of host_port.h
constexpr int THREADS_OF_A_PROCESSOR = 1024;
constexpr int REGISTERS = 40;

struct Module {
    void* handle;
};

struct Function {
    Module* module;
    std::string name;
    void (*entry)(const void*);
    const port::host::KernelFacts* facts;
    int shared_bytes; // that launches may ask for
};

struct Event {
    bool recorded = false;
    bool done = false;
    double milliseconds = 0;
};

using Work = std::function<int()>;

struct Graph {
    std::vector<Work> work;
};

struct Stream {
    std::vector<Work> work;
    bool capturing = false;
    bool invalidated = false;
    std::unique_ptr<Graph> captured;
};

// What lives, and what was done; read by tests through `stand_in_counts`.
struct Counts {
    i64 allocations = 0;
    i64 bytes = 0;
    i64 modules = 0;
    i64 events = 0;
    i64 graphs = 0; // recorded ones and those that are ready to be launched
    i64 streams = 0;
    i64 contexts = 0;
    i64 launches = 0;      // kernels that ran
    i64 graph_launches = 0; // graphs that were submitted
    i64 programs = 0;       // of a runtime compiler
    i64 compilations = 0;
};

class Device {
public:
    static Device& the();

    int allocate(u64* address, u64 bytes);
    int free(u64 address);
    void memory(u64* free, u64* total) const;

    int load(Module** module, const void* image);
    int unload(Module*);
    int function(Function** function, Module*, const char* name);
    int allow_shared(Function*, int bytes);
    int resident_blocks(int* blocks, const Function*, int threads, u64 shared_bytes) const;

    int create_stream(Stream**);
    int destroy_stream(Stream*);
    int synchronize(Stream*);
    int begin_capture(Stream*);
    int end_capture(Stream*, Graph**);

    int instantiate(Graph** executable, const Graph*);
    int destroy(Graph*);
    int launch(Graph* executable, Stream*);

    int copy(void* to, const void* from, u64 bytes, u64 on_device, Stream*);
    int fill(u64 to, u32 pattern, u64 words, Stream*);
    int launch(Function*, u64 blocks, u32 threads, u32 shared_bytes, bool cooperative,
               const void* arguments, Stream*);

    int create_event(Event**);
    int destroy_event(Event*);
    int submit(Stream*, Work);
    int record(Event*, Stream*);
    int elapsed(float* milliseconds, const Event* start, const Event* end) const;

    Counts counts;

private:
    bool allocated(u64 address, u64 bytes) const;

    std::map<u64, u64> allocations; // from addresses to sizes
    u64 kernels = 0;
    std::map<std::string, u64> runs; // of each kernel
    int broken = SUCCESS; // what everything returns once a kernel has failed
};

// Only one thing is done at a time.
std::unique_lock<std::recursive_mutex> alone();

} // namespace stand_in

// Numbers in the order of `Counts`.
extern "C" void stand_in_counts(long long* numbers, int count);

#define STAND_IN_EXPORT extern "C" __attribute__((visibility("default")))

// The beginning of a function of a runtime: one at a time, and perhaps not at all.
#define STAND_IN_FUNCTION(name)                                                                    \
    auto lock = stand_in::alone();                                                                 \
    if (int result = stand_in::injected(#name)) return result
