/* A layer between the loader and a driver: its devices have shared virtual memory that the host may not touch without
   mapping it, and nothing else. What asks for more is refused, as a driver would. */
#include "layer.h"

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *size)
{
    cl_int code = driver->clGetDeviceInfo(device, what, room, value, size);
    if (code == CL_SUCCESS && value && what == CL_DEVICE_SVM_CAPABILITIES)
        *(cl_device_svm_capabilities *)value &= CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
    if (code == CL_SUCCESS && value && what == CL_DEVICE_EXTENSIONS) {
        char *found = strstr(value, "cl_intel_unified_shared_memory");
        if (found)
            *found = 'x';
    }
    return code;
}

static void *CL_API_CALL svm_alloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment)
{
    return flags & CL_MEM_SVM_FINE_GRAIN_BUFFER ? NULL : driver->clSVMAlloc(context, flags, size, alignment);
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint count, const struct _cl_icd_dispatch *target, cl_uint *count_ret,
                                            const struct _cl_icd_dispatch **layer_ret)
{
    if (count < sizeof layer / sizeof layer.clGetPlatformIDs)
        return CL_INVALID_VALUE;
    driver = target;
    layer = *target;
    layer.clGetDeviceInfo = device_info;
    layer.clSVMAlloc = svm_alloc;
    *layer_ret = &layer;
    *count_ret = sizeof layer / sizeof layer.clGetPlatformIDs;
    return CL_SUCCESS;
}
