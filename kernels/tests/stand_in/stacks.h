// The stacks of fibers, and going from one to another. For `fibers.cpp` alone.
#pragma once

#include "launch.h"

#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <utility>
#include <vector>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace port::host {
namespace {

// Where a fiber goes on.
#if defined(__x86_64__)

using Context = void*;

// Saves what a called function must leave alone, changes the stack, and restores it there.
extern "C" void port_switch(Context* from, const Context* to);
asm(R"(
.text
.local port_switch
.type port_switch, @function
port_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq (%rsi), %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size port_switch, . - port_switch
)");

void prepare(Context* context, u8*, u8* top, void (*begin)()) {
    // At the beginning of a function the stack is 8 bytes off a multiple of 16.
    u64* stack = reinterpret_cast<u64*>(top) - 2;
    *--stack = 0;
    *--stack = reinterpret_cast<u64>(begin);
    for (int saved = 0; saved < 6; saved++)
        *--stack = 0;
    *context = stack;
}

#else

using Context = ucontext_t;

void port_switch(Context* from, const Context* to) { swapcontext(from, to); }

void prepare(Context* context, u8* bottom, u8* top, void (*begin)()) {
    getcontext(context);
    context->uc_stack.ss_sp = bottom;
    context->uc_stack.ss_size = top - bottom;
    context->uc_link = nullptr;
    makecontext(context, begin, 0);
}

#endif

constexpr u64 PAGE = 4096;

// Stacks with a page below each that cannot be accessed.
class Stacks {
public:
    u8* get(size_t index) {
        if (index >= stacks.size())
            add(index + 1 - stacks.size());
        return stacks[index];
    }

    // Whether an address is in the page below a stack.
    bool below(u64 address) const {
        for (auto [start, bytes] : mappings)
            if (address >= u64(start) && address < u64(start) + bytes)
                return address % STACK_BYTES < PAGE;
        return false;
    }

    ~Stacks() {
        for (auto [start, bytes] : mappings)
            munmap(start, bytes);
    }

private:
    void add(size_t count) {
        u64 bytes = (count + 1) * STACK_BYTES;
        void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (start == MAP_FAILED) {
            perror("no memory for the stacks of fibers");
            abort();
        }
        mappings.emplace_back(start, bytes);
        u64 aligned = (u64(start) + STACK_BYTES - 1) & ~(STACK_BYTES - 1);
        for (size_t index = 0; index < count; index++) {
            u8* stack = reinterpret_cast<u8*>(aligned + index * STACK_BYTES);
            mprotect(stack, PAGE, PROT_NONE);
            stacks.push_back(stack);
        }
    }

    std::vector<u8*> stacks;
    std::vector<std::pair<void*, u64>> mappings;
};

} // namespace
} // namespace port::host
