/* Memory and events shared between processes, by handles that say which process and which of its files. */
#include <fcntl.h>
#include <sys/mman.h>

#include "state.h"

static int open_of_process(int64_t process, int file)
{
    char path[64];
    if (process == getpid())
        return dup(file);
    snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)process, file);
    return open(path, O_RDWR | O_CLOEXEC);
}

/* Memory: pages of the backing file. */

struct memory_handle { char magic[8]; int64_t process; int32_t file, device; uint64_t offset, nbytes; };

int sim_ipc_get_mem_handle(uint64_t address, uint64_t nbytes, struct sim_bytes *handle)
{
    struct block *block = sim_block_at(address);
    (void)nbytes;
    if (!block || block->origin != FROM_MALLOC)     /* pools and mapped memory cannot be shared like this */
        return KIND_INVALID_VALUE;
    struct memory_handle written = {"simmem", getpid(), sim_backing(), block->device, block->offset, block->nbytes};
    handle->nbytes = sizeof written;
    memcpy(handle->data, &written, sizeof written);
    return KIND_SUCCESS;
}

static struct block *opened_before(uint64_t source)
{
    struct block *block;
    for (size_t i = 0; (block = sim_block_number(i)); i++)
        if (block->origin == FROM_IPC && block->source == source)
            return block;
    return NULL;
}

static uint64_t source_of(const struct memory_handle *given)
{
    return ((uint64_t)given->process << 40) ^ given->offset;
}

static uint64_t map_memory(const struct memory_handle *given, int file, uint64_t source)
{
    uint64_t mapped = sim_whole_pages(given->nbytes);
    void *wish = sim_wished_address(given->device, mapped);
    void *place = mmap(wish, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)given->offset);
    if (place == MAP_FAILED)
        return 0;
    sim_block_add((struct block){.address = (uint64_t)(uintptr_t)place, .nbytes = given->nbytes, .mapped = mapped,
                                 .origin = FROM_IPC, .memory = MEMORY_TYPE_DEVICE, .device = given->device,
                                 .references = 1, .source = source});
    return (uint64_t)(uintptr_t)place;
}

int sim_ipc_open_mem_handle(const void *handle, size_t handle_nbytes, uint64_t nbytes, uint64_t *address)
{
    struct memory_handle given;
    (void)nbytes;
    if (handle_nbytes < sizeof given)
        return KIND_INVALID_VALUE;
    memcpy(&given, handle, sizeof given);
    if (memcmp(given.magic, "simmem", 7) || given.device < 0 || given.device >= sim_settings.devices)
        return KIND_INVALID_VALUE;
    uint64_t source = source_of(&given);
    struct block *opened = opened_before(source);
    if (opened) {
        opened->references++;
        *address = opened->address;
        return KIND_SUCCESS;
    }
    int file = open_of_process(given.process, given.file);
    if (file < 0)
        return KIND_NOT_SUPPORTED;
    *address = map_memory(&given, file, source);
    close(file);
    return *address ? KIND_SUCCESS : KIND_INVALID_VALUE;
}

int sim_ipc_close_mem_handle(uint64_t address, const void *handle, size_t handle_nbytes)
{
    struct memory_handle given = {.magic = ""};
    if (!address && handle) {           /* a vendor whose function closes by the handle alone */
        memcpy(&given, handle, handle_nbytes < sizeof given ? handle_nbytes : sizeof given);
        struct block *opened = opened_before(source_of(&given));
        address = opened ? opened->address : 0;
    }
    struct block *block = sim_block_of(address);
    if (!block || block->origin != FROM_IPC)
        return KIND_INVALID_VALUE;
    if (--block->references)
        return KIND_SUCCESS;
    sim_run_range(address, block->nbytes);
    block = sim_block_of(address);      /* the lock was given back while waiting */
    if (block && block->origin == FROM_IPC && !block->references)
        sim_block_release(block);
    return KIND_SUCCESS;
}

/* Events: a page that says how often an event was recorded, and up to which record its work is done. */

static struct event_page *map_page(int file)
{
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return page == MAP_FAILED ? NULL : page;
}

static int shared_file(void)
{
#if defined(__linux__)
    int file = memfd_create("nbxrt-simulated-event", MFD_CLOEXEC);
    if (file >= 0 && !ftruncate(file, PAGE))
        return file;
    if (file >= 0)
        close(file);
#endif
    return -1;
}

struct event_page *sim_shared_page(int *file)
{
    *file = shared_file();
    return *file < 0 ? NULL : map_page(*file);
}

struct event_handle { char magic[8]; int64_t process; int32_t file, device; uint64_t event; };

int sim_ipc_get_event_handle(uint64_t event, struct sim_bytes *handle)
{
    const struct event *shared = sim_handle_get(HANDLE_EVENT, event);
    if (!shared)
        return KIND_INVALID_HANDLE;
    if (!shared->interprocess || shared->page_file < 0)
        return KIND_INVALID_VALUE;
    struct event_handle written = {"simevent", getpid(), shared->page_file, shared->device, event};
    handle->nbytes = sizeof written;
    memcpy(handle->data, &written, sizeof written);
    return KIND_SUCCESS;
}

int sim_ipc_open_event_handle(const void *handle, size_t handle_nbytes, uint64_t *event)
{
    struct event_handle given;
    if (handle_nbytes < sizeof given)
        return KIND_INVALID_VALUE;
    memcpy(&given, handle, sizeof given);
    if (memcmp(given.magic, "simevent", 8) || given.device < 0 || given.device >= sim_settings.devices)
        return KIND_INVALID_VALUE;
    int file = open_of_process(given.process, given.file);
    struct event_page *page = file < 0 ? NULL : map_page(file);
    if (file >= 0)
        close(file);
    if (!page)
        return KIND_INVALID_VALUE;
    struct event *made = calloc(1, sizeof *made);
    made->device = given.device;
    made->interprocess = 1;
    made->page_file = -1;
    made->page = page;
    made->source = given.process == getpid() ? given.event : 0;
    *event = sim_handle_new(HANDLE_EVENT, made);
    return KIND_SUCCESS;
}
