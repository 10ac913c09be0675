// A stand-in of hiprtc. Built as `libhiprtc.so.6`.
#include "runtime_compiler.h"

using namespace stand_in;

STAND_IN_EXPORT int hiprtcVersion(int* major, int* minor) {
    STAND_IN_FUNCTION(hiprtcVersion);
    *major = settings().runtime / 1000;
    *minor = settings().runtime % 1000 / 10;
    return COMPILER_SUCCESS;
}

STAND_IN_EXPORT const char* hiprtcGetErrorString(int result) {
    return compiler_result_name(result);
}

STAND_IN_EXPORT int hiprtcCreateProgram(Program** program, const char* text, const char* name,
                                        int headers, const char** texts, const char** names) {
    STAND_IN_FUNCTION(hiprtcCreateProgram);
    *program = create_program(text, name, headers, texts, names);
    Device::the().counts.programs++;
    return COMPILER_SUCCESS;
}

STAND_IN_EXPORT int hiprtcDestroyProgram(Program** program) {
    STAND_IN_FUNCTION(hiprtcDestroyProgram);
    delete *program;
    *program = nullptr;
    Device::the().counts.programs--;
    return COMPILER_SUCCESS;
}

STAND_IN_EXPORT int hiprtcCompileProgram(Program* program, int count, const char** options) {
    STAND_IN_FUNCTION(hiprtcCompileProgram);
    Device::the().counts.compilations++;
    std::string architecture;
    for (const char* flag : {"--offload-arch=", "--gpu-architecture="})
        for (int index = 0; index < count; index++)
            if (std::string(options[index]).rfind(flag, 0) == 0)
                architecture = options[index] + strlen(flag);
    return compile(*program, {options, options + count}, architecture, "-DPORT_HIP");
}

STAND_IN_EXPORT int hiprtcGetCodeSize(Program* program, size_t* bytes) {
    STAND_IN_FUNCTION(hiprtcGetCodeSize);
    *bytes = program->image.size();
    return COMPILER_SUCCESS;
}

STAND_IN_EXPORT int hiprtcGetCode(Program* program, char* code) {
    STAND_IN_FUNCTION(hiprtcGetCode);
    memcpy(code, program->image.data(), program->image.size());
    return COMPILER_SUCCESS;
}

STAND_IN_EXPORT int hiprtcGetProgramLogSize(Program* program, size_t* bytes) {
    STAND_IN_FUNCTION(hiprtcGetProgramLogSize);
    *bytes = program->log.size() + 1;
    return COMPILER_SUCCESS;
}

STAND_IN_EXPORT int hiprtcGetProgramLog(Program* program, char* log) {
    STAND_IN_FUNCTION(hiprtcGetProgramLog);
    memcpy(log, program->log.c_str(), program->log.size() + 1);
    return COMPILER_SUCCESS;
}
