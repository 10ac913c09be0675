// A stand-in of NVRTC. Built as `libnvrtc.so.12`.
#include "runtime_compiler.h"

#include <dlfcn.h>

using namespace stand_in;

STAND_IN_EXPORT int nvrtcVersion(int* major, int* minor) {
    STAND_IN_FUNCTION(nvrtcVersion);
    *major = settings().runtime / 1000;
    *minor = settings().runtime % 1000 / 10;
    return COMPILER_SUCCESS;
}

STAND_IN_EXPORT const char* nvrtcGetErrorString(int result) { return compiler_result_name(result); }

STAND_IN_EXPORT int nvrtcCreateProgram(Program** program, const char* text, const char* name,
                                       int headers, const char* const* texts,
                                       const char* const* names) {
    STAND_IN_FUNCTION(nvrtcCreateProgram);
    *program = create_program(text, name, headers, texts, names);
    Device::the().counts.programs++;
    return COMPILER_SUCCESS;
}

STAND_IN_EXPORT int nvrtcDestroyProgram(Program** program) {
    STAND_IN_FUNCTION(nvrtcDestroyProgram);
    delete *program;
    *program = nullptr;
    Device::the().counts.programs--;
    return COMPILER_SUCCESS;
}

STAND_IN_EXPORT int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
    STAND_IN_FUNCTION(nvrtcCompileProgram);
    Device::the().counts.compilations++;
    // The library needs this one, and does not look for it in its own folder: it must be open by now.
    const std::string builtins = folder() + STAND_IN_BUILTINS;
    if (dlopen(builtins.c_str(), RTLD_NOW | RTLD_NOLOAD) == nullptr) {
        program->log = "nvrtc: error: failed to open " STAND_IN_BUILTINS;
        return COMPILER_BUILTIN_OPERATION_FAILURE;
    }
    std::string architecture;
    const std::string flag = "--gpu-architecture=";
    for (int index = 0; index < count; index++)
        if (std::string(options[index]).rfind(flag, 0) == 0)
            architecture = options[index] + flag.size();
    return compile(*program, {options, options + count}, architecture, "-DPORT_CUDA");
}

STAND_IN_EXPORT int nvrtcGetCUBINSize(Program* program, size_t* bytes) {
    STAND_IN_FUNCTION(nvrtcGetCUBINSize);
    *bytes = program->image.size();
    return COMPILER_SUCCESS;
}

STAND_IN_EXPORT int nvrtcGetCUBIN(Program* program, char* image) {
    STAND_IN_FUNCTION(nvrtcGetCUBIN);
    memcpy(image, program->image.data(), program->image.size());
    return COMPILER_SUCCESS;
}

STAND_IN_EXPORT int nvrtcGetProgramLogSize(Program* program, size_t* bytes) {
    STAND_IN_FUNCTION(nvrtcGetProgramLogSize);
    *bytes = program->log.size() + 1;
    return COMPILER_SUCCESS;
}

STAND_IN_EXPORT int nvrtcGetProgramLog(Program* program, char* log) {
    STAND_IN_FUNCTION(nvrtcGetProgramLog);
    memcpy(log, program->log.c_str(), program->log.size() + 1);
    return COMPILER_SUCCESS;
}
