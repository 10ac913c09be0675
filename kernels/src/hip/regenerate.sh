#!/usr/bin/env bash
# Writes raw.rs anew from the headers of ROCm 6.2.2: `regenerate.sh INCLUDE > raw.rs`, where INCLUDE
# is the folder with hip/hip_runtime_api.h. Needs bindgen 0.72.1 (bindgen-cli), libclang, rustfmt.
#
# The functions become tables that are filled at run time: the same declarations as bindgen's,
# inside `function_table!`.
set -euo pipefail
include=${1:?the folder with hip/hip_runtime_api.h}

[ "$(bindgen --version)" = "bindgen 0.72.1" ] || { echo "bindgen 0.72.1 is needed" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Installed headers have a hip_version.h, and those of the source archive do not. Nothing here
# depends on its contents.
mkdir -p "$work/include/hip"
: > "$work/include/hip/hip_version.h"
cat > "$work/wrapper.h" <<'HEADER'
#include <hip/hip_runtime_api.h>
#include <hip/hip_deprecated.h>
#include <hip/hiprtc.h>
HEADER

# What every version from ROCm 5.2 on has.
required='hipInit hipDriverGetVersion hipRuntimeGetVersion hipGetErrorName hipGetErrorString
  hipGetDeviceCount hipSetDevice hipDeviceGet hipDeviceGetName hipDeviceGetAttribute
  hipDeviceGetPCIBusId hipDeviceTotalMem hipMemGetInfo hipMalloc hipFree hipMemcpyHtoDAsync
  hipMemcpyDtoHAsync hipMemsetD32Async hipStreamCreateWithFlags hipStreamDestroy
  hipStreamSynchronize hipStreamBeginCapture hipStreamEndCapture hipGraphInstantiateWithFlags
  hipGraphLaunch hipGraphDestroy hipGraphExecDestroy hipModuleLoadData hipModuleUnload
  hipModuleGetFunction hipFuncGetAttribute hipModuleOccupancyMaxActiveBlocksPerMultiprocessor
  hipModuleLaunchKernel hipEventCreateWithFlags hipEventDestroy hipEventRecord
  hipEventElapsedTime'
# What only some have: the properties in their two layouts, graphs that are uploaded from 5.3 on,
# cooperative launches of a module's kernel from 5.5 on.
optional='hipGetDevicePropertiesR0600 hipGraphUpload hipModuleLaunchCooperativeKernel'
compiler='hiprtcVersion hiprtcGetErrorString hiprtcCreateProgram hiprtcDestroyProgram
  hiprtcCompileProgram hiprtcGetProgramLogSize hiprtcGetProgramLog hiprtcGetCodeSize
  hiprtcGetCode'
constants='hipSuccess hipErrorOutOfMemory hipStreamCaptureModeThreadLocal
  HIP_FUNC_ATTRIBUTE_NUM_REGS HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
  HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
  hipDeviceAttributeMultiprocessorCount hipDeviceAttributeMaxSharedMemoryPerBlock
  hipDeviceAttributeL2CacheSize hipDeviceAttributeClockRate
  hipDeviceAttributeWallClockRate HIPRTC_SUCCESS
  HIPRTC_ERROR_COMPILATION HIPRTC_ERROR_INVALID_OPTION hipStreamNonBlocking hipEventDefault'

either() { xargs <<< "$1" | tr ' ' '|'; }

run() {
  bindgen "$work/wrapper.h" --default-enum-style consts --no-prepend-enum-name --no-layout-tests \
    --no-doc-comments --disable-header-comment --use-core --ctypes-prefix ::core::ffi \
    --opaque-type hipDeviceArch_t --rust-target 1.82 --formatter none "$@" \
    -- -x c -std=c11 -D__HIP_PLATFORM_AMD__ -I "$include" -I "$work/include"
}

# The declarations of functions as a table has them. The old layout of the properties is what the
# function without a version returns.
functions() {
  {
    echo 'unsafe extern "C" {'
    run --allowlist-function "$(either "$1")" | grep -o 'pub fn [^;]*;' | sed 's/^pub //' | sort -u
    echo '}'
  } | formatted | sed '1d; $d; s/^/        /'
}

formatted() { rustfmt --edition 2024 --config use_small_heuristics=Max,max_width=92; }

# Only the constants that are used, since the enumerations have hundreds.
constants() {
  run --allowlist-item "$(either "$constants")" --allowlist-type \
    'hipError_t|hipStreamCaptureMode|hipFunction_attribute|hipDeviceAttribute_t|hiprtcResult' |
    grep -oE "pub const ($(either "$constants")) ?:[^;]*;" | sort -u
}

# The types of both, without constants and functions.
types() {
  run --allowlist-function "$(either "$required $optional $compiler")" \
    --allowlist-type 'hipDeviceProp_tR0000|hipDeviceArch_t' |
    sed -E 's/pub const [^;]*;//g; s/unsafe extern "C" \{[^}]*\}//g'
}

cat > "$work/raw.rs" <<'HEADER'
//! The raw layer: the functions of HIP and hiprtc that are used, with their types and constants.
//!
//! Written by `regenerate.sh` from the headers of ROCm 6.2.2; not to be edited. The functions and
//! constants are the same from ROCm 5.2 on; of `hipDeviceProp_t` there are two layouts.

#![allow(
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    reason = "as the headers have it"
)]

use crate::gpu::library::function_table;

HEADER
{
  types
  constants
  cat <<'TABLE'

function_table! {
    /// `libamdhip64.so`, of ROCm 5.2 or later.
    pub(crate) struct Hip {
        required {
TABLE
  functions "$required"
  cat <<'TABLE'
        }
        optional {
TABLE
  functions "$optional"
  cat <<'TABLE'
            fn hipGetDeviceProperties(
                prop: *mut hipDeviceProp_tR0000,
                deviceId: ::core::ffi::c_int,
            ) -> hipError_t;
        }
    }
}

function_table! {
    /// `libhiprtc.so`, or what `libamdhip64.so` has of it.
    pub(crate) struct Hiprtc {
        required {
TABLE
  functions "$compiler"
  cat <<'TABLE'
        }
        optional {}
    }
}
TABLE
} >> "$work/raw.rs"
rustfmt --edition 2024 --config use_small_heuristics=Max "$work/raw.rs"
cat "$work/raw.rs"
