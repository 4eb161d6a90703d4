/* An OpenCL runtime without a device, written after CL/cl.h and CL/cl_ext.h and not after the backend file: the compiler
   holds it to the headers' declarations. Work is done when it is enqueued. NBXRT_SIM_DEVICES is the number of devices, all
   of them GPUs: the first has Intel's unified shared memory, the others fine-grained shared virtual memory.
   NBXRT_SIM_MEMORY is the bytes of each. A kernel named `add` adds vectors of 32-bit numbers. */
#define CL_TARGET_OPENCL_VERSION 300
#define _GNU_SOURCE
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum kind { GONE, CONTEXT, QUEUE, EVENT, PROGRAM, KERNEL };
enum { MOST = 8, BLOCKS = 65536, SLOTS = 4 };
struct thing { enum kind kind; int device, references; cl_ulong ended; int has_profile, is_built; void *slots[SLOTS]; cl_uint count; };
struct _cl_platform_id { int number; };
struct _cl_device_id { int number; };
static struct _cl_platform_id the_platform;
static struct _cl_device_id the_devices[MOST];
int cl_fake_live, cl_fake_memory;

static cl_ulong setting(const char *name, cl_ulong otherwise) { const char *said = getenv(name); return said ? strtoull(said, NULL, 10) : otherwise; }
static cl_uint devices(void) { cl_ulong count = setting("NBXRT_SIM_DEVICES", 1); return count < MOST ? (cl_uint)count : MOST; }
static cl_ulong memory(void) { return setting("NBXRT_SIM_MEMORY", 8ull << 30); }
static int has_usm(int device) { return device == 0; }
static int number_of(cl_device_id device)
{
    for (cl_uint at = 0; at < devices(); at++)
        if (device == &the_devices[at])
            return (int)at;
    return -1;
}
static cl_ulong now(void) { struct timespec at; clock_gettime(CLOCK_MONOTONIC, &at); return at.tv_sec * 1000000000ull + at.tv_nsec; }

static void *make(enum kind kind, int device)
{
    struct thing *made = calloc(1, sizeof *made);
    made->kind = kind, made->device = device, made->references = 1;
    __atomic_add_fetch(&cl_fake_live, 1, __ATOMIC_SEQ_CST);
    return made;
}
static struct thing *as(void *handle, enum kind kind)
{
    struct thing *it = handle;
    return it && it->kind == kind ? it : NULL;
}
static cl_int release(void *handle, enum kind kind, cl_int otherwise)
{
    struct thing *it = as(handle, kind);
    if (!it)
        return otherwise;
    it->kind = GONE; /* it is not freed, so that its later use is refused and no accident */
    __atomic_sub_fetch(&cl_fake_live, 1, __ATOMIC_SEQ_CST);
    return CL_SUCCESS;
}
static void *given_up(cl_int *error, cl_int code, void *made)
{
    if (error)
        *error = code;
    return code ? NULL : made;
}
/* A result of any size into the caller's room. */
static cl_int tell(const void *value, size_t nbytes, size_t room, void *to, size_t *told)
{
    if (to && room < nbytes)
        return CL_INVALID_VALUE;
    if (to)
        memcpy(to, value, nbytes);
    if (told)
        *told = nbytes;
    return CL_SUCCESS;
}
static cl_int number(cl_ulong value, size_t nbytes, size_t room, void *to, size_t *told) { return tell(&value, nbytes, room, to, told); }
static cl_int text(const char *value, size_t room, void *to, size_t *told) { return tell(value, strlen(value) + 1, room, to, told); }
static void finished(struct thing *queue, cl_event *event)
{
    if (!event)
        return;
    struct thing *made = make(EVENT, queue->device);
    made->ended = now(), made->has_profile = 1;
    *event = (cl_event)made;
}

