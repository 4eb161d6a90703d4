/* A driver that does nothing and remembers launches: what Triton's own launcher passes to a driver is read from it. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { OK = 0, ROOM = 1 << 16, MOST = 256 };

static int sizes[MOST], count;
static char text[ROOM];

/* The sizes of the parameters of the kernel that is launched next. */
void stub_expect(int n, const int *of)
{
    count = n;
    memcpy(sizes, of, sizeof *of * (size_t)n);
}

/* The last launch: grid block shared stream, parameters in hexadecimal, attributes as ID:X:Y:Z. */
const char *stub_launch(void)
{
    return text;
}

void stub_forget(void)
{
    text[0] = 0;
}

static int checks;
static long launches, torn;

/* With 1, launches are only counted from now on, and those whose first three parameters are not one value, or whose
   fourth and grid do not go with it. */
void stub_check(int on)
{
    checks = on;
    if (!on)
        return;
    launches = torn = 0;
}

long stub_launches(void)
{
    return launches;
}

long stub_torn(void)
{
    return torn;
}

struct attribute { int id; char padding[4]; unsigned value[16]; };
struct config { unsigned grid[3], block[3], shared; void *stream; struct attribute *attributes; unsigned count; };

int cuLaunchKernelEx(const struct config *config, void *function, void **parameters, void **extra)
{
    char *at = text;
    (void)function, (void)extra;
    if (checks) {
        uint64_t value[3];
        uint32_t number;
        for (int i = 0; i < 3; i++)
            memcpy(&value[i], parameters[i], sizeof value[i]);
        memcpy(&number, parameters[3], sizeof number);
        __atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED);
        if (value[0] != value[1] || value[0] != value[2] || number != (value[0] >> 4) % 1000 * 2 + 3
            || config->grid[0] != (value[0] >> 9) % 2 + 1)
            __atomic_add_fetch(&torn, 1, __ATOMIC_RELAXED);
        return OK;
    }
    for (int i = 0; i < 3; i++)
        at += sprintf(at, "%u ", config->grid[i]);
    for (int i = 0; i < 3; i++)
        at += sprintf(at, "%u ", config->block[i]);
    at += sprintf(at, "%u %llu|", config->shared, (unsigned long long)(uintptr_t)config->stream);
    for (int i = 0; i < count; i++) {
        for (int byte = 0; byte < sizes[i]; byte++)
            at += sprintf(at, "%02x", ((unsigned char *)parameters[i])[byte]);
        at += sprintf(at, i + 1 < count ? "," : "");
    }
    at += sprintf(at, "|");
    for (unsigned i = 0; i < config->count; i++) {
        const struct attribute *said = &config->attributes[i];
        at += sprintf(at, "%s%d:%u:%u:%u", i ? "," : "", said->id, said->value[0], said->value[1], said->value[2]);
    }
    return OK;
}

int cuInit(unsigned flags) { return (void)flags, OK; }
int cuDriverGetVersion(int *version) { return *version = 13000, OK; }
int cuDeviceGetCount(int *devices) { return *devices = 1, OK; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, OK; }
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == 97 ? 232448 : attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 10 ? 32 : 65536;
    return OK;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { return (void)device, *context = text, OK; }
int cuCtxGetCurrent(void **context) { return *context = text, OK; }
int cuCtxSetCurrent(void *context) { return (void)context, OK; }
int cuCtxGetDevice(int *device) { return *device = 0, OK; }
int cuCtxSetLimit(int limit, size_t value) { return (void)limit, (void)value, OK; }
int cuCtxGetLimit(size_t *value, int limit) { return (void)limit, *value = 0, OK; }
int cuModuleLoadData(void **module, const void *image) { return (void)image, *module = text, OK; }
int cuModuleUnload(void *module) { return (void)module, OK; }
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    return (void)module, (void)name, *function = text, OK;
}
int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    (void)function;
    *value = attribute == 0 ? 1024 : 0;
    return OK;
}
int cuFuncSetAttribute(void *function, int attribute, int value)
{
    return (void)function, (void)attribute, (void)value, OK;
}
int cuFuncSetCacheConfig(void *function, int config) { return (void)function, (void)config, OK; }
int cuPointerGetAttribute(void *data, int attribute, uint64_t pointer)
{
    (void)attribute;
    memcpy(data, &pointer, sizeof pointer);
    return OK;
}
int cuPointerGetAttributes(unsigned n, int *attributes, void **data, uint64_t pointer)
{
    (void)n, (void)attributes;
    memcpy(data[0], &pointer, sizeof pointer);
    return OK;
}
int cuGetErrorString(int error, const char **said) { return (void)error, *said = "an error of the stub", OK; }
int cuStreamIsCapturing(void *stream, int *capturing) { return (void)stream, *capturing = 0, OK; }
int cuOccupancyMaxActiveClusters(int *clusters, void *function, const void *config)
{
    return (void)function, (void)config, *clusters = 1, OK;
}
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const void *dims, const void *strides,
                           const void *box, const void *steps, int interleave, int swizzle, int promotion, int fill)
{
    unsigned char *to = map;
    if (interleave != 0 || promotion != 2 || (uintptr_t)map % 64)
        return 1;
    memset(to, 0, 128);         /* as the simulated library does: address, ones, and what else it is told */
    memcpy(to, &address, 8);
    memset(to + 8, 255, 8);
    memcpy(to + 16, dims, 8 * rank);
    memcpy(to + 56, strides, 8 * (rank - 1));
    memcpy(to + 88, box, 4 * rank);
    for (unsigned i = 0; i < rank; i++)
        to[108 + i] = ((const unsigned char *)steps)[4 * i];
    to[113] = (unsigned char)type, to[114] = (unsigned char)rank;
    to[115] = (unsigned char)swizzle, to[116] = (unsigned char)fill;
    return OK;
}
int cuTensorMapEncodeIm2col(void) { return 1; }
