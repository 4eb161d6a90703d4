/* The same for HIP, whose functions Triton asks the library for by name. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "stub_cuda.c"

int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **parameters, void **extra)
{
    struct config config = { { gx, gy, gz }, { bx, by, bz }, shared, stream, NULL, 0 };
    return cuLaunchKernelEx(&config, function, parameters, extra);
}
int hipModuleLaunchCooperativeKernel(void) { return 1; }
int hipDrvLaunchKernelEx(void *config, void *function, void **parameters, void **extra)
{
    return cuLaunchKernelEx(config, function, parameters, extra);
}
int hipDriverGetVersion(int *version) { return *version = 70000000, OK; }
int hipRuntimeGetVersion(int *version) { return *version = 70000000, OK; }
const char *hipGetLastError(void) { return ""; }
const char *hipGetErrorString(int error) { return (void)error, "an error of the stub"; }
int hipGetDevicePropertiesR0600(void *properties, int device)
{
    (void)device;
    memset(properties, 0, 1472);
    memcpy((char *)properties + 296, &(size_t){ 65536 }, sizeof(size_t));   /* sharedMemPerBlock */
    strcpy((char *)properties + 1160, "gfx942");
    return OK;
}
int hipGetDeviceProperties(void *properties, int device) { return hipGetDevicePropertiesR0600(properties, device); }
int hipModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values)
{
    (void)n, (void)options, (void)values;
    return cuModuleLoadData(module, image);
}
int hipModuleUnload(void *module) { return (void)module, OK; }
int hipModuleGetFunction(void **function, void *module, const char *name)
{
    return cuModuleGetFunction(function, module, name);
}
int hipFuncGetAttribute(int *value, int attribute, void *function)
{
    return cuFuncGetAttribute(value, attribute, function);
}
int hipPointerGetAttribute(void *data, int attribute, uint64_t pointer)
{
    return cuPointerGetAttribute(data, attribute, pointer);
}
int hipGetProcAddress(const char *symbol, void **found, int version, uint64_t flags, int *status)
{
    Dl_info here;
    (void)version, (void)flags, (void)status;
    *found = dladdr((void *)hipGetProcAddress, &here) ? dlsym(dlopen(here.dli_fname, RTLD_LAZY), symbol) : NULL;
    return *found ? OK : 500;
}
