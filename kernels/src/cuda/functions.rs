//! The raw layer: the functions of CUDA's driver, of NVRTC and of NVML that are used.
//!
//! Types and constants are those that cudarc generated from the headers. Numbers of enumerations
//! are passed as integers, because a library that is newer than the headers returns numbers that
//! are not in them.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUmodule,
    CUstream, CUtensorMap,
};
use cudarc::nvrtc::sys::nvrtcProgram;

use crate::gpu::library::function_table;

/// A `CUresult`, `nvrtcResult` or `nvmlReturn_t`.
pub(super) type Code = c_uint;

function_table! {
    /// `libcuda.so.1`, of CUDA 11.4 or later.
    pub(crate) struct Cuda {
        required {
            fn cuInit(flags: c_uint) -> Code;
            fn cuDriverGetVersion(version: *mut c_int) -> Code;
            fn cuGetErrorName(code: Code, text: *mut *const c_char) -> Code;
            fn cuGetErrorString(code: Code, text: *mut *const c_char) -> Code;
            fn cuDeviceGetCount(count: *mut c_int) -> Code;
            fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int) -> Code;
            fn cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice) -> Code;
            fn cuDeviceGetAttribute(
                value: *mut c_int, attribute: c_uint, device: CUdevice,
            ) -> Code;
            fn cuDeviceGetPCIBusId(id: *mut c_char, len: c_int, device: CUdevice) -> Code;
            fn cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice) -> Code;
            fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice) -> Code;
            fn cuDevicePrimaryCtxRelease_v2(device: CUdevice) -> Code;
            fn cuCtxSetCurrent(context: CUcontext) -> Code;
            fn cuStreamCreate(stream: *mut CUstream, flags: c_uint) -> Code;
            fn cuStreamDestroy_v2(stream: CUstream) -> Code;
            fn cuStreamSynchronize(stream: CUstream) -> Code;
            fn cuStreamBeginCapture_v2(stream: CUstream, mode: c_uint) -> Code;
            fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph) -> Code;
            fn cuGraphInstantiateWithFlags(
                executable: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong,
            ) -> Code;
            fn cuGraphLaunch(executable: CUgraphExec, stream: CUstream) -> Code;
            fn cuGraphDestroy(graph: CUgraph) -> Code;
            fn cuGraphExecDestroy(executable: CUgraphExec) -> Code;
            fn cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize) -> Code;
            fn cuMemFree_v2(address: CUdeviceptr) -> Code;
            fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Code;
            fn cuMemcpyHtoDAsync_v2(
                to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream,
            ) -> Code;
            fn cuMemcpyDtoHAsync_v2(
                to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream,
            ) -> Code;
            fn cuMemsetD32Async(
                to: CUdeviceptr, pattern: c_uint, words: usize, stream: CUstream,
            ) -> Code;
            fn cuModuleLoadData(module: *mut CUmodule, image: *const c_void) -> Code;
            fn cuModuleUnload(module: CUmodule) -> Code;
            fn cuModuleGetFunction(
                function: *mut CUfunction, module: CUmodule, name: *const c_char,
            ) -> Code;
            fn cuFuncGetAttribute(
                value: *mut c_int, attribute: c_uint, function: CUfunction,
            ) -> Code;
            fn cuFuncSetAttribute(function: CUfunction, attribute: c_uint, value: c_int) -> Code;
            fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
                blocks: *mut c_int, function: CUfunction, threads: c_int, shared_bytes: usize,
            ) -> Code;
            fn cuLaunchKernel(
                function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
                block_x: c_uint, block_y: c_uint, block_z: c_uint, shared_bytes: c_uint,
                stream: CUstream, parameters: *mut *mut c_void, extra: *mut *mut c_void,
            ) -> Code;
            fn cuLaunchCooperativeKernel(
                function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
                block_x: c_uint, block_y: c_uint, block_z: c_uint, shared_bytes: c_uint,
                stream: CUstream, parameters: *mut *mut c_void,
            ) -> Code;
            fn cuEventCreate(event: *mut CUevent, flags: c_uint) -> Code;
            fn cuEventDestroy_v2(event: CUevent) -> Code;
            fn cuEventRecord(event: CUevent, stream: CUstream) -> Code;
            fn cuEventElapsedTime(ms: *mut f32, start: CUevent, end: CUevent) -> Code;
        }
        optional {
            // From 12.8 on. The older name stays, and rounds more coarsely.
            fn cuEventElapsedTime_v2(ms: *mut f32, start: CUevent, end: CUevent) -> Code;
            // From 11.1 on.
            fn cuGraphUpload(executable: CUgraphExec, stream: CUstream) -> Code;
            // From 12.0 on.
            fn cuTensorMapEncodeTiled(
                map: *mut CUtensorMap, data_type: c_uint, rank: c_uint, address: *mut c_void,
                dims: *const u64, strides: *const u64, box_dims: *const c_uint,
                element_strides: *const c_uint, interleave: c_uint, swizzle: c_uint,
                l2_promotion: c_uint, out_of_bounds: c_uint,
            ) -> Code;
        }
    }
}

function_table! {
    /// `libnvrtc.so`, of CUDA 11.2 or later.
    pub(crate) struct Nvrtc {
        required {
            fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> Code;
            fn nvrtcGetErrorString(code: Code) -> *const c_char;
            fn nvrtcCreateProgram(
                program: *mut nvrtcProgram, source: *const c_char, name: *const c_char,
                headers: c_int, texts: *const *const c_char, names: *const *const c_char,
            ) -> Code;
            fn nvrtcDestroyProgram(program: *mut nvrtcProgram) -> Code;
            fn nvrtcCompileProgram(
                program: nvrtcProgram, count: c_int, options: *const *const c_char,
            ) -> Code;
            fn nvrtcGetCUBINSize(program: nvrtcProgram, bytes: *mut usize) -> Code;
            fn nvrtcGetCUBIN(program: nvrtcProgram, image: *mut c_char) -> Code;
            fn nvrtcGetProgramLogSize(program: nvrtcProgram, bytes: *mut usize) -> Code;
            fn nvrtcGetProgramLog(program: nvrtcProgram, log: *mut c_char) -> Code;
        }
        optional {}
    }
}

/// A device of NVML.
pub(super) type NvmlDevice = *mut c_void;

function_table! {
    /// `libnvidia-ml.so.1`, which comes with the driver.
    pub(crate) struct Nvml {
        required {
            fn nvmlInit_v2() -> Code;
            fn nvmlSystemGetDriverVersion(text: *mut c_char, len: c_uint) -> Code;
            fn nvmlDeviceGetHandleByPciBusId_v2(
                bus_id: *const c_char, device: *mut NvmlDevice,
            ) -> Code;
            fn nvmlDeviceGetClockInfo(
                device: NvmlDevice, clock: c_uint, mhz: *mut c_uint,
            ) -> Code;
        }
        optional {
            // The same under its names from R535 on and before.
            fn nvmlDeviceGetCurrentClocksEventReasons(
                device: NvmlDevice, reasons: *mut c_ulonglong,
            ) -> Code;
            fn nvmlDeviceGetCurrentClocksThrottleReasons(
                device: NvmlDevice, reasons: *mut c_ulonglong,
            ) -> Code;
        }
    }
}