/* Platforms and devices */
cl_int CL_API_CALL clGetPlatformIDs(cl_uint room, cl_platform_id *list, cl_uint *found)
{
    if ((list && !room) || (!list && !found))
        return CL_INVALID_VALUE;
    if (list)
        list[0] = &the_platform;
    if (found)
        *found = 1;
    return CL_SUCCESS;
}
cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint room, cl_device_id *list, cl_uint *found)
{
    if (platform != &the_platform)
        return CL_INVALID_PLATFORM;
    if (!devices() || !(type & CL_DEVICE_TYPE_GPU))
        return CL_DEVICE_NOT_FOUND;
    for (cl_uint at = 0; list && at < room && at < devices(); at++)
        list[at] = &the_devices[at];
    if (found)
        *found = devices();
    return CL_SUCCESS;
}
cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void *to, size_t *told)
{
    int index = number_of(device);
    char uuid[16];
    if (index < 0)
        return CL_INVALID_DEVICE;
    switch (what) {
    case CL_DEVICE_TYPE: return number(CL_DEVICE_TYPE_GPU, sizeof(cl_device_type), room, to, told);
    case CL_DEVICE_NAME: return text(has_usm(index) ? "Simulated device with unified shared memory" : "Simulated device with shared virtual memory", room, to, told);
    case CL_DEVICE_EXTENSIONS: return text(has_usm(index) ? "cl_khr_device_uuid cl_intel_unified_shared_memory" : "cl_khr_device_uuid", room, to, told);
    case CL_DEVICE_SVM_CAPABILITIES:
        return number(has_usm(index) ? 0 : CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_BUFFER, sizeof(cl_device_svm_capabilities), room, to, told);
    case CL_DEVICE_GLOBAL_MEM_SIZE: return number(memory(), 8, room, to, told);
    case CL_DEVICE_LOCAL_MEM_SIZE: return number(65536, 8, room, to, told);
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE: return number(4 << 20, 8, room, to, told);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE: return number(1024, sizeof(size_t), room, to, told);
    case CL_DEVICE_MAX_COMPUTE_UNITS: return number(32, 4, room, to, told);
    case CL_DEVICE_HOST_UNIFIED_MEMORY: return number(0, 4, room, to, told);
    case CL_DEVICE_UUID_KHR: return memset(uuid, 0x30 + index, sizeof uuid), tell(uuid, sizeof uuid, room, to, told);
    default: return CL_INVALID_VALUE;
    }
}
cl_context CL_API_CALL clCreateContext(const cl_context_properties *properties, cl_uint count, const cl_device_id *list, void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data, cl_int *error)
{
    (void)properties, (void)notify, (void)data;
    int index = count == 1 && list ? number_of(list[0]) : -1;
    return index < 0 ? given_up(error, CL_INVALID_DEVICE, NULL) : given_up(error, CL_SUCCESS, make(CONTEXT, index));
}
cl_int CL_API_CALL clReleaseContext(cl_context context) { return release(context, CONTEXT, CL_INVALID_CONTEXT); }

