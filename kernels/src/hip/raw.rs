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

#[repr(C)]
#[repr(align(4))]
#[derive(Debug, Copy, Clone)]
pub struct hipDeviceArch_t {
    pub _bindgen_opaque_blob: u32,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipUUID_t {
    pub bytes: [::core::ffi::c_char; 16usize],
}
pub type hipUUID = hipUUID_t;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipDeviceProp_tR0600 {
    pub name: [::core::ffi::c_char; 256usize],
    pub uuid: hipUUID,
    pub luid: [::core::ffi::c_char; 8usize],
    pub luidDeviceNodeMask: ::core::ffi::c_uint,
    pub totalGlobalMem: usize,
    pub sharedMemPerBlock: usize,
    pub regsPerBlock: ::core::ffi::c_int,
    pub warpSize: ::core::ffi::c_int,
    pub memPitch: usize,
    pub maxThreadsPerBlock: ::core::ffi::c_int,
    pub maxThreadsDim: [::core::ffi::c_int; 3usize],
    pub maxGridSize: [::core::ffi::c_int; 3usize],
    pub clockRate: ::core::ffi::c_int,
    pub totalConstMem: usize,
    pub major: ::core::ffi::c_int,
    pub minor: ::core::ffi::c_int,
    pub textureAlignment: usize,
    pub texturePitchAlignment: usize,
    pub deviceOverlap: ::core::ffi::c_int,
    pub multiProcessorCount: ::core::ffi::c_int,
    pub kernelExecTimeoutEnabled: ::core::ffi::c_int,
    pub integrated: ::core::ffi::c_int,
    pub canMapHostMemory: ::core::ffi::c_int,
    pub computeMode: ::core::ffi::c_int,
    pub maxTexture1D: ::core::ffi::c_int,
    pub maxTexture1DMipmap: ::core::ffi::c_int,
    pub maxTexture1DLinear: ::core::ffi::c_int,
    pub maxTexture2D: [::core::ffi::c_int; 2usize],
    pub maxTexture2DMipmap: [::core::ffi::c_int; 2usize],
    pub maxTexture2DLinear: [::core::ffi::c_int; 3usize],
    pub maxTexture2DGather: [::core::ffi::c_int; 2usize],
    pub maxTexture3D: [::core::ffi::c_int; 3usize],
    pub maxTexture3DAlt: [::core::ffi::c_int; 3usize],
    pub maxTextureCubemap: ::core::ffi::c_int,
    pub maxTexture1DLayered: [::core::ffi::c_int; 2usize],
    pub maxTexture2DLayered: [::core::ffi::c_int; 3usize],
    pub maxTextureCubemapLayered: [::core::ffi::c_int; 2usize],
    pub maxSurface1D: ::core::ffi::c_int,
    pub maxSurface2D: [::core::ffi::c_int; 2usize],
    pub maxSurface3D: [::core::ffi::c_int; 3usize],
    pub maxSurface1DLayered: [::core::ffi::c_int; 2usize],
    pub maxSurface2DLayered: [::core::ffi::c_int; 3usize],
    pub maxSurfaceCubemap: ::core::ffi::c_int,
    pub maxSurfaceCubemapLayered: [::core::ffi::c_int; 2usize],
    pub surfaceAlignment: usize,
    pub concurrentKernels: ::core::ffi::c_int,
    pub ECCEnabled: ::core::ffi::c_int,
    pub pciBusID: ::core::ffi::c_int,
    pub pciDeviceID: ::core::ffi::c_int,
    pub pciDomainID: ::core::ffi::c_int,
    pub tccDriver: ::core::ffi::c_int,
    pub asyncEngineCount: ::core::ffi::c_int,
    pub unifiedAddressing: ::core::ffi::c_int,
    pub memoryClockRate: ::core::ffi::c_int,
    pub memoryBusWidth: ::core::ffi::c_int,
    pub l2CacheSize: ::core::ffi::c_int,
    pub persistingL2CacheMaxSize: ::core::ffi::c_int,
    pub maxThreadsPerMultiProcessor: ::core::ffi::c_int,
    pub streamPrioritiesSupported: ::core::ffi::c_int,
    pub globalL1CacheSupported: ::core::ffi::c_int,
    pub localL1CacheSupported: ::core::ffi::c_int,
    pub sharedMemPerMultiprocessor: usize,
    pub regsPerMultiprocessor: ::core::ffi::c_int,
    pub managedMemory: ::core::ffi::c_int,
    pub isMultiGpuBoard: ::core::ffi::c_int,
    pub multiGpuBoardGroupID: ::core::ffi::c_int,
    pub hostNativeAtomicSupported: ::core::ffi::c_int,
    pub singleToDoublePrecisionPerfRatio: ::core::ffi::c_int,
    pub pageableMemoryAccess: ::core::ffi::c_int,
    pub concurrentManagedAccess: ::core::ffi::c_int,
    pub computePreemptionSupported: ::core::ffi::c_int,
    pub canUseHostPointerForRegisteredMem: ::core::ffi::c_int,
    pub cooperativeLaunch: ::core::ffi::c_int,
    pub cooperativeMultiDeviceLaunch: ::core::ffi::c_int,
    pub sharedMemPerBlockOptin: usize,
    pub pageableMemoryAccessUsesHostPageTables: ::core::ffi::c_int,
    pub directManagedMemAccessFromHost: ::core::ffi::c_int,
    pub maxBlocksPerMultiProcessor: ::core::ffi::c_int,
    pub accessPolicyMaxWindowSize: ::core::ffi::c_int,
    pub reservedSharedMemPerBlock: usize,
    pub hostRegisterSupported: ::core::ffi::c_int,
    pub sparseHipArraySupported: ::core::ffi::c_int,
    pub hostRegisterReadOnlySupported: ::core::ffi::c_int,
    pub timelineSemaphoreInteropSupported: ::core::ffi::c_int,
    pub memoryPoolsSupported: ::core::ffi::c_int,
    pub gpuDirectRDMASupported: ::core::ffi::c_int,
    pub gpuDirectRDMAFlushWritesOptions: ::core::ffi::c_uint,
    pub gpuDirectRDMAWritesOrdering: ::core::ffi::c_int,
    pub memoryPoolSupportedHandleTypes: ::core::ffi::c_uint,
    pub deferredMappingHipArraySupported: ::core::ffi::c_int,
    pub ipcEventSupported: ::core::ffi::c_int,
    pub clusterLaunch: ::core::ffi::c_int,
    pub unifiedFunctionPointers: ::core::ffi::c_int,
    pub reserved: [::core::ffi::c_int; 63usize],
    pub hipReserved: [::core::ffi::c_int; 32usize],
    pub gcnArchName: [::core::ffi::c_char; 256usize],
    pub maxSharedMemoryPerMultiProcessor: usize,
    pub clockInstructionRate: ::core::ffi::c_int,
    pub arch: hipDeviceArch_t,
    pub hdpMemFlushCntl: *mut ::core::ffi::c_uint,
    pub hdpRegFlushCntl: *mut ::core::ffi::c_uint,
    pub cooperativeMultiDeviceUnmatchedFunc: ::core::ffi::c_int,
    pub cooperativeMultiDeviceUnmatchedGridDim: ::core::ffi::c_int,
    pub cooperativeMultiDeviceUnmatchedBlockDim: ::core::ffi::c_int,
    pub cooperativeMultiDeviceUnmatchedSharedMem: ::core::ffi::c_int,
    pub isLargeBar: ::core::ffi::c_int,
    pub asicRevision: ::core::ffi::c_int,
}
pub type hipError_t = ::core::ffi::c_uint;
pub type hipDeviceAttribute_t = ::core::ffi::c_uint;
pub type hipDeviceptr_t = *mut ::core::ffi::c_void;
pub type hipFunction_attribute = ::core::ffi::c_uint;
pub type hipDevice_t = ::core::ffi::c_int;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ihipStream_t {
    _unused: [u8; 0],
}
pub type hipStream_t = *mut ihipStream_t;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ihipModule_t {
    _unused: [u8; 0],
}
pub type hipModule_t = *mut ihipModule_t;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ihipModuleSymbol_t {
    _unused: [u8; 0],
}
pub type hipFunction_t = *mut ihipModuleSymbol_t;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ihipEvent_t {
    _unused: [u8; 0],
}
pub type hipEvent_t = *mut ihipEvent_t;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ihipGraph {
    _unused: [u8; 0],
}
pub type hipGraph_t = *mut ihipGraph;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipGraphExec {
    _unused: [u8; 0],
}
pub type hipGraphExec_t = *mut hipGraphExec;
pub type hipStreamCaptureMode = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipDeviceProp_tR0000 {
    pub name: [::core::ffi::c_char; 256usize],
    pub totalGlobalMem: usize,
    pub sharedMemPerBlock: usize,
    pub regsPerBlock: ::core::ffi::c_int,
    pub warpSize: ::core::ffi::c_int,
    pub maxThreadsPerBlock: ::core::ffi::c_int,
    pub maxThreadsDim: [::core::ffi::c_int; 3usize],
    pub maxGridSize: [::core::ffi::c_int; 3usize],
    pub clockRate: ::core::ffi::c_int,
    pub memoryClockRate: ::core::ffi::c_int,
    pub memoryBusWidth: ::core::ffi::c_int,
    pub totalConstMem: usize,
    pub major: ::core::ffi::c_int,
    pub minor: ::core::ffi::c_int,
    pub multiProcessorCount: ::core::ffi::c_int,
    pub l2CacheSize: ::core::ffi::c_int,
    pub maxThreadsPerMultiProcessor: ::core::ffi::c_int,
    pub computeMode: ::core::ffi::c_int,
    pub clockInstructionRate: ::core::ffi::c_int,
    pub arch: hipDeviceArch_t,
    pub concurrentKernels: ::core::ffi::c_int,
    pub pciDomainID: ::core::ffi::c_int,
    pub pciBusID: ::core::ffi::c_int,
    pub pciDeviceID: ::core::ffi::c_int,
    pub maxSharedMemoryPerMultiProcessor: usize,
    pub isMultiGpuBoard: ::core::ffi::c_int,
    pub canMapHostMemory: ::core::ffi::c_int,
    pub gcnArch: ::core::ffi::c_int,
    pub gcnArchName: [::core::ffi::c_char; 256usize],
    pub integrated: ::core::ffi::c_int,
    pub cooperativeLaunch: ::core::ffi::c_int,
    pub cooperativeMultiDeviceLaunch: ::core::ffi::c_int,
    pub maxTexture1DLinear: ::core::ffi::c_int,
    pub maxTexture1D: ::core::ffi::c_int,
    pub maxTexture2D: [::core::ffi::c_int; 2usize],
    pub maxTexture3D: [::core::ffi::c_int; 3usize],
    pub hdpMemFlushCntl: *mut ::core::ffi::c_uint,
    pub hdpRegFlushCntl: *mut ::core::ffi::c_uint,
    pub memPitch: usize,
    pub textureAlignment: usize,
    pub texturePitchAlignment: usize,
    pub kernelExecTimeoutEnabled: ::core::ffi::c_int,
    pub ECCEnabled: ::core::ffi::c_int,
    pub tccDriver: ::core::ffi::c_int,
    pub cooperativeMultiDeviceUnmatchedFunc: ::core::ffi::c_int,
    pub cooperativeMultiDeviceUnmatchedGridDim: ::core::ffi::c_int,
    pub cooperativeMultiDeviceUnmatchedBlockDim: ::core::ffi::c_int,
    pub cooperativeMultiDeviceUnmatchedSharedMem: ::core::ffi::c_int,
    pub isLargeBar: ::core::ffi::c_int,
    pub asicRevision: ::core::ffi::c_int,
    pub managedMemory: ::core::ffi::c_int,
    pub directManagedMemAccessFromHost: ::core::ffi::c_int,
    pub concurrentManagedAccess: ::core::ffi::c_int,
    pub pageableMemoryAccess: ::core::ffi::c_int,
    pub pageableMemoryAccessUsesHostPageTables: ::core::ffi::c_int,
}
pub type hiprtcResult = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct _hiprtcProgram {
    _unused: [u8; 0],
}
pub type hiprtcProgram = *mut _hiprtcProgram;
pub const HIPRTC_ERROR_COMPILATION: hiprtcResult = 6;
pub const HIPRTC_ERROR_INVALID_OPTION: hiprtcResult = 5;
pub const HIPRTC_SUCCESS: hiprtcResult = 0;
pub const HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: hipFunction_attribute = 3;
pub const HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: hipFunction_attribute = 0;
pub const HIP_FUNC_ATTRIBUTE_NUM_REGS: hipFunction_attribute = 4;
pub const HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: hipFunction_attribute = 1;
pub const hipDeviceAttributeClockRate: hipDeviceAttribute_t = 5;
pub const hipDeviceAttributeL2CacheSize: hipDeviceAttribute_t = 19;
pub const hipDeviceAttributeMaxSharedMemoryPerBlock: hipDeviceAttribute_t = 74;
pub const hipDeviceAttributeMultiprocessorCount: hipDeviceAttribute_t = 63;
pub const hipDeviceAttributeWallClockRate: hipDeviceAttribute_t = 10017;
pub const hipErrorOutOfMemory: hipError_t = 2;
pub const hipEventDefault: u32 = 0;
pub const hipStreamCaptureModeThreadLocal: hipStreamCaptureMode = 1;
pub const hipStreamNonBlocking: u32 = 1;
pub const hipSuccess: hipError_t = 0;

function_table! {
    /// `libamdhip64.so`, of ROCm 5.2 or later.
    pub(crate) struct Hip {
        required {
            fn hipDeviceGet(device: *mut hipDevice_t, ordinal: ::core::ffi::c_int) -> hipError_t;
            fn hipDeviceGetAttribute(
                pi: *mut ::core::ffi::c_int,
                attr: hipDeviceAttribute_t,
                deviceId: ::core::ffi::c_int,
            ) -> hipError_t;
            fn hipDeviceGetName(
                name: *mut ::core::ffi::c_char,
                len: ::core::ffi::c_int,
                device: hipDevice_t,
            ) -> hipError_t;
            fn hipDeviceGetPCIBusId(
                pciBusId: *mut ::core::ffi::c_char,
                len: ::core::ffi::c_int,
                device: ::core::ffi::c_int,
            ) -> hipError_t;
            fn hipDeviceTotalMem(bytes: *mut usize, device: hipDevice_t) -> hipError_t;
            fn hipDriverGetVersion(driverVersion: *mut ::core::ffi::c_int) -> hipError_t;
            fn hipEventCreateWithFlags(
                event: *mut hipEvent_t,
                flags: ::core::ffi::c_uint,
            ) -> hipError_t;
            fn hipEventDestroy(event: hipEvent_t) -> hipError_t;
            fn hipEventElapsedTime(ms: *mut f32, start: hipEvent_t, stop: hipEvent_t)
            -> hipError_t;
            fn hipEventRecord(event: hipEvent_t, stream: hipStream_t) -> hipError_t;
            fn hipFree(ptr: *mut ::core::ffi::c_void) -> hipError_t;
            fn hipFuncGetAttribute(
                value: *mut ::core::ffi::c_int,
                attrib: hipFunction_attribute,
                hfunc: hipFunction_t,
            ) -> hipError_t;
            fn hipGetDeviceCount(count: *mut ::core::ffi::c_int) -> hipError_t;
            fn hipGetErrorName(hip_error: hipError_t) -> *const ::core::ffi::c_char;
            fn hipGetErrorString(hipError: hipError_t) -> *const ::core::ffi::c_char;
            fn hipGraphDestroy(graph: hipGraph_t) -> hipError_t;
            fn hipGraphExecDestroy(graphExec: hipGraphExec_t) -> hipError_t;
            fn hipGraphInstantiateWithFlags(
                pGraphExec: *mut hipGraphExec_t,
                graph: hipGraph_t,
                flags: ::core::ffi::c_ulonglong,
            ) -> hipError_t;
            fn hipGraphLaunch(graphExec: hipGraphExec_t, stream: hipStream_t) -> hipError_t;
            fn hipInit(flags: ::core::ffi::c_uint) -> hipError_t;
            fn hipMalloc(ptr: *mut *mut ::core::ffi::c_void, size: usize) -> hipError_t;
            fn hipMemGetInfo(free: *mut usize, total: *mut usize) -> hipError_t;
            fn hipMemcpyDtoHAsync(
                dst: *mut ::core::ffi::c_void,
                src: hipDeviceptr_t,
                sizeBytes: usize,
                stream: hipStream_t,
            ) -> hipError_t;
            fn hipMemcpyHtoDAsync(
                dst: hipDeviceptr_t,
                src: *mut ::core::ffi::c_void,
                sizeBytes: usize,
                stream: hipStream_t,
            ) -> hipError_t;
            fn hipMemsetD32Async(
                dst: hipDeviceptr_t,
                value: ::core::ffi::c_int,
                count: usize,
                stream: hipStream_t,
            ) -> hipError_t;
            fn hipModuleGetFunction(
                function: *mut hipFunction_t,
                module: hipModule_t,
                kname: *const ::core::ffi::c_char,
            ) -> hipError_t;
            fn hipModuleLaunchKernel(
                f: hipFunction_t,
                gridDimX: ::core::ffi::c_uint,
                gridDimY: ::core::ffi::c_uint,
                gridDimZ: ::core::ffi::c_uint,
                blockDimX: ::core::ffi::c_uint,
                blockDimY: ::core::ffi::c_uint,
                blockDimZ: ::core::ffi::c_uint,
                sharedMemBytes: ::core::ffi::c_uint,
                stream: hipStream_t,
                kernelParams: *mut *mut ::core::ffi::c_void,
                extra: *mut *mut ::core::ffi::c_void,
            ) -> hipError_t;
            fn hipModuleLoadData(
                module: *mut hipModule_t,
                image: *const ::core::ffi::c_void,
            ) -> hipError_t;
            fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
                numBlocks: *mut ::core::ffi::c_int,
                f: hipFunction_t,
                blockSize: ::core::ffi::c_int,
                dynSharedMemPerBlk: usize,
            ) -> hipError_t;
            fn hipModuleUnload(module: hipModule_t) -> hipError_t;
            fn hipRuntimeGetVersion(runtimeVersion: *mut ::core::ffi::c_int) -> hipError_t;
            fn hipSetDevice(deviceId: ::core::ffi::c_int) -> hipError_t;
            fn hipStreamBeginCapture(stream: hipStream_t, mode: hipStreamCaptureMode)
            -> hipError_t;
            fn hipStreamCreateWithFlags(
                stream: *mut hipStream_t,
                flags: ::core::ffi::c_uint,
            ) -> hipError_t;
            fn hipStreamDestroy(stream: hipStream_t) -> hipError_t;
            fn hipStreamEndCapture(stream: hipStream_t, pGraph: *mut hipGraph_t) -> hipError_t;
            fn hipStreamSynchronize(stream: hipStream_t) -> hipError_t;
        }
        optional {
            fn hipGetDevicePropertiesR0600(
                prop: *mut hipDeviceProp_tR0600,
                deviceId: ::core::ffi::c_int,
            ) -> hipError_t;
            fn hipGraphUpload(graphExec: hipGraphExec_t, stream: hipStream_t) -> hipError_t;
            fn hipModuleLaunchCooperativeKernel(
                f: hipFunction_t,
                gridDimX: ::core::ffi::c_uint,
                gridDimY: ::core::ffi::c_uint,
                gridDimZ: ::core::ffi::c_uint,
                blockDimX: ::core::ffi::c_uint,
                blockDimY: ::core::ffi::c_uint,
                blockDimZ: ::core::ffi::c_uint,
                sharedMemBytes: ::core::ffi::c_uint,
                stream: hipStream_t,
                kernelParams: *mut *mut ::core::ffi::c_void,
            ) -> hipError_t;
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
            fn hiprtcCompileProgram(
                prog: hiprtcProgram,
                numOptions: ::core::ffi::c_int,
                options: *mut *const ::core::ffi::c_char,
            ) -> hiprtcResult;
            fn hiprtcCreateProgram(
                prog: *mut hiprtcProgram,
                src: *const ::core::ffi::c_char,
                name: *const ::core::ffi::c_char,
                numHeaders: ::core::ffi::c_int,
                headers: *mut *const ::core::ffi::c_char,
                includeNames: *mut *const ::core::ffi::c_char,
            ) -> hiprtcResult;
            fn hiprtcDestroyProgram(prog: *mut hiprtcProgram) -> hiprtcResult;
            fn hiprtcGetCode(prog: hiprtcProgram, code: *mut ::core::ffi::c_char) -> hiprtcResult;
            fn hiprtcGetCodeSize(prog: hiprtcProgram, codeSizeRet: *mut usize) -> hiprtcResult;
            fn hiprtcGetErrorString(result: hiprtcResult) -> *const ::core::ffi::c_char;
            fn hiprtcGetProgramLog(
                prog: hiprtcProgram,
                log: *mut ::core::ffi::c_char,
            ) -> hiprtcResult;
            fn hiprtcGetProgramLogSize(prog: hiprtcProgram, logSizeRet: *mut usize)
            -> hiprtcResult;
            fn hiprtcVersion(
                major: *mut ::core::ffi::c_int,
                minor: *mut ::core::ffi::c_int,
            ) -> hiprtcResult;
        }
        optional {}
    }
}
