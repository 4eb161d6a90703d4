/* HIP's names over CUDA: a library that lets the file of HIP run on a real NVIDIA card, with the same memory, streams,
 * events and kernels. It tests what nbxrt makes of that file, and nothing of AMD's.
 *
 *     cc -shared -fPIC -O1 -Wl,-soname,libamdhip64.so.6 scripts/hip_over_cuda.c -o libamdhip64.so.6 -ldl
 *     nbxrt conform hip --library ./libamdhip64.so.6 --image MODULE.ptx
 *
 * HIP_OVER_CUDA_RUNTIME and HIP_OVER_CUDA_DRIVER name CUDA's two libraries where the loader does not find them. A function
 * that takes up to six integers and pointers is passed on as it is: HIP's have CUDA's parameters, and its codes are CUDA's.
 * It says that it is HIP 6.2. For 64-bit Linux, whose calling conventions pass six integers in registers. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef long word;
typedef word function(word, word, word, word, word, word);

static void *opened(const char *variable, const char *const *names)
{
    const char *named = getenv(variable);
    void *library = named ? dlopen(named, RTLD_NOW) : NULL;
    for (; !library && *names; names++)
        library = dlopen(*names, RTLD_NOW);
    if (!library)
        fprintf(stderr, "hip_over_cuda: there is no CUDA library: set %s\n", variable);
    return library;
}

static void *runtime(void)
{
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", NULL};
    static void *library;
    return library ? library : (library = opened("HIP_OVER_CUDA_RUNTIME", names));
}

static void *driver(void)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    static void *library;
    return library ? library : (library = opened("HIP_OVER_CUDA_DRIVER", names));
}

static function *of(void *library, const char *symbol)
{
    return library ? (function *)dlsym(library, symbol) : NULL;
}

/* Whether the thread is in the context of its current device. */
static int is_in_context(void)
{
    function *current = of(driver(), "cuCtxGetCurrent"), *bound = of(driver(), "cuCtxGetDevice");
    function *chosen = of(runtime(), "cudaGetDevice");
    void *context = NULL;
    int here = -1, wanted = -2;
    return current && bound && chosen && !current((word)&context, 0, 0, 0, 0, 0) && context &&
           !bound((word)&here, 0, 0, 0, 0, 0) && !chosen((word)&wanted, 0, 0, 0, 0, 0) && here == wanted;
}

/* The driver's functions work in a context, which the runtime makes and binds at its first call on a thread. A thread
 * that is in one is left there: while it captures a stream, CUDA refuses what binds it. */
static function *in_context(const char *symbol)
{
    function *init = of(driver(), "cuInit"), *enter = of(runtime(), "cudaFree");
    if (!init || init(0, 0, 0, 0, 0, 0))
        return NULL;
    if (!is_in_context() && (!enter || enter(0, 0, 0, 0, 0, 0)))
        return NULL;
    return of(driver(), symbol);
}

enum { SUCCESS, INVALID_VALUE = 1, NO_DEVICE = 100, NOT_SUPPORTED = 801 };

#define FORWARD(hip, library, cuda) \
    word hip(word a, word b, word c, word d, word e, word f) \
    { \
        static function *called; \
        if (!called) \
            called = of(library, cuda); \
        return called ? (int)called(a, b, c, d, e, f) : NOT_SUPPORTED; \
    }
#define TEXT(hip, cuda) \
    const char *hip(int code) \
    { \
        function *called = of(runtime(), cuda); \
        return called ? (const char *)called(code, 0, 0, 0, 0, 0) : NULL; \
    }
#define DRIVER(hip, cuda) \
    word hip(word a, word b, word c, word d, word e, word f) \
    { \
        function *called = in_context(cuda); \
        return called ? (int)called(a, b, c, d, e, f) : NO_DEVICE; \
    }
#define SAME(name) FORWARD(hip##name, runtime(), "cuda" #name)

/* Devices */
SAME(GetDeviceCount) SAME(SetDevice) SAME(GetDevice) SAME(DeviceSynchronize) SAME(MemGetInfo) SAME(DeviceGetPCIBusId)
SAME(DeviceCanAccessPeer) SAME(DeviceEnablePeerAccess) SAME(DeviceDisablePeerAccess) SAME(DriverGetVersion)
DRIVER(hipDeviceGetName, "cuDeviceGetName")

int hipRuntimeGetVersion(int *version)
{
    *version = 60200000;
    return SUCCESS;
}

int hipDeviceGetUuid(void *uuid, int device)
{
    function *called = in_context("cuDeviceGetUuid_v2");
    called = called ? called : in_context("cuDeviceGetUuid");
    return called ? (int)called((word)uuid, device, 0, 0, 0, 0) : NO_DEVICE;
}

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    static const int numbers[][2] = {   /* HIP's, CUDA's */
        {56, 1}, {74, 8}, {75, 97}, {10002, 81}, {71, 12}, {87, 10}, {63, 16}, {23, 75}, {61, 76}, {16, 18}, {3, 19},
        {85, 41}, {24, 83}, {9, 89}, {65, 88}, {88, 115}, {67, 33}, {68, 34}, {69, 50}, {5, 13}, {19, 38},
        {29, 5}, {30, 6}, {31, 7},
    };
    if (attribute == 89) {              /* virtual memory, which CUDA's runtime has no number for */
        function *called = in_context("cuDeviceGetAttribute");
        *value = 1;
        return called ? (int)called((word)value, 102, device, 0, 0, 0) : SUCCESS;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i][0] == attribute)
            return (int)of(runtime(), "cudaDeviceGetAttribute")((word)value, numbers[i][1], device, 0, 0, 0);
    return INVALID_VALUE;
}

