/* A Level Zero driver without a GPU, written after ze_api.h and not after the backend file: what the file says of the
   interface meets what the header says. Work is done when it is appended; structures without their number are refused.
   NBXRT_SIM_DEVICES is the number of devices, of which the second is no GPU; NBXRT_SIM_MEMORY the bytes of each. A kernel
   named `add` adds vectors of 32-bit numbers. */
#define _GNU_SOURCE
#include <level_zero/ze_api.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum kind { GONE, CONTEXT, LIST, POOL, EVENT, MODULE, KERNEL, PHYSICAL };
typedef struct thing { enum kind kind; int users, set, groups[3], sizes[8]; uint64_t stamp; struct thing *of;
                       unsigned char values[8][16]; size_t size; } thing;
struct _ze_driver_handle_t { int number; };
struct _ze_device_handle_t { int number; };
static struct _ze_driver_handle_t the_driver;
static struct _ze_device_handle_t the_devices[8];
static int initialized;
int ze_fake_live, ze_fake_memory;

static uint64_t setting(const char *name, uint64_t otherwise) { const char *said = getenv(name); return said ? strtoull(said, NULL, 10) : otherwise; }
static int devices(void) { uint64_t count = setting("NBXRT_SIM_DEVICES", 1); return count < 8 ? (int)count : 8; }
static uint64_t memory(void) { return setting("NBXRT_SIM_MEMORY", 8ull << 30); }
static void *make(enum kind kind, void *of) {
    thing *made = calloc(1, sizeof *made);
    made->kind = kind; made->of = of;
    __atomic_add_fetch(&ze_fake_live, 1, __ATOMIC_SEQ_CST);
    return made;
}
static ze_result_t end(void *handle, enum kind kind) {
    thing *it = handle;
    if (!it || it->kind != kind) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (it->users) return ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE;
    if (it->of && kind == EVENT) it->of->users--;
    it->kind = GONE;
    __atomic_sub_fetch(&ze_fake_live, 1, __ATOMIC_SEQ_CST);
    free(it);
    return ZE_RESULT_SUCCESS;
}
static int is(void *handle, enum kind kind) { return handle && ((thing *)handle)->kind == kind; }
static uint64_t now(void) { struct timespec at; clock_gettime(CLOCK_MONOTONIC, &at); return at.tv_sec * 1000000000ull + at.tv_nsec; }
static void signal_(void *event) { thing *it = event; if (it) { it->stamp = now() & 0xffffffffu; it->set = 1; } }
#define STYPE(desc, number) if (!(desc) || (desc)->stype != (number) || (desc)->pNext) return ZE_RESULT_ERROR_INVALID_ENUMERATION
#define NEED(condition, code) if (!(condition)) return code
#define LISTED(list) NEED(is(list, LIST), ZE_RESULT_ERROR_INVALID_NULL_HANDLE)

