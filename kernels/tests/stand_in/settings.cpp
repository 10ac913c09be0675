// What a stand-in pretends to be and what fails, as `stand_in.txt` says; see device.h.
#include "device.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace stand_in {
namespace {

constexpr Kind KINDS[] = {
    {"sm_70", 7, 0, 32, 96 << 10, 48 << 10},    {"sm_75", 7, 5, 32, 64 << 10, 48 << 10},
    {"sm_80", 8, 0, 32, 163 << 10, 48 << 10},   {"sm_90", 9, 0, 32, 227 << 10, 48 << 10},
    {"gfx90a", 9, 0, 64, 64 << 10, 64 << 10},   {"gfx942", 9, 4, 64, 64 << 10, 64 << 10},
    {"gfx1030", 10, 3, 32, 64 << 10, 64 << 10}, {"gfx1100", 11, 0, 32, 64 << 10, 64 << 10},
    {"gfx1201", 12, 0, 32, 64 << 10, 64 << 10}, {"gfx803", 8, 0, 64, 64 << 10, 64 << 10},
};

Settings read_settings() {
    Settings settings;
    std::ifstream file(folder() + "stand_in.txt");
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string word, name;
        words >> word;
        if (word == "device") {
            words >> name;
            if (const Kind* kind = kind_of(name))
                settings.devices.push_back(kind);
        } else if (word == "version") {
            words >> settings.version;
        } else if (word == "runtime") {
            words >> settings.runtime;
        } else if (word == "memory") {
            words >> settings.memory;
        } else if (word == "objects") {
            words >> settings.objects;
        } else if (word == "fault") {
            words >> settings.fault;
        } else if (word == "fail") {
            Settings::Failure failure{"", 0, 0, Settings::Failure::RETURNS};
            words >> failure.function >> failure.result >> failure.nth;
            settings.failures.push_back(failure);
        } else if (word == "abort") {
            words >> name;
            settings.failures.push_back({name, 0, 0, Settings::Failure::ABORTS});
        } else if (word == "hang") {
            Settings::Failure failure{"", 0, 1, Settings::Failure::HANGS};
            words >> failure.function >> failure.nth;
            settings.failures.push_back(failure);
        } else if (word == "flaw") {
            Settings::Flaw flaw;
            words >> flaw.core >> flaw.kind >> flaw.word;
            if (!(words >> flaw.from))
                flaw.from = 1;
            settings.flaws.push_back(flaw);
        }
    }
    return settings;
}

} // namespace

std::string folder() {
    Dl_info info{};
    dladdr(reinterpret_cast<const void*>(&result_name), &info);
    std::string path = info.dli_fname != nullptr ? info.dli_fname : "";
    return path.substr(0, path.find_last_of('/') + 1);
}

const Kind* kind_of(const std::string& name) {
    for (const Kind& kind : KINDS)
        if (kind.name == name)
            return &kind;
    return nullptr;
}

const Settings& settings() {
    static Settings read = read_settings();
    return read;
}

int injected(const char* function) {
    static std::map<std::string, u64> calls;
    u64 call = ++calls[function];
    for (const Settings::Failure& failure : settings().failures) {
        const bool hangs = failure.how == Settings::Failure::HANGS;
        const bool is_it = failure.nth == 0 || (hangs ? call >= failure.nth : call == failure.nth);
        if (failure.function != function || !is_it)
            continue;
        if (failure.how == Settings::Failure::ABORTS)
            abort();
        while (hangs)
            pause();
        return failure.result;
    }
    return SUCCESS;
}

bool is_flawed(const char* kind, const std::string& core, const std::string& kernel, u64 run) {
    for (const Settings::Flaw& flaw : settings().flaws)
        if (flaw.kind == kind && flaw.core == core && run >= flaw.from &&
            kernel.find(flaw.word) != std::string::npos)
            return true;
    return false;
}

} // namespace stand_in
