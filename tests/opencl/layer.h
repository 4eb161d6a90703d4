/* What every layer between the loader and a driver has: its own table, the driver's, and the version of layers. */
#include <CL/cl_layer.h>
#include <stdlib.h>
#include <string.h>

static struct _cl_icd_dispatch layer;
static const struct _cl_icd_dispatch *driver;

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t room, void *value, size_t *size)
{
    if (what != CL_LAYER_API_VERSION)
        return CL_INVALID_VALUE;
    if (value && room >= sizeof(cl_layer_api_version))
        *(cl_layer_api_version *)value = CL_LAYER_API_VERSION_100;
    if (size)
        *size = sizeof(cl_layer_api_version);
    return CL_SUCCESS;
}
