// Runs kernels on a host, every thread as a fiber.
//
// A fiber gives up control only where it waits for others, so that what two threads do without a
// barrier between them happens in an order that the launch chooses. Blocks run one after the
// other, but those of a cluster or of a cooperative launch are alive all at once.
#include "launch.h"
#include "stacks.h"

#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace port::host {
namespace {

constexpr u64 GUARD_BYTES = 4096;
// Not a number in any format, and not what memory is filled with.
constexpr u16 GUARD = 0x7FFE;

class Random {
public:
    explicit Random(u64 seed) : state(seed * 0x9E3779B97F4A7C15 + 1) {}

    u32 below(u32 limit) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return u32((state >> 32) * limit >> 32);
    }

private:
    u64 state;
};

enum class State : u8 { READY, AT_WARP, AT_BLOCK, PAUSED, ENDED };

struct Copy {
    void* to;
    const void* from; // null for zeros
};

struct Thread {
    Context context;
    Place place;
    State state;
    // Copies that are under way, in groups; the last one is not ended.
    std::vector<std::vector<Copy>> copies;
};

// The lanes of a warp: `order[next]` and those behind it may be ready, those before it are not.
struct Warp {
    std::vector<int> order;
    int next = 0;
    int ready = 0;
    int arrived = 0;
    Place place;
    u32 bytes = 0;
    // What lanes give each other, in turns: a lane that gives the next may not overwrite what
    // others have yet to read.
    std::vector<u8> slots[2];
    int turn = 0;
};

struct Block {
    i64 index = 0;
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    std::vector<int> order;
    int warp = 0; // the one that runs
    int ready = 0;
    int arrived = 0;
    int ended = 0;
    u64 meetings = 0;
    Place place;
    std::vector<u8> memory;
    u8* shared = nullptr;
};

// A round is every thread's turn from one pause to the next. When this many of them have brought
// nobody out of waiting, nothing ever will.
constexpr u64 ROUNDS_OF_PAUSES = 20'000;

class Run {
public:
    Run(const Launch& launch, Outcome& outcome, Stacks& stacks)
        : launch(launch), outcome(outcome), stacks(stacks), random(launch.order) {}

    void all_blocks();

    // What threads call.
    const u8* meet_warp(Place, const void* mine, u32 bytes);
    void meet_block(Place);
    void pause(Place);
    void changed();
    u64 meetings() const { return blocks[block].meetings; }
    void copy(Place, void* to, const void* from);
    void end_copies();
    void wait_for_copies(int groups_left);
    [[noreturn]] void end();
    [[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 2, 3)));

    const Launch& launch;
    Outcome& outcome;
    Stacks& stacks;

private:
    std::vector<int> ascending_or_not(size_t count) const;
    void shuffle(std::vector<int>&);
    void start(Block&, i64 index);
    void finish(Block&);
    void go();
    void release(Warp&);
    void release(Block&);
    bool release_paused();
    void wait(State, Place);
    bool choose();
    void go_on();
    [[noreturn]] void nobody_is_ready();
    Thread& current() { return blocks[block].threads[thread]; }

    Random random;
    Cluster cluster{};
    std::vector<Block> blocks;
    int block = 0;
    int thread = 0;
    int unfinished = 0;
    u64 rounds = 0;
    Context home{};
};

thread_local Run* running = nullptr;
std::atomic<u64> runs = 0;

void begin() {
    running->launch.entry(running->launch.arguments);
    running->end();
}

const u8* meet_warp(Place place, const void* mine, u32 bytes) {
    return running->meet_warp(place, mine, bytes);
}
void meet_block(Place place) { running->meet_block(place); }
void pause(Place place) { running->pause(place); }
void changed() { running->changed(); }
u64 meetings() { return running->meetings(); }
void fail(Place place, const char* message) {
    running->fail("%s at %s:%d: %s", place.function, place.file, place.line, message);
}

void copy(Place place, void* to, const void* from) { running->copy(place, to, from); }
void end_copies() { running->end_copies(); }
void wait_for_copies(int groups_left) { running->wait_for_copies(groups_left); }

constexpr Table TABLE = {meet_warp, meet_block, pause,           changed, meetings,
                         copy,      end_copies, wait_for_copies, fail};

std::vector<int> Run::ascending_or_not(size_t count) const {
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    if (launch.order == REVERSE)
        return {order.rbegin(), order.rend()};
    return order;
}

void Run::shuffle(std::vector<int>& order) {
    if (launch.order <= REVERSE)
        return;
    for (size_t index = order.size(); index > 1; index--)
        std::swap(order[index - 1], order[random.below(u32(index))]);
}