/* Memory */
SAME(Malloc) SAME(Free) SAME(Memcpy) SAME(MemcpyAsync) SAME(Memset) SAME(MemsetAsync) SAME(MemcpyPeer)
SAME(MemcpyPeerAsync) SAME(HostRegister) SAME(HostUnregister) SAME(HostGetDevicePointer) SAME(MallocManaged)
SAME(MallocAsync) SAME(FreeAsync) SAME(DeviceGetDefaultMemPool) SAME(MemPoolGetAttribute) SAME(MemPoolSetAttribute)
SAME(MemPoolTrimTo)
FORWARD(hipHostFree, runtime(), "cudaFreeHost")

int hipHostMalloc(void **address, size_t nbytes, unsigned flags)
{
    return flags ? NOT_SUPPORTED : (int)of(runtime(), "cudaMallocHost")((word)address, (word)nbytes, 0, 0, 0, 0);
}

/* CUDA's structure has the same four fields first, and is longer from 13 on. */
int hipPointerGetAttributes(void *attributes, const void *address)
{
    unsigned char theirs[256] = {0};
    int status = (int)of(runtime(), "cudaPointerGetAttributes")((word)theirs, (word)address, 0, 0, 0, 0);
    if (!status) {
        memset(attributes, 0, 32);
        memcpy(attributes, theirs, 24);
    }
    return status;
}

/* From 13 on CUDA takes a place of 8 bytes by value: a type, 1 for a device, and its ordinal. */
static int takes_places(void)
{
    int version = 0;
    of(runtime(), "cudaRuntimeGetVersion")((word)&version, 0, 0, 0, 0, 0);
    return version >= 13000;
}

static word place(int device)
{
    return (word)((uint64_t)(uint32_t)device << 32 | 1);
}

int hipMemPrefetchAsync(void *address, size_t nbytes, int device, void *stream)
{
    function *called = of(runtime(), "cudaMemPrefetchAsync");
    if (takes_places())
        return (int)called((word)address, (word)nbytes, place(device), 0, (word)stream, 0);
    return (int)called((word)address, (word)nbytes, device, (word)stream, 0, 0);
}

int hipMemAdvise(void *address, size_t nbytes, int advice, int device)
{
    word where = takes_places() ? place(device) : device;
    return (int)of(runtime(), "cudaMemAdvise")((word)address, (word)nbytes, advice, where, 0, 0);
}

/* Streams, events, errors */
SAME(StreamCreate) SAME(StreamCreateWithFlags) SAME(StreamCreateWithPriority) SAME(DeviceGetStreamPriorityRange)
SAME(StreamDestroy) SAME(StreamSynchronize) SAME(StreamQuery) SAME(StreamWaitEvent) SAME(EventCreate)
SAME(EventCreateWithFlags) SAME(EventDestroy) SAME(EventSynchronize) SAME(EventQuery) SAME(EventElapsedTime)
SAME(GetLastError) SAME(PeekAtLastError)
TEXT(hipGetErrorName, "cudaGetErrorName") TEXT(hipGetErrorString, "cudaGetErrorString")

word hipEventRecord(word event, word stream)
{
    function *called = of(runtime(), "cudaEventRecord");
    called = called ? called : in_context("cuEventRecord");
    return called ? (int)called(event, stream, 0, 0, 0, 0) : NO_DEVICE;
}

/* Other processes: handles of 64 bytes by value */
struct handle { char bytes[64]; };
SAME(IpcGetMemHandle) SAME(IpcCloseMemHandle) SAME(IpcGetEventHandle)

int hipIpcOpenMemHandle(void **address, struct handle handle, unsigned flags)
{
    return ((int (*)(void **, struct handle, unsigned))dlsym(runtime(), "cudaIpcOpenMemHandle"))(address, handle, flags);
}

int hipIpcOpenEventHandle(void **event, struct handle handle)
{
    return ((int (*)(void **, struct handle))dlsym(runtime(), "cudaIpcOpenEventHandle"))(event, handle);
}

/* Graphs */
SAME(StreamBeginCapture) SAME(StreamEndCapture) SAME(StreamIsCapturing) SAME(GraphInstantiateWithFlags) SAME(GraphLaunch)
SAME(GraphDestroy) SAME(GraphExecDestroy)

int hipGraphExecUpdate(void *executable, void *graph, void **node, int *result)
{
    struct { int result; void *node, *from; } said = {0, NULL, NULL};
    int status = (int)of(runtime(), "cudaGraphExecUpdate")((word)executable, (word)graph, (word)&said, 0, 0, 0);
    *node = said.node;
    *result = said.result;
    return status;
}

/* Virtual memory: addresses and handles are pointers in HIP and integers of the same size in CUDA */
DRIVER(hipMemGetAllocationGranularity, "cuMemGetAllocationGranularity") DRIVER(hipMemAddressReserve, "cuMemAddressReserve")
DRIVER(hipMemAddressFree, "cuMemAddressFree") DRIVER(hipMemCreate, "cuMemCreate") DRIVER(hipMemRelease, "cuMemRelease")
DRIVER(hipMemMap, "cuMemMap") DRIVER(hipMemUnmap, "cuMemUnmap") DRIVER(hipMemSetAccess, "cuMemSetAccess")

/* Modules */
DRIVER(hipModuleLoadData, "cuModuleLoadData") DRIVER(hipModuleUnload, "cuModuleUnload")
DRIVER(hipModuleGetFunction, "cuModuleGetFunction") DRIVER(hipModuleGetGlobal, "cuModuleGetGlobal_v2")
DRIVER(hipFuncGetAttribute, "cuFuncGetAttribute")

int hipModuleLaunchKernel(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **arguments, void **extra)
{
    int (*called)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **) =
        (int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                 void **))(void *)in_context("cuLaunchKernel");
    return called ? called(kernel, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra) : NO_DEVICE;
}
