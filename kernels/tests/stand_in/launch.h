// What `fibers.cpp` offers to those that launch kernels.
#pragma once

#include "port.h"

namespace port::host {

// In which order threads run that could all run.
//
// A missing barrier shows when a thread that should have waited runs too early: with threads in
// ascending order, those that overwrite what later threads have yet to read; in descending order,
// those that read what earlier threads have yet to write.
enum Order : u64 { FORWARD = 0, REVERSE = 1 }; // anything else is the seed of a random order

struct Launch {
    const char* name;
    void (*entry)(const void* arguments);
    const KernelFacts* facts;
    const void* arguments;
    u64 arguments_bytes;
    u64 blocks;
    u32 threads;
    u32 shared_bytes;
    u32 cooperative;
    u64 order;
};

// What became of it.
struct Outcome {
    // Where memory was accessed that is not there; 0 if it was something else.
    u64 fault_address;
    // What happened, empty if all went well.
    char error[1024];
};

} // namespace port::host

// Runs a kernel in the calling thread; returns 0 if all went well.
extern "C" int port_launch(const port::host::Launch*, port::host::Outcome*);