void Run::start(Block& block, i64 index) {
    const u32 width = launch.facts->warp;
    const size_t slot = &block - blocks.data();
    block.index = index;
    block.threads.resize(launch.threads);
    block.warps.resize(launch.threads / width);
    block.order = ascending_or_not(block.warps.size());
    for (Warp& warp : block.warps)
        warp.order = ascending_or_not(width);

    block.memory.resize(launch.shared_bytes + GUARD_BYTES + 1024);
    block.shared = reinterpret_cast<u8*>((u64(block.memory.data()) + 1023) & ~u64(1023));
    memset(block.shared, 0xFF, launch.shared_bytes);
    const u32 together = launch.facts->cluster;
    if (together > 1)
        cluster.shared[slot] = block.shared;
    for (u64 at = 0; at < GUARD_BYTES; at += sizeof(GUARD))
        memcpy(block.shared + launch.shared_bytes + at, &GUARD, sizeof(GUARD));

    for (u32 number = 0; number < launch.threads; number++) {
        u8* stack = stacks.get(slot * launch.threads + number);
        u8* top = stack + fiber_offset(u64(stack));
        new (top) Fiber{&TABLE,      block.shared,        index,
                        i64(launch.blocks), int(number), int(launch.threads),
                        launch.shared_bytes, &cluster, int(together), int(slot % together)};
        prepare(&block.threads[number].context, stack, top, begin);
        block.threads[number].copies.assign(1, {});
    }
    block.ended = 0;
    release(block);
}

void Run::finish(Block& block) {
    for (u64 at = 0; at < GUARD_BYTES; at += sizeof(GUARD))
        if (memcmp(block.shared + launch.shared_bytes + at, &GUARD, sizeof(GUARD)) != 0)
            fail("something is written %llu bytes behind the %u bytes of shared memory", at,
                 launch.shared_bytes);
}

void Run::all_blocks() {
    if (launch.cooperative) {
        blocks.resize(launch.blocks);
        std::vector<int> order = ascending_or_not(launch.blocks);
        shuffle(order);
        cluster.run = ++runs;
        for (size_t index = 0; index < blocks.size(); index++)
            start(blocks[index], order[index]);
        go();
    } else {
        const u32 together = launch.facts->cluster;
        blocks.resize(together);
        std::vector<int> order = ascending_or_not(launch.blocks / together);
        shuffle(order);
        for (int index : order) {
            cluster = {};
            cluster.run = ++runs;
            for (u32 rank = 0; rank < together; rank++)
                start(blocks[rank], i64(index) * together + rank);
            go();
            if (outcome.error[0])
                return;
        }
    }
}

// Runs the threads of all blocks that were started until the last one has ended.
void Run::go() {
    block = 0;
    unfinished = int(blocks.size());
    choose();
    port_switch(&home, &current().context);
}

// Finds the next thread; false when none is ready.
bool Run::choose() {
    if (blocks[block].ready == 0) {
        int other = block;
        do
            other = (other + 1) % int(blocks.size());
        while (other != block && blocks[other].ready == 0);
        if (other == block)
            return false;
        block = other;
    }
    Block& in = blocks[block];
    if (in.warps[in.warp].ready == 0) {
        for (int warp : in.order)
            if (in.warps[warp].ready > 0) {
                in.warp = warp;
                break;
            }
    }
    Warp& warp = in.warps[in.warp];
    const int first = in.warp * int(warp.order.size());
    do
        thread = first + warp.order[warp.next++];
    while (in.threads[thread].state != State::READY);
    return true;
}

// Lets the next thread run, which may be the current one: that is ready too.
void Run::go_on() {
    Thread& from = current();
    choose();
    Thread& to = current();
    if (&to != &from)
        port_switch(&from.context, &to.context);
}

// Stops the current thread and lets another one run.
void Run::wait(State state, Place place) {
    Block& in = blocks[block];
    Thread& from = current();
    from.state = state;
    from.place = place;
    in.ready--;
    in.warps[in.warp].ready--;
    if (launch.order > REVERSE && blocks.size() > 1 && random.below(64) == 0) {
        // Other blocks may be quicker than the rest of this one. Not more often: threads that wait
        // for something by looking again and again would do little else.
        release_paused();
        block = int(random.below(u32(blocks.size())));
    }
    // Everyone that waits may be released by what this thread did last.
    if (!choose() && !(++rounds < ROUNDS_OF_PAUSES && release_paused() && choose()))
        nobody_is_ready();
    Thread& to = current();
    if (&to != &from)
        port_switch(&from.context, &to.context);
}

