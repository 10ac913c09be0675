-- What `nsys export --type sqlite` writes, as its user guide documents the tables: those that are read,
-- with some of their columns.
PRAGMA page_size = 512;
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (
    id INTEGER NOT NULL, name TEXT, totalMemory INTEGER, smCount INTEGER, threadsPerWarp INTEGER,
    computeMajor INTEGER, computeMinor INTEGER);
CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (
    start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER, globalTid INTEGER,
    correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER,
    globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL,
    graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER,
    globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER,
    globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (
    start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT,
    globalTid INTEGER, textId INTEGER);
INSERT INTO StringIds VALUES
    (100, '[Unknown]'),
    (101, 'cudaLaunchKernel_v7000'),
    (102, 'cudaMemcpyAsync_v3020'),
    (103, 'cudaMemsetAsync_v3020'),
    (104, 'cuLaunchKernelEx'),
    (105, 'ampere_sgemm_128x64_tn'),
    (106, 'void vllm::rms_norm_kernel<float>(float*, float const*, float const*, float, int, int)'),
    (107, 'rms_norm_kernel'),
    (108, 'poll'),
    (109, 'iteration');
INSERT INTO TARGET_INFO_GPU VALUES (1, 'NVIDIA A100-SXM4-80GB', 85196734464, 108, 32, 8, 0);
-- The process sees one device, and calls it 0.
INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (1, 0, 4242);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES
    (1000, 3000, 0, 281546145665171, 11, 101, 0),
    (3500, 4000, 0, 281546145665171, 12, 102, 0),
    (4200, 4300, 0, 281546145665171, 13, 103, 0),
    (5000, 5600, 0, 281546145665171, 14, 104, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
    (3100, 7100, 0, 1, 7, 11, 281546145660928, 105, 105, NULL),
    (7400, 7900, 0, 1, 7, 14, 281546145660928, 106, 107, 99);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (7100, 7300, 0, 1, 7, 12, 281546145660928, 4096, 1);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (7300, 7350, 0, 1, 7, 13, 281546145660928, 0, 4096);
INSERT INTO NVTX_EVENTS VALUES
    (900, 6000, 59, 'execute_context_1(8)_generation_0(0)', 281546145665171, NULL),
    (5, NULL, 34, NULL, 281546145665171, 109);