/* Memory, which lies in this process */
static struct { void *at; size_t nbytes; int device; } given[BLOCKS];
static cl_ulong used[MOST];
static pthread_mutex_t giving = PTHREAD_MUTEX_INITIALIZER;
static void *allocate(int device, int counts, size_t nbytes, size_t alignment, cl_int *error)
{
    int place = 0;
    void *at = NULL;
    if (!nbytes || nbytes > (4ull << 30))
        return given_up(error, CL_INVALID_BUFFER_SIZE, NULL);
    pthread_mutex_lock(&giving);
    while (place < BLOCKS - 1 && given[place].at)
        place++;
    if (!given[place].at && (!counts || used[device] + nbytes <= memory()) && !posix_memalign(&at, alignment ? alignment : 128, nbytes)) {
        given[place].at = at, given[place].nbytes = nbytes, given[place].device = counts ? device : -1;
        used[device] += counts ? nbytes : 0;
        cl_fake_memory++;
    }
    pthread_mutex_unlock(&giving);
    return given_up(error, at ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE, at);
}
static int give_back(void *at)
{
    int is_ours = 0;
    pthread_mutex_lock(&giving);
    for (int place = 0; at && place < BLOCKS && !is_ours; place++)
        if (given[place].at == at) {
            if (given[place].device >= 0)
                used[given[place].device] -= given[place].nbytes;
            given[place].at = NULL, cl_fake_memory--, is_ours = 1;
            free(at);
        }
    pthread_mutex_unlock(&giving);
    return is_ours;
}
void *CL_API_CALL clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t nbytes, cl_uint alignment)
{
    struct thing *it = as(context, CONTEXT);
    if (!it || has_usm(it->device) || alignment > 128 || !(flags & CL_MEM_READ_WRITE))
        return NULL;
    return allocate(it->device, !(flags & CL_MEM_SVM_FINE_GRAIN_BUFFER), nbytes, alignment, NULL);
}
void CL_API_CALL clSVMFree(cl_context context, void *at) { (void)context; give_back(at); }
static void *clDeviceMemAllocINTEL_(cl_context context, cl_device_id device, const cl_mem_properties_intel *properties, size_t nbytes, cl_uint alignment, cl_int *error)
{
    struct thing *it = as(context, CONTEXT);
    if (!it || !has_usm(it->device) || properties)
        return given_up(error, CL_INVALID_CONTEXT, NULL);
    return number_of(device) == it->device ? allocate(it->device, 1, nbytes, alignment, error) : given_up(error, CL_INVALID_DEVICE, NULL);
}
static void *clHostMemAllocINTEL_(cl_context context, const cl_mem_properties_intel *properties, size_t nbytes, cl_uint alignment, cl_int *error)
{
    struct thing *it = as(context, CONTEXT);
    if (!it || !has_usm(it->device) || properties)
        return given_up(error, CL_INVALID_CONTEXT, NULL);
    return allocate(it->device, 0, nbytes, alignment, error);
}
static cl_int clMemBlockingFreeINTEL_(cl_context context, void *at) { return as(context, CONTEXT) && give_back(at) ? CL_SUCCESS : CL_INVALID_VALUE; }