void Run::release(Warp& warp) {
    warp.next = 0;
    warp.ready = int(warp.order.size());
    warp.arrived = 0;
    shuffle(warp.order);
}

void Run::release(Block& block) {
    for (Thread& thread : block.threads)
        thread.state = State::READY;
    for (Warp& warp : block.warps)
        release(warp);
    shuffle(block.order);
    block.warp = block.order[0];
    block.ready = int(block.threads.size());
    block.arrived = 0;
}

bool Run::release_paused() {
    bool any = false;
    for (Block& block : blocks) {
        for (size_t number = 0; number < block.threads.size(); number++) {
            if (block.threads[number].state != State::PAUSED)
                continue;
            Warp& warp = block.warps[number / launch.facts->warp];
            block.threads[number].state = State::READY;
            block.ready++;
            warp.ready++;
            warp.next = 0;
            block.warp = block.order[0];
            any = true;
        }
    }
    return any;
}

const u8* Run::meet_warp(Place place, const void* mine, u32 bytes) {
    Block& in = blocks[block];
    const int index = in.warp;
    Warp& warp = in.warps[index];
    const int width = int(warp.order.size());
    if (warp.arrived == 0) {
        warp.place = place;
        warp.bytes = bytes;
        warp.turn ^= 1;
        if (warp.slots[warp.turn].size() < u64(width) * bytes)
            warp.slots[warp.turn].resize(u64(width) * bytes);
    } else if (warp.place.line != place.line || warp.bytes != bytes ||
               strcmp(warp.place.file, place.file) != 0) {
        fail("lanes of warp %d wait at different places: one in %s at %s:%d, thread %d in %s at "
             "%s:%d",
             index, warp.place.function, warp.place.file, warp.place.line, thread, place.function,
             place.file, place.line);
    }
    u8* slots = warp.slots[warp.turn].data();
    if (bytes > 0)
        memcpy(slots + u64(thread % width) * bytes, mine, bytes);
    if (++warp.arrived < width) {
        wait(State::AT_WARP, place);
    } else {
        // All are ready again, the one that came last too, and the first of them goes on.
        rounds = 0;
        const int waiting = width - 1;
        for (int lane = 0; lane < width; lane++)
            in.threads[index * width + lane].state = State::READY;
        release(warp);
        in.ready += waiting;
        if (launch.order > REVERSE && random.below(64) == 0)
            in.warp = int(random.below(u32(in.warps.size())));
        go_on();
    }
    return slots;
}

void Run::meet_block(Place place) {
    Block& in = blocks[block];
    if (in.arrived == 0) {
        in.place = place;
    } else if (in.place.line != place.line || strcmp(in.place.file, place.file) != 0) {
        fail("threads wait at different barriers: one at %s:%d, thread %d at %s:%d",
             in.place.file, in.place.line, thread, place.file, place.line);
    }
    if (++in.arrived < int(in.threads.size())) {
        wait(State::AT_BLOCK, place);
    } else {
        rounds = 0;
        in.meetings++;
        release(in);
        go_on();
    }
}

void Run::pause(Place place) { wait(State::PAUSED, place); }

// In ascending order the first threads are then as far as they can be at any time, however many of the
// others have yet to begin, and in descending order the last ones.
void Run::changed() {
    rounds = 0;
    Block& in = blocks[block];
    Warp& mine = in.warps[in.warp];
    if ((launch.order > REVERSE && random.below(2) == 0) || !release_paused())
        return;
    // This thread is ready too.
    mine.next = 0;
    if (launch.order > REVERSE)
        in.warp = int(random.below(u32(in.warps.size())));
    go_on();
}

constexpr size_t COPY_BYTES = 16;

void Run::copy(Place place, void* to, const void* from) {
    if (u64(to) % COPY_BYTES != 0 || u64(from) % COPY_BYTES != 0)
        fail("%s at %s:%d: not at a multiple of 16 bytes", place.function, place.file, place.line);
    memset(to, 0xFF, COPY_BYTES);
    current().copies.back().push_back({to, from});
}

void Run::end_copies() { current().copies.emplace_back(); }

void Run::wait_for_copies(int groups_left) {
    std::vector<std::vector<Copy>>& groups = current().copies;
    while (groups.size() > size_t(groups_left) + 1) {
        for (auto [to, from] : groups.front()) {
            if (from != nullptr)
                memcpy(to, from, COPY_BYTES);
            else
                memset(to, 0, COPY_BYTES);
        }
        groups.erase(groups.begin());
    }
}