ze_result_t ZE_APICALL zeInit(ze_init_flags_t flags) {
    if (!devices()) return ZE_RESULT_ERROR_UNINITIALIZED;
    initialized = 1;
    return flags ? ZE_RESULT_ERROR_INVALID_ENUMERATION : ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeDriverGet(uint32_t *count, ze_driver_handle_t *drivers) {
    NEED(initialized, ZE_RESULT_ERROR_UNINITIALIZED);
    if (*count && drivers) drivers[0] = &the_driver;
    *count = 1;
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeDeviceGet(ze_driver_handle_t driver, uint32_t *count, ze_device_handle_t *found) {
    NEED(driver == &the_driver, ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    for (uint32_t i = 0; found && i < *count && i < (uint32_t)devices(); i++) { the_devices[i].number = i; found[i] = &the_devices[i]; }
    if (!*count || *count > (uint32_t)devices()) *count = devices();
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeDeviceGetProperties(ze_device_handle_t device, ze_device_properties_t *about) {
    STYPE(about, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES);
    about->type = device->number == 1 ? ZE_DEVICE_TYPE_VPU : ZE_DEVICE_TYPE_GPU;
    about->timerResolution = 1; about->kernelTimestampValidBits = 32;
    memset(about->uuid.id, 0x30 + device->number, sizeof about->uuid.id);
    strcpy(about->name, device->number == 1 ? "Fake VPU" : "Fake GPU");
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeDeviceGetComputeProperties(ze_device_handle_t device, ze_device_compute_properties_t *about) {
    STYPE(about, ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES);
    about->maxTotalGroupSize = 1024; about->maxSharedLocalMemory = 65536;
    about->maxGroupCountX = UINT32_MAX; about->maxGroupCountY = about->maxGroupCountZ = 65535;
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeDeviceGetMemoryProperties(ze_device_handle_t device, uint32_t *count, ze_device_memory_properties_t *about) {
    NEED(*count == 1, ZE_RESULT_ERROR_INVALID_SIZE);
    STYPE(about, ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES);
    about->totalSize = memory();
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeDeviceCanAccessPeer(ze_device_handle_t device, ze_device_handle_t peer, ze_bool_t *value) {
    *value = device != peer;
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeContextCreate(ze_driver_handle_t driver, const ze_context_desc_t *desc, ze_context_handle_t *context) {
    STYPE(desc, ZE_STRUCTURE_TYPE_CONTEXT_DESC);
    NEED(driver == &the_driver, ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    *context = make(CONTEXT, NULL);
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeContextDestroy(ze_context_handle_t context) { return end(context, CONTEXT); }
ze_result_t ZE_APICALL zeCommandListCreateImmediate(ze_context_handle_t context, ze_device_handle_t device, const ze_command_queue_desc_t *desc, ze_command_list_handle_t *list) {
    STYPE(desc, ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC);
    NEED(is(context, CONTEXT) && device, ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    NEED(desc->mode == ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS, ZE_RESULT_ERROR_INVALID_ENUMERATION);
    *list = make(LIST, NULL);
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeCommandListDestroy(ze_command_list_handle_t list) { return end(list, LIST); }
ze_result_t ZE_APICALL zeEventPoolCreate(ze_context_handle_t context, const ze_event_pool_desc_t *desc, uint32_t n, ze_device_handle_t *of, ze_event_pool_handle_t *pool) {
    STYPE(desc, ZE_STRUCTURE_TYPE_EVENT_POOL_DESC);
    NEED(is(context, CONTEXT) && !n && !of, ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    NEED(desc->count == 1 && desc->flags == (ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP), ZE_RESULT_ERROR_INVALID_SIZE);
    *pool = make(POOL, NULL);
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeEventPoolDestroy(ze_event_pool_handle_t pool) { return end(pool, POOL); }
ze_result_t ZE_APICALL zeEventCreate(ze_event_pool_handle_t pool, const ze_event_desc_t *desc, ze_event_handle_t *event) {
    STYPE(desc, ZE_STRUCTURE_TYPE_EVENT_DESC);
    NEED(is(pool, POOL) && !desc->index, ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    ((thing *)pool)->users++;
    *event = make(EVENT, pool);
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeEventDestroy(ze_event_handle_t event) { return end(event, EVENT); }
ze_result_t ZE_APICALL zeEventQueryStatus(ze_event_handle_t event) {
    NEED(is(event, EVENT), ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    return ((thing *)event)->set ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}
ze_result_t ZE_APICALL zeEventHostSynchronize(ze_event_handle_t event, uint64_t timeout) {
    NEED(timeout == UINT64_MAX, ZE_RESULT_ERROR_INVALID_ARGUMENT);
    return zeEventQueryStatus(event);
}
ze_result_t ZE_APICALL zeEventQueryKernelTimestamp(ze_event_handle_t event, ze_kernel_timestamp_result_t *at) {
    NEED(is(event, EVENT), ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    NEED(((thing *)event)->set, ZE_RESULT_NOT_READY);
    at->global.kernelEnd = ((thing *)event)->stamp;
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeCommandListAppendBarrier(ze_command_list_handle_t list, ze_event_handle_t event, uint32_t n, ze_event_handle_t *waits) {
    LISTED(list);
    for (uint32_t i = 0; i < n; i++) NEED(is(waits[i], EVENT), ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    NEED(!event || is(event, EVENT), ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    signal_(event);
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeCommandListAppendMemoryCopy(ze_command_list_handle_t list, void *to, const void *from, size_t size, ze_event_handle_t event, uint32_t n, ze_event_handle_t *waits) {
    LISTED(list); NEED(!n && !waits, ZE_RESULT_ERROR_INVALID_SIZE);
    memmove(to, from, size); signal_(event);
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeCommandListAppendMemoryFill(ze_command_list_handle_t list, void *at, const void *pattern, size_t width, size_t size, ze_event_handle_t event, uint32_t n, ze_event_handle_t *waits) {
    LISTED(list); NEED(width == 1, ZE_RESULT_ERROR_INVALID_SIZE);
    memset(at, *(const unsigned char *)pattern, size); signal_(event);
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeCommandListAppendMemoryPrefetch(ze_command_list_handle_t list, const void *at, size_t size) { LISTED(list); return ZE_RESULT_SUCCESS; }
ze_result_t ZE_APICALL zeCommandListAppendMemAdvise(ze_command_list_handle_t list, ze_device_handle_t device, const void *at, size_t size, ze_memory_advice_t advice) {
    LISTED(list);
    return advice <= ZE_MEMORY_ADVICE_CLEAR_PREFERRED_LOCATION ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ENUMERATION;
}
/* Who has how much: host memory is nobody's. */
static struct { void *at; size_t size; int device; } given[65536];
static uint64_t used[8];
static pthread_mutex_t giving = PTHREAD_MUTEX_INITIALIZER;
static ze_result_t allocate(size_t size, size_t alignment, ze_device_handle_t device, void **at) {
    int number = device ? device->number : -1, place = 0;
    ze_result_t result = ZE_RESULT_SUCCESS;
    if (size > (4ull << 30)) return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    pthread_mutex_lock(&giving);
    while (place < 65535 && given[place].at) place++;
    if (given[place].at || (device && used[number] + size > memory()) || posix_memalign(at, alignment, size)) result = ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    else {
        given[place].at = *at; given[place].size = size; given[place].device = number;
        if (device) used[number] += size;
        ze_fake_memory++;
    }
    pthread_mutex_unlock(&giving);
    return result;
}
ze_result_t ZE_APICALL zeMemAllocDevice(ze_context_handle_t context, const ze_device_mem_alloc_desc_t *desc, size_t size, size_t alignment, ze_device_handle_t device, void **at) {
    STYPE(desc, ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC);
    NEED(is(context, CONTEXT) && device, ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    return allocate(size, alignment, device, at);
}
ze_result_t ZE_APICALL zeMemAllocHost(ze_context_handle_t context, const ze_host_mem_alloc_desc_t *desc, size_t size, size_t alignment, void **at) {
    STYPE(desc, ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC);
    return allocate(size, alignment, NULL, at);
}
ze_result_t ZE_APICALL zeMemAllocShared(ze_context_handle_t context, const ze_device_mem_alloc_desc_t *desc, const ze_host_mem_alloc_desc_t *host, size_t size, size_t alignment, ze_device_handle_t device, void **at) {
    STYPE(desc, ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC);
    STYPE(host, ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC);
    return allocate(size, alignment, device, at);
}
ze_result_t ZE_APICALL zeMemFree(ze_context_handle_t context, void *at) {
    NEED(is(context, CONTEXT), ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    ze_result_t result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    pthread_mutex_lock(&giving);
    for (int place = 0; at && place < 65536; place++) if (given[place].at == at) {
        given[place].at = NULL;
        if (given[place].device >= 0) used[given[place].device] -= given[place].size;
        ze_fake_memory--;
        free(at);
        result = ZE_RESULT_SUCCESS;
        break;
    }
    pthread_mutex_unlock(&giving);
    return result;
}
#define PAGE 65536
ze_result_t ZE_APICALL zeVirtualMemQueryPageSize(ze_context_handle_t context, ze_device_handle_t device, size_t size, size_t *page) { *page = PAGE; return ZE_RESULT_SUCCESS; }
ze_result_t ZE_APICALL zeVirtualMemReserve(ze_context_handle_t context, const void *start, size_t size, void **at) {
    NEED(size % PAGE == 0, ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
    NEED(size <= (1ull << 44), ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
    char *got = mmap(NULL, size + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    NEED(got != MAP_FAILED, ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
    char *even = (char *)(((uintptr_t)got + PAGE - 1) / PAGE * PAGE);
    if (even > got) munmap(got, even - got);
    munmap(even + size, PAGE - (even - got));
    *at = even;
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeVirtualMemFree(ze_context_handle_t context, const void *at, size_t size) { munmap((void *)at, size); return ZE_RESULT_SUCCESS; }
ze_result_t ZE_APICALL zePhysicalMemCreate(ze_context_handle_t context, ze_device_handle_t device, ze_physical_mem_desc_t *desc, ze_physical_mem_handle_t *memory) {
    STYPE(desc, ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC);
    NEED(desc->size % PAGE == 0, ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
    NEED(desc->size <= (4ull << 30), ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
    thing *made = make(PHYSICAL, NULL);
    made->size = desc->size; made->set = memfd_create("ze", 0);
    if (ftruncate(made->set, desc->size)) return ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    *memory = (void *)made;
    return ZE_RESULT_SUCCESS;
}
static struct { const void *at; thing *of; } mapped[4096];
ze_result_t ZE_APICALL zePhysicalMemDestroy(ze_context_handle_t context, ze_physical_mem_handle_t memory) {
    ze_result_t result = end(memory, PHYSICAL);        /* Intel's driver would free what is mapped: here it is refused */
    if (result == ZE_RESULT_SUCCESS) close(((thing *)memory)->set);
    return result;
}
ze_result_t ZE_APICALL zeVirtualMemMap(ze_context_handle_t context, const void *at, size_t size, ze_physical_mem_handle_t memory, size_t offset, ze_memory_access_attribute_t access) {
    NEED(is(memory, PHYSICAL) && size % PAGE == 0 && offset % PAGE == 0, ZE_RESULT_ERROR_INVALID_ARGUMENT);
    NEED(access == ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE, ZE_RESULT_ERROR_INVALID_ENUMERATION);
    NEED(offset + size <= ((thing *)memory)->size, ZE_RESULT_ERROR_INVALID_SIZE);
    void *got = mmap((void *)at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, ((thing *)memory)->set, offset);
    NEED(got != MAP_FAILED, ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
    int place = 0;
    pthread_mutex_lock(&giving);
    while (place < 4095 && mapped[place].at) place++;
    mapped[place].at = at; mapped[place].of = (thing *)memory; mapped[place].of->users++;
    pthread_mutex_unlock(&giving);
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeVirtualMemUnmap(ze_context_handle_t context, const void *at, size_t size) {
    pthread_mutex_lock(&giving);
    for (int place = 0; place < 4096; place++) if (mapped[place].at == at) { mapped[place].at = NULL; mapped[place].of->users--; break; }
    pthread_mutex_unlock(&giving);
    mmap((void *)at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeVirtualMemSetAccessAttribute(ze_context_handle_t context, const void *at, size_t size, ze_memory_access_attribute_t access) {
    int protection = access == 0 ? PROT_NONE : access == 1 ? PROT_READ | PROT_WRITE : access == 2 ? PROT_READ : -1;
    return protection < 0 || mprotect((void *)at, size, protection) ? ZE_RESULT_ERROR_INVALID_ENUMERATION : ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeModuleCreate(ze_context_handle_t context, ze_device_handle_t device, const ze_module_desc_t *desc, ze_module_handle_t *module, ze_module_build_log_handle_t *log) {
    STYPE(desc, ZE_STRUCTURE_TYPE_MODULE_DESC);
    NEED(desc->inputSize >= 4 && desc->pInputModule, ZE_RESULT_ERROR_INVALID_SIZE);
    int is_spirv = !memcmp(desc->pInputModule, "\3\2#\7", 4);
    NEED(desc->format == (is_spirv ? ZE_MODULE_FORMAT_IL_SPIRV : ZE_MODULE_FORMAT_NATIVE), ZE_RESULT_ERROR_INVALID_ENUMERATION);
    NEED(is_spirv || !memcmp(desc->pInputModule, "FAKE", 4), ZE_RESULT_ERROR_INVALID_NATIVE_BINARY);
    *module = make(MODULE, NULL);
    return ZE_RESULT_SUCCESS;
}
static uint32_t a_variable = 77;
ze_result_t ZE_APICALL zeModuleDestroy(ze_module_handle_t module) { return end(module, MODULE); }
ze_result_t ZE_APICALL zeModuleGetGlobalPointer(ze_module_handle_t module, const char *name, size_t *size, void **at) {
    NEED(!strcmp(name, "variable"), ZE_RESULT_ERROR_INVALID_GLOBAL_NAME);
    *size = 4; *at = &a_variable; a_variable = 77;
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeKernelCreate(ze_module_handle_t module, const ze_kernel_desc_t *desc, ze_kernel_handle_t *kernel) {
    STYPE(desc, ZE_STRUCTURE_TYPE_KERNEL_DESC);
    NEED(!strcmp(desc->pKernelName, "add"), ZE_RESULT_ERROR_INVALID_KERNEL_NAME);
    *kernel = make(KERNEL, NULL);
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeKernelDestroy(ze_kernel_handle_t kernel) { return end(kernel, KERNEL); }
ze_result_t ZE_APICALL zeKernelSetGroupSize(ze_kernel_handle_t kernel, uint32_t x, uint32_t y, uint32_t z) {
    thing *it = (void *)kernel;
    it->groups[0] = x; it->groups[1] = y; it->groups[2] = z;
    return x && y && z ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION;
}
ze_result_t ZE_APICALL zeKernelSetArgumentValue(ze_kernel_handle_t kernel, uint32_t index, size_t size, const void *value) {
    NEED(index < 4, ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX);
    NEED(size == (index < 3 ? 8 : 4), ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE);
    memcpy(((thing *)kernel)->values[index], value, size);
    return ZE_RESULT_SUCCESS;
}
ze_result_t ZE_APICALL zeCommandListAppendLaunchKernel(ze_command_list_handle_t list, ze_kernel_handle_t kernel, const ze_group_count_t *groups, ze_event_handle_t event, uint32_t n, ze_event_handle_t *waits) {
    thing *it = (void *)kernel;
    LISTED(list); NEED(is(kernel, KERNEL), ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    uint32_t *a, *b, *out, count;
    memcpy(&a, it->values[0], 8); memcpy(&b, it->values[1], 8); memcpy(&out, it->values[2], 8); memcpy(&count, it->values[3], 4);
    for (uint32_t i = 0; i < count && i < groups->groupCountX * (uint32_t)it->groups[0]; i++) out[i] = a[i] + b[i];
    return ZE_RESULT_SUCCESS;
}
