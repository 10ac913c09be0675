// A stand-in of NVIDIA's management library. Built as `libnvidia-ml.so.1`.
#include "device.h"

#include <cstdio>

using namespace stand_in;

STAND_IN_EXPORT int nvmlInit_v2() {
    STAND_IN_FUNCTION(nvmlInit_v2);
    return SUCCESS;
}

STAND_IN_EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned length) {
    STAND_IN_FUNCTION(nvmlSystemGetDriverVersion);
    snprintf(text, length, "0.stand-in");
    return SUCCESS;
}

STAND_IN_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
    STAND_IN_FUNCTION(nvmlDeviceGetHandleByPciBusId_v2);
    *device = &Device::the();
    return SUCCESS;
}

STAND_IN_EXPORT int nvmlDeviceGetClockInfo(void*, unsigned clock, unsigned* mhz) {
    STAND_IN_FUNCTION(nvmlDeviceGetClockInfo);
    constexpr unsigned NVML_CLOCK_SM = 1;
    if (clock != NVML_CLOCK_SM)
        return INVALID_VALUE;
    *mhz = CLOCK_KHZ / 1000 - 10;
    return SUCCESS;
}

STAND_IN_EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
    STAND_IN_FUNCTION(nvmlDeviceGetCurrentClocksThrottleReasons);
    *reasons = 4; // the cap of its power
    return SUCCESS;
}