/* Queues, their work, and events */
cl_command_queue CL_API_CALL clCreateCommandQueueWithProperties(cl_context context, cl_device_id device, const cl_queue_properties *properties, cl_int *error)
{
    struct thing *it = as(context, CONTEXT);
    if (!it)
        return given_up(error, CL_INVALID_CONTEXT, NULL);
    if (number_of(device) != it->device)
        return given_up(error, CL_INVALID_DEVICE, NULL);
    if (properties && (properties[0] != CL_QUEUE_PROPERTIES || properties[1] != CL_QUEUE_PROFILING_ENABLE || properties[2]))
        return given_up(error, CL_INVALID_QUEUE_PROPERTIES, NULL);
    return given_up(error, CL_SUCCESS, make(QUEUE, it->device));
}
cl_int CL_API_CALL clReleaseCommandQueue(cl_command_queue queue) { return release(queue, QUEUE, CL_INVALID_COMMAND_QUEUE); }
cl_int CL_API_CALL clFinish(cl_command_queue queue) { return as(queue, QUEUE) ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE; }
cl_int CL_API_CALL clFlush(cl_command_queue queue) { return clFinish(queue); }
static cl_int enqueue(cl_command_queue queue, cl_uint count, const cl_event *waits)
{
    if (!as(queue, QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    if (!count != !waits)
        return CL_INVALID_EVENT_WAIT_LIST;
    for (cl_uint at = 0; at < count; at++)
        if (!as(waits[at], EVENT))
            return CL_INVALID_EVENT_WAIT_LIST;
    return CL_SUCCESS;
}
static cl_int copy(cl_command_queue queue, void *to, const void *from, size_t nbytes, cl_uint count, const cl_event *waits, cl_event *event)
{
    cl_int refused = enqueue(queue, count, waits);
    if (refused)
        return refused;
    if (!to || !from)
        return CL_INVALID_VALUE;
    memmove(to, from, nbytes);
    finished((struct thing *)queue, event);
    return CL_SUCCESS;
}
static cl_int fill(cl_command_queue queue, void *at, const void *pattern, size_t width, size_t nbytes, cl_uint count, const cl_event *waits, cl_event *event)
{
    cl_int refused = enqueue(queue, count, waits);
    if (refused)
        return refused;
    if (!at || !pattern || !width || nbytes % width)
        return CL_INVALID_VALUE;
    for (size_t done = 0; done < nbytes; done += width)
        memcpy((char *)at + done, pattern, width);
    finished((struct thing *)queue, event);
    return CL_SUCCESS;
}
cl_int CL_API_CALL clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocks, void *to, const void *from, size_t nbytes, cl_uint count, const cl_event *waits, cl_event *event) { (void)blocks; return copy(queue, to, from, nbytes, count, waits, event); }
static cl_int clEnqueueMemcpyINTEL_(cl_command_queue queue, cl_bool blocks, void *to, const void *from, size_t nbytes, cl_uint count, const cl_event *waits, cl_event *event) { (void)blocks; return copy(queue, to, from, nbytes, count, waits, event); }
cl_int CL_API_CALL clEnqueueSVMMemFill(cl_command_queue queue, void *at, const void *pattern, size_t width, size_t nbytes, cl_uint count, const cl_event *waits, cl_event *event) { return fill(queue, at, pattern, width, nbytes, count, waits, event); }
static cl_int clEnqueueMemFillINTEL_(cl_command_queue queue, void *at, const void *pattern, size_t width, size_t nbytes, cl_uint count, const cl_event *waits, cl_event *event) { return fill(queue, at, pattern, width, nbytes, count, waits, event); }
cl_int CL_API_CALL clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint pieces, const void **at, const size_t *nbytes, cl_mem_migration_flags flags, cl_uint count, const cl_event *waits, cl_event *event)
{
    cl_int refused = enqueue(queue, count, waits);
    if (refused)
        return refused;
    if (!pieces || !at || !nbytes || flags & ~(cl_mem_migration_flags)3)
        return CL_INVALID_VALUE;
    finished((struct thing *)queue, event);
    return CL_SUCCESS;
}
cl_int CL_API_CALL clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint count, const cl_event *waits, cl_event *event)
{
    cl_int refused = enqueue(queue, count, waits);
    if (!refused)
        finished((struct thing *)queue, event);
    return refused;
}
cl_int CL_API_CALL clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint count, const cl_event *waits, cl_event *event) { return clEnqueueMarkerWithWaitList(queue, count, waits, event); }
cl_int CL_API_CALL clReleaseEvent(cl_event event) { return release(event, EVENT, CL_INVALID_EVENT); }
cl_int CL_API_CALL clWaitForEvents(cl_uint count, const cl_event *events)
{
    for (cl_uint at = 0; at < count; at++)
        if (!as(events[at], EVENT))
            return CL_INVALID_EVENT;
    return count ? CL_SUCCESS : CL_INVALID_VALUE;
}
cl_int CL_API_CALL clGetEventInfo(cl_event event, cl_event_info what, size_t room, void *to, size_t *told)
{
    if (!as(event, EVENT))
        return CL_INVALID_EVENT;
    return what == CL_EVENT_COMMAND_EXECUTION_STATUS ? number(CL_COMPLETE, sizeof(cl_int), room, to, told) : CL_INVALID_VALUE;
}
cl_int CL_API_CALL clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t room, void *to, size_t *told)
{
    struct thing *it = as(event, EVENT);
    if (!it)
        return CL_INVALID_EVENT;
    return what == CL_PROFILING_COMMAND_END ? number(it->ended, 8, room, to, told) : CL_INVALID_VALUE;
}

