// Compiles kernels for the host; see runtime_compiler.h.
#include "runtime_compiler.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace fs = std::filesystem;

namespace stand_in {
namespace {

void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
}

std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// FNV-1a
u64 digest(const std::string& text) {
    u64 hash = 0xCBF29CE484222325;
    for (unsigned char byte : text)
        hash = (hash ^ byte) * 0x100000001B3;
    return hash;
}

// Whether kernels are to be written with the instructions of a core: `-DPORT_CORE_WMMA12` is wmma.
bool has_core(const std::vector<std::string>& options, std::string core) {
    std::transform(core.begin(), core.end(), core.begin(), [](char c) { return toupper(c); });
    const std::string define = "-DPORT_CORE_" + core;
    return std::any_of(options.begin(), options.end(), [&](const std::string& option) {
        return option.rfind(define, 0) == 0;
    });
}

} // namespace

Program* create_program(const char* text, const char* name, int headers, const char* const* texts,
                        const char* const* names) {
    auto* program = new Program{name != nullptr ? name : "program", text, {}, "", ""};
    for (int index = 0; index < headers; index++)
        program->headers.emplace_back(names[index], texts[index]);
    return program;
}

int compile(Program& program, const std::vector<std::string>& options,
            const std::string& architecture, const char* vendor) {
    const Kind* kind = nullptr;
    for (const Kind* device : settings().devices)
        if (architecture.rfind(device->name, 0) == 0)
            kind = device;
    if (kind == nullptr) {
        program.log = "error: invalid value for the architecture: " + architecture;
        return COMPILER_INVALID_OPTION;
    }
    std::string command = "c++ -std=c++17 -O1 -shared -fPIC -fvisibility=hidden -fno-exceptions "
                          "-fno-rtti -ffp-contract=off -DPORT_HOST";
    if (std::find(options.begin(), options.end(), vendor) == options.end()) {
        program.log = std::string("error: there is no ") + vendor;
        return COMPILER_COMPILATION;
    }
    for (const std::string& option : options)
        if (option.rfind("-DPORT_", 0) == 0 && option != vendor)
            command += " " + option;
    for (const char* core : {"wgmma", "mma", "mfma", "wmma", "plain"})
        if (has_core(options, core) && is_flawed("compile", core, program.name)) {
            program.log = "error: the stand-in does not compile " + program.name;
            return COMPILER_COMPILATION;
        }
    std::string all = command + program.text;
    for (const auto& [name, text] : program.headers)
        all += name + text;
    char key[32];
    snprintf(key, sizeof(key), "%016llx", digest(all));
    const fs::path objects = settings().objects;
    const fs::path kept = objects / (std::string(key) + ".so");
    if (!objects.empty() && fs::exists(kept)) {
        program.image = read(kept);
        return COMPILER_SUCCESS;
    }

    std::string pattern = (fs::temp_directory_path() / "stand-in-XXXXXX").string();
    const fs::path folder = mkdtemp(pattern.data());
    // In folders of their own: only what was given by name is found.
    for (const auto& [name, text] : program.headers)
        write(folder / "headers" / name, text);
    const fs::path source = folder / "kernel.cpp", object = folder / "kernel.so";
    write(source, program.text);
    command += " -I" + (folder / "headers").string() + " -I" STAND_IN_FOLDER " " +
               source.string() + " -o " + object.string() + " 2> " + (folder / "log").string();
    const bool done = system(command.c_str()) == 0;
    program.log = read(folder / "log");
    if (done) {
        program.image = read(object);
        if (!objects.empty()) {
            // Nobody sees half of it, and two threads of a process that compile the same at once do
            // not write into one file.
            const fs::path unfinished = objects / folder.filename();
            fs::create_directories(objects);
            write(unfinished, program.image);
            fs::rename(unfinished, kept);
        }
    }
    fs::remove_all(folder);
    return done ? COMPILER_SUCCESS : COMPILER_COMPILATION;
}

} // namespace stand_in
