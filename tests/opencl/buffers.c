/* A layer between the loader and a driver: its devices are of OpenCL 1.2 and have buffer objects alone. What came later
   ends the process, as the tables of such drivers end before it. With LAYER_FOR only the devices whose version has that
   word are so, and nothing ends. `layer_live` counts buffers and parts of them that were not released. */
#include "layer.h"

int layer_live;

static int is_meant(cl_device_id device)
{
    char version[256] = "";
    const char *word = getenv("LAYER_FOR");
    driver->clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof version, version, NULL);
    return !word || strstr(version, word);
}

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *size)
{
    char *found;
    if (what == CL_DEVICE_SVM_CAPABILITIES && is_meant(device))
        return CL_INVALID_VALUE;
    cl_int code = driver->clGetDeviceInfo(device, what, room, value, size);
    if (code == CL_SUCCESS && value && what == CL_DEVICE_EXTENSIONS && is_meant(device))
        if ((found = strstr(value, "cl_intel_unified_shared_memory")))
            *found = 'x';
    return code;
}

static void *CL_API_CALL function_address(cl_platform_id platform, const char *name)
{
    return !getenv("LAYER_FOR") && strstr(name, "INTEL")
               ? NULL
               : driver->clGetExtensionFunctionAddressForPlatform(platform, name);
}

static cl_mem counted(cl_mem made)
{
    if (made)
        __atomic_add_fetch(&layer_live, 1, __ATOMIC_SEQ_CST);
    return made;
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *code)
{
    return counted(driver->clCreateBuffer(context, flags, size, host, code));
}

static cl_mem CL_API_CALL create_sub_buffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                                            const void *region, cl_int *code)
{
    return counted(driver->clCreateSubBuffer(buffer, flags, type, region, code));
}

static cl_int CL_API_CALL release_buffer(cl_mem buffer)
{
    __atomic_sub_fetch(&layer_live, 1, __ATOMIC_SEQ_CST);
    return driver->clReleaseMemObject(buffer);
}

static void came_later(void)
{
    abort();
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint count, const struct _cl_icd_dispatch *target, cl_uint *count_ret,
                                            const struct _cl_icd_dispatch **layer_ret)
{
    void (**entry)(void), (**end)(void) = (void (**)(void))(&layer + 1);
    if (count < sizeof layer / sizeof layer.clGetPlatformIDs)
        return CL_INVALID_VALUE;
    driver = target;
    layer = *target;
    layer.clGetDeviceInfo = device_info;
    layer.clGetExtensionFunctionAddressForPlatform = function_address;
    layer.clCreateBuffer = create_buffer;
    layer.clCreateSubBuffer = create_sub_buffer;
    layer.clReleaseMemObject = release_buffer;
    for (entry = (void (**)(void))&layer.clCreateCommandQueueWithProperties; !getenv("LAYER_FOR") && entry < end; entry++)
        *entry = came_later;
    *layer_ret = &layer;
    *count_ret = sizeof layer / sizeof layer.clGetPlatformIDs;
    return CL_SUCCESS;
}
