// What the stand-ins of the runtime compilers have in common: programs, and the host's compiler.
#pragma once

#include "device.h"

namespace stand_in {

// The numbers that NVRTC and hiprtc have in common.
enum CompilerResult : int {
    COMPILER_SUCCESS = 0,
    COMPILER_INVALID_INPUT = 3,
    COMPILER_INVALID_OPTION = 5,
    COMPILER_COMPILATION = 6,
    COMPILER_BUILTIN_OPERATION_FAILURE = 7,
};

inline const char* compiler_result_name(int result) {
    switch (result) {
    case COMPILER_SUCCESS: return "SUCCESS";
    case COMPILER_INVALID_INPUT: return "ERROR_INVALID_INPUT";
    case COMPILER_INVALID_OPTION: return "ERROR_INVALID_OPTION";
    case COMPILER_COMPILATION: return "ERROR_COMPILATION";
    case COMPILER_BUILTIN_OPERATION_FAILURE: return "ERROR_BUILTIN_OPERATION_FAILURE";
    default: return "ERROR unknown";
    }
}

struct Program {
    std::string name;
    std::string text;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string image;
    std::string log;
};

Program* create_program(const char* text, const char* name, int headers, const char* const* texts,
                        const char* const* names);

// Compiles for the host what `options` say for a device of an architecture; `vendor` is the option
// that says whose compiler this is.
int compile(Program&, const std::vector<std::string>& options, const std::string& architecture,
            const char* vendor);

} // namespace stand_in