void Run::end() {
    Block& in = blocks[block];
    rounds = 0;
    if (++in.ended == int(in.threads.size())) {
        finish(in);
        if (--unfinished == 0) {
            Context nowhere;
            port_switch(&nowhere, &home);
        }
    }
    wait(State::ENDED, {"end", "", 0});
    __builtin_unreachable();
}

void Run::fail(const char* format, ...) {
    int length = snprintf(outcome.error, sizeof(outcome.error), "%s, block %lld: ", launch.name,
                          blocks[block].index);
    va_list values;
    va_start(values, format);
    vsnprintf(outcome.error + length, sizeof(outcome.error) - size_t(length), format, values);
    va_end(values);
    Context nowhere;
    port_switch(&nowhere, &home);
    __builtin_unreachable();
}

// Says why, by how many threads are in which state and where one of them is.
void Run::nobody_is_ready() {
    for (size_t index = 0; index < blocks.size(); index++) {
        Block& in = blocks[index];
        if (in.ended == int(in.threads.size()))
            continue;
        block = int(index);
        std::string text;
        const std::pair<State, const char*> states[] = {{State::AT_WARP, "wait for their warp"},
                                                        {State::AT_BLOCK, "wait for their block"},
                                                        {State::PAUSED, "pause forever"},
                                                        {State::ENDED, "have ended"}};
        for (auto [state, meaning] : states) {
            int count = 0;
            size_t example = 0;
            for (size_t number = in.threads.size(); number-- > 0;)
                if (in.threads[number].state == state) {
                    count++;
                    example = number;
                }
            if (count == 0)
                continue;
            text += (text.empty() ? "" : ", ") + std::to_string(count) + " threads " + meaning;
            const Place& place = in.threads[example].place;
            if (state != State::ENDED)
                text += " (thread " + std::to_string(example) + " in " + place.function + " at " +
                        place.file + ":" + std::to_string(place.line) + ")";
        }
        fail("nobody can go on: %s", text.c_str());
    }
    fail("nobody can go on");
}

struct sigaction before[NSIG];

// A kernel that accesses memory that is not there, or divides by zero, ends its launch.
void on_fault(int signal, siginfo_t* info, void* context) {
    if (running != nullptr) {
        u64 address = u64(info->si_addr);
        if (signal == SIGFPE)
            running->fail("a division by zero");
        if (signal == SIGILL || signal == SIGTRAP)
            running->fail("an instruction that does not exist");
        if (running->stacks.below(address))
            running->fail("a thread uses more than %llu bytes of stack", STACK_BYTES);
        running->outcome.fault_address = address;
        running->fail("memory is accessed at %#llx, where there is none", address);
    }
    struct sigaction& old = before[signal];
    if ((old.sa_flags & SA_SIGINFO) != 0 && old.sa_sigaction != nullptr) {
        old.sa_sigaction(signal, info, context);
    } else {
        sigaction(signal, &old, nullptr);
    }
}

void catch_faults() {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP})
        sigaction(signal, &action, &before[signal]);
}

} // namespace
} // namespace port::host

extern "C" __attribute__((visibility("default"))) int
port_launch(const port::host::Launch* launch, port::host::Outcome* outcome) {
    using namespace port::host;
    static std::once_flag once;
    std::call_once(once, catch_faults);
    thread_local Stacks stacks;

    *outcome = {};
    auto refuse = [&](const char* format, auto... values) {
        snprintf(outcome->error, sizeof(outcome->error), format, launch->name, values...);
        return 1;
    };
    const KernelFacts& facts = *launch->facts;
    if (launch->threads == 0 || launch->threads > 1024 || launch->threads % facts.warp != 0)
        return refuse("%s: %u threads are not whole warps of %u", launch->threads, facts.warp);
    if (launch->threads > facts.threads)
        return refuse("%s: launched with %u threads, but compiled for %u", launch->threads,
                      facts.threads);
    if (launch->arguments_bytes != facts.arguments_bytes)
        return refuse("%s: launched with %llu bytes of parameters, but it has %u",
                      launch->arguments_bytes, facts.arguments_bytes);
    if (launch->blocks == 0 || launch->blocks > 1u << 30)
        return refuse("%s: %llu blocks", launch->blocks);
    if (launch->blocks % facts.cluster != 0 || (launch->cooperative && facts.cluster > 1))
        return refuse("%s: %llu blocks, in clusters of %u", launch->blocks, facts.cluster);

    Run run(*launch, *outcome, stacks);
    running = &run;
    run.all_blocks();
    running = nullptr;
    return outcome->error[0] != 0;
}