/* Programs and kernels */
cl_program CL_API_CALL clCreateProgramWithSource(cl_context context, cl_uint count, const char **sources, const size_t *lengths, cl_int *error)
{
    struct thing *it = as(context, CONTEXT);
    if (!it)
        return given_up(error, CL_INVALID_CONTEXT, NULL);
    if (count != 1 || !sources || !sources[0] || !lengths)
        return given_up(error, CL_INVALID_VALUE, NULL);
    struct thing *made = make(PROGRAM, it->device);
    made->is_built = memmem(sources[0], lengths[0], "kernel", 6) != NULL; /* what builds it finds a kernel in it */
    return given_up(error, CL_SUCCESS, made);
}
cl_program CL_API_CALL clCreateProgramWithIL(cl_context context, const void *code, size_t nbytes, cl_int *error)
{
    (void)code, (void)nbytes;
    return given_up(error, as(context, CONTEXT) ? CL_INVALID_OPERATION : CL_INVALID_CONTEXT, NULL);
}
cl_int CL_API_CALL clBuildProgram(cl_program program, cl_uint count, const cl_device_id *list, const char *options, void(CL_CALLBACK *notify)(cl_program, void *), void *data)
{
    struct thing *it = as(program, PROGRAM);
    (void)options, (void)data;
    if (!it || notify)
        return it ? CL_INVALID_VALUE : CL_INVALID_PROGRAM;
    if (count != 1 || !list || number_of(list[0]) != it->device)
        return CL_INVALID_DEVICE;
    return it->is_built ? CL_SUCCESS : CL_BUILD_PROGRAM_FAILURE;
}
cl_int CL_API_CALL clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_program_build_info what, size_t room, void *to, size_t *told)
{
    struct thing *it = as(program, PROGRAM);
    if (!it || number_of(device) != it->device)
        return it ? CL_INVALID_DEVICE : CL_INVALID_PROGRAM;
    return what == CL_PROGRAM_BUILD_LOG ? text(it->is_built ? "" : "1:1: error: there is no kernel", room, to, told) : CL_INVALID_VALUE;
}
cl_int CL_API_CALL clReleaseProgram(cl_program program) { return release(program, PROGRAM, CL_INVALID_PROGRAM); }
cl_kernel CL_API_CALL clCreateKernel(cl_program program, const char *name, cl_int *error)
{
    struct thing *it = as(program, PROGRAM);
    if (!it || !it->is_built)
        return given_up(error, it ? CL_INVALID_PROGRAM_EXECUTABLE : CL_INVALID_PROGRAM, NULL);
    return strcmp(name, "add") ? given_up(error, CL_INVALID_KERNEL_NAME, NULL) : given_up(error, CL_SUCCESS, make(KERNEL, it->device));
}
cl_int CL_API_CALL clReleaseKernel(cl_kernel kernel) { return release(kernel, KERNEL, CL_INVALID_KERNEL); }
cl_int CL_API_CALL clGetKernelInfo(cl_kernel kernel, cl_kernel_info what, size_t room, void *to, size_t *told)
{
    if (!as(kernel, KERNEL))
        return CL_INVALID_KERNEL;
    return what == CL_KERNEL_NUM_ARGS ? number(SLOTS, 4, room, to, told) : CL_INVALID_VALUE;
}
cl_int CL_API_CALL clGetKernelArgInfo(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what, size_t room, void *to, size_t *told)
{
    if (!as(kernel, KERNEL))
        return CL_INVALID_KERNEL;
    if (index >= SLOTS)
        return CL_INVALID_ARG_INDEX;
    if (what == CL_KERNEL_ARG_TYPE_NAME)
        return text(index < 3 ? "uint*" : "uint", room, to, told);
    return what == CL_KERNEL_ARG_ADDRESS_QUALIFIER ? number(index < 3 ? CL_KERNEL_ARG_ADDRESS_GLOBAL : CL_KERNEL_ARG_ADDRESS_PRIVATE, 4, room, to, told) : CL_INVALID_VALUE;
}
cl_int CL_API_CALL clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, size_t room, void *to, size_t *told)
{
    struct thing *it = as(kernel, KERNEL);
    if (!it || number_of(device) != it->device)
        return it ? CL_INVALID_DEVICE : CL_INVALID_KERNEL;
    switch (what) {
    case CL_KERNEL_WORK_GROUP_SIZE: return number(1024, sizeof(size_t), room, to, told);
    case CL_KERNEL_LOCAL_MEM_SIZE:
    case CL_KERNEL_PRIVATE_MEM_SIZE: return number(0, 8, room, to, told);
    default: return CL_INVALID_VALUE;
    }
}
static cl_int set_pointer(cl_kernel kernel, cl_uint index, const void *at, int wants_usm)
{
    struct thing *it = as(kernel, KERNEL);
    if (!it)
        return CL_INVALID_KERNEL;
    if (index >= 3)
        return CL_INVALID_ARG_INDEX;
    if (has_usm(it->device) != wants_usm)
        return CL_INVALID_OPERATION;
    it->slots[index] = (void *)at;
    return CL_SUCCESS;
}
cl_int CL_API_CALL clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint index, const void *at) { return set_pointer(kernel, index, at, 0); }
static cl_int clSetKernelArgMemPointerINTEL_(cl_kernel kernel, cl_uint index, const void *at) { return set_pointer(kernel, index, at, 1); }
cl_int CL_API_CALL clSetKernelArg(cl_kernel kernel, cl_uint index, size_t nbytes, const void *at)
{
    struct thing *it = as(kernel, KERNEL);
    if (!it)
        return CL_INVALID_KERNEL;
    if (index != 3)
        return CL_INVALID_ARG_INDEX;
    if (nbytes != sizeof it->count || !at)
        return CL_INVALID_ARG_SIZE;
    memcpy(&it->count, at, nbytes);
    return CL_SUCCESS;
}
cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset, const size_t *threads, const size_t *block, cl_uint count, const cl_event *waits, cl_event *event)
{
    struct thing *it = as(kernel, KERNEL);
    cl_int refused = enqueue(queue, count, waits);
    if (refused || !it)
        return refused ? refused : CL_INVALID_KERNEL;
    if (dimensions != 3 || offset || !threads || !block)
        return CL_INVALID_WORK_DIMENSION;
    for (int axis = 0; axis < 3; axis++)
        if (!block[axis] || threads[axis] % block[axis])
            return CL_INVALID_WORK_GROUP_SIZE;
    if (block[0] * block[1] * block[2] > 1024)
        return CL_INVALID_WORK_GROUP_SIZE;
    cl_uint *a = it->slots[0], *b = it->slots[1], *out = it->slots[2];
    for (size_t at = 0; at < it->count && at < threads[0]; at++)
        out[at] = a[at] + b[at];
    finished((struct thing *)queue, event);
    return CL_SUCCESS;
}

/* Extensions: their functions are not exported, and the headers' types of them hold these to their declarations. */
void *CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name)
{
#define ALSO(function) static function##_fn function##_ptr_ = function##_; if (!strcmp(name, #function)) return (void *)function##_ptr_;
    if (platform != &the_platform || !name)
        return NULL;
    ALSO(clDeviceMemAllocINTEL)
    ALSO(clHostMemAllocINTEL)
    static clSharedMemAllocINTEL_fn shared = clDeviceMemAllocINTEL_;
    if (!strcmp(name, "clSharedMemAllocINTEL"))
        return (void *)shared;
    ALSO(clMemBlockingFreeINTEL)
    ALSO(clEnqueueMemcpyINTEL)
    ALSO(clEnqueueMemFillINTEL)
    ALSO(clSetKernelArgMemPointerINTEL)
    return NULL;
}
