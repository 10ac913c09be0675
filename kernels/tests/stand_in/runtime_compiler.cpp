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

std::string hexadecimal(u64 number) {
    char digits[32];
    snprintf(digits, sizeof(digits), "%016llx", number);
    return digits;
}

// A folder that nobody else has.
fs::path new_folder(const fs::path& inside) {
    fs::create_directories(inside);
    std::string pattern = (inside / "stand-in-XXXXXX").string();
    return mkdtemp(pattern.data());
}

// Writes the headers of a program into a folder of their own, where only what was given by name is
// found.
void write_headers(const Program& program, const fs::path& folder) {
    fs::create_directories(folder);
    for (const auto& [name, text] : program.headers)
        write(folder / name, text);
}

// What most kernels include. To read it is two thirds of the work on a kernel.
constexpr const char* PRECOMPILED[] = {"gemm.h", "rows.h", "pointwise.h"};
constexpr const char* PRECOMPILED_NAME = "precompiled.h";

// The folder of a program's headers among what is kept, with what the compiler made of those that most
// kernels include; `key` is the command and all of their texts. It appears there whole.
fs::path kept_headers(const Program& program, const std::string& command, const std::string& key,
                      const fs::path& kept) {
    const fs::path folder = kept / ("headers-" + hexadecimal(digest(key)));
    if (fs::exists(folder))
        return folder;
    const fs::path unfinished = new_folder(kept);
    write_headers(program, unfinished);
    std::string includes;
    for (const char* name : PRECOMPILED)
        if (fs::exists(unfinished / name))
            includes += std::string("#include \"") + name + "\"\n";
    const fs::path header = unfinished / PRECOMPILED_NAME;
    write(header, includes);
    // Without it the compiler reads the header; what is wrong is said of the kernel.
    const std::string object = header.string() + ".gch";
    if (system((command + " -I" + unfinished.string() + " -I" STAND_IN_FOLDER " -x c++-header " +
                header.string() + " -o " + object + " 2> " + object + ".log")
                   .c_str()) != 0)
        fs::remove(object);
    std::error_code somebody_was_first;
    fs::rename(unfinished, folder, somebody_was_first);
    if (somebody_was_first)
        fs::remove_all(unfinished);
    return folder;
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
    std::string key = command;
    for (const auto& [name, text] : program.headers)
        key += name + text;
    const fs::path objects = settings().objects;
    const fs::path kept = objects / (hexadecimal(digest(key + program.text)) + ".so");
    if (!objects.empty() && fs::exists(kept)) {
        program.image = read(kept);
        return COMPILER_SUCCESS;
    }

    const fs::path folder = new_folder(fs::temp_directory_path());
    const fs::path source = folder / "kernel.cpp", object = folder / "kernel.so";
    write(source, program.text);
    if (objects.empty()) {
        write_headers(program, folder / "headers");
        command += " -I" + (folder / "headers").string();
    } else {
        const fs::path headers = kept_headers(program, command, key, objects);
        command += " -include " + (headers / PRECOMPILED_NAME).string() + " -I" + headers.string();
    }
    command += " -I" STAND_IN_FOLDER " " + source.string() + " -o " + object.string() + " 2> " +
               (folder / "log").string();
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
