/* APIs of objects: handles of devices and of things that only the vendor's own functions use, marks in streams, and
   kernels whose arguments are set one by one. A call is about the device of its handles, not about a current one. */
#include "state.h"

enum { BUFFER_ALIGNMENT = 128 };        /* of where a part of a buffer begins, in bytes */

static const uint64_t first_device = 0x520000000000, only_level = 0x530000000000;

/* Handles. */

static int device_behind(const void *handle)
{
    uint64_t number = (uint64_t)(uintptr_t)handle - first_device;
    uint64_t ordinal = number / 4096;
    return number % 4096 == 0 && ordinal < (uint64_t)sim_device_count_visible() ? (int)ordinal : -1;
}

int sim_ordinal_behind(struct sim_call *call, const char *name, const void *handle)
{
    int ordinal = device_behind(handle);
    sim_note_signed(call, name, ordinal);
    if (ordinal < 0 && !call->kind)
        call->kind = KIND_INVALID_HANDLE;
    if (ordinal >= 0 && !call->is_entered)
        call->device = ordinal;
    return ordinal < 0 ? 0 : ordinal;
}

void sim_enter_device(struct sim_call *call, const void *handle)
{
    int ordinal = sim_ordinal_behind(call, "device", handle);
    if (!call->kind)
        sim_enter(call, ordinal);
}

uint64_t sim_enter_stream(struct sim_call *call, const void *handle)
{
    const struct stream *stream = sim_handle_get(HANDLE_STREAM, (uint64_t)(uintptr_t)handle);
    sim_note_address(call, "stream", handle);
    if (!stream && !call->kind)
        call->kind = KIND_INVALID_HANDLE;
    if (!call->kind)
        sim_enter(call, sim_ordinal(stream->device));
    return (uint64_t)(uintptr_t)handle;
}

/* The device of a kernel, of code, or of a mark that was made in a stream; an unknown handle is for others to refuse. */
void sim_enter_behind(struct sim_call *call, int what, uint64_t handle)
{
    const struct event *event = what == SIM_EVENT ? sim_handle_get(HANDLE_EVENT, handle) : NULL;
    int physical = what == SIM_FUNCTION ? sim_device_of_function(handle)
                   : what == SIM_MODULE ? sim_device_of_module(handle)
                   : event && event->latest ? event->device : -1;
    if (physical < 0 || (what == SIM_EVENT && call->is_entered && !sim_contexts_are_apart))
        return;
    sim_enter(call, sim_ordinal(physical));
}

int sim_told(const struct sim_call *call, int kind, int complete, int busy)
{
    return !kind ? complete : kind == KIND_NOT_READY ? busy : sim_roles[call->role].codes[kind];
}

int sim_model(int ordinal)
{
    int physical = sim_physical(ordinal);
    return physical < 0 ? 0 : sim_devices[physical].model;
}

void sim_expect_model(struct sim_call *call, unsigned models)
{
    if (!call->kind && call->is_entered && !(models >> sim_model(call->device) & 1))
        call->kind = KIND_NOT_SUPPORTED;
}

void sim_expect_level(struct sim_call *call, const void *handle)
{
    if ((uint64_t)(uintptr_t)handle != only_level && !call->kind)
        call->kind = KIND_INVALID_HANDLE;
}

/* A list that is counted with no room and then filled. */
void sim_list(struct sim_call *call, int is_of_devices, unsigned room, void **list, unsigned *found)
{
    unsigned count = is_of_devices ? (unsigned)sim_device_count_visible() : 1;
    sim_expect(call, found != NULL);
    if (call->kind)
        return;
    for (unsigned i = 0; list && i < room && i < count; i++)
        list[i] = (void *)(uintptr_t)(is_of_devices ? first_device + 4096 * (uint64_t)i : only_level);
    *found = count;
}

/* The same where the entries are counted, and asked for one by one. */
int sim_level_count(unsigned is_of_devices, unsigned *count)
{
    *count = is_of_devices ? (unsigned)sim_device_count_visible() : 1;
    return KIND_SUCCESS;
}

int sim_level_at(unsigned is_of_devices, unsigned index, uint64_t *handle)
{
    unsigned count;
    sim_level_count(is_of_devices, &count);
    if (index >= count)
        return KIND_INVALID_VALUE;
    *handle = is_of_devices ? first_device + 4096 * (uint64_t)index : only_level;
    return KIND_SUCCESS;
}

int sim_level_release(int device)
{
    (void)device;                       /* a handle of a device is good for as long as the process */
    return KIND_SUCCESS;
}

/* Things of the vendor's that do nothing here, but have to be there and to be ended. */

struct thing { unsigned sort; int device; };   /* -1: of all devices */

void sim_expect_object(struct sim_call *call, unsigned sort, const void *handle)
{
    const struct thing *thing = sim_handle_get(HANDLE_OBJECT, (uint64_t)(uintptr_t)handle);
    if ((!thing || thing->sort != sort) && !call->kind)
        call->kind = KIND_INVALID_HANDLE;
    else if (thing && thing->device >= 0)
        sim_enter(call, sim_ordinal(thing->device));
}

int sim_object_create(unsigned sort, unsigned is_of_device, uint64_t *object)
{
    struct thing *made = malloc(sizeof *made);
    made->sort = sort;
    made->device = is_of_device ? sim_current() : -1;
    *object = sim_handle_new(HANDLE_OBJECT, made);
    return KIND_SUCCESS;
}

int sim_object_destroy(unsigned sort, uint64_t object)
{
    struct thing *ended = sim_handle_get(HANDLE_OBJECT, object);
    if (!ended || ended->sort != sort)
        return KIND_INVALID_HANDLE;
    sim_handle_drop(object);
    free(ended);
    return KIND_SUCCESS;
}

int sim_device_facts(int device, struct sim_text *name, struct sim_bytes *uuid)
{
    int kind = sim_device_name(device, name);
    return kind ? kind : sim_device_uuid(device, uuid);
}

int sim_fact(int ordinal, int attribute)
{
    int physical = sim_physical(ordinal);
    return physical < 0 ? 0 : sim_devices[physical].attributes[attribute];
}

/* Memory of any kind, which waits for nothing: work that still uses it is refused when a stream comes to it. */
int sim_memory_release(uint64_t address)
{
    struct buffer *buffer = sim_handle_get(HANDLE_BUFFER, address);
    if (buffer) {
        int kind = buffer->is_part ? KIND_SUCCESS : sim_memory_release(buffer->address);
        sim_handle_drop(address);
        free(buffer);
        return kind;
    }
    struct block *block = sim_block_of(address);
    if (!block)
        return KIND_INVALID_VALUE;
    sim_block_release(block);
    return KIND_SUCCESS;
}

/* The same where nothing waits before: it waits for the work itself. */
int sim_memory_free(uint64_t address)
{
    const struct buffer *buffer = sim_handle_get(HANDLE_BUFFER, address);
    struct block *block = sim_block_of(buffer ? buffer->address : address);
    if (!block)
        return KIND_INVALID_VALUE;
    int device = block->device;
    sim_run_range(block->address, block->nbytes);
    sim_wait_device(device);
    return sim_memory_release(address);
}

/* Memory without an address that the caller could use: its handle is none. */

static uint64_t buffer_new(uint64_t address, uint64_t nbytes, int is_part)
{
    struct buffer *made = malloc(sizeof *made);
    *made = (struct buffer){address, nbytes, is_part};
    return sim_handle_new(HANDLE_BUFFER, made);
}

int sim_buffer_create(uint64_t nbytes, uint64_t *buffer)
{
    uint64_t address;
    int kind = nbytes ? sim_malloc(nbytes, &address) : KIND_INVALID_VALUE;
    if (!kind)
        *buffer = buffer_new(address, nbytes, 0);
    return kind;
}

uint64_t sim_address_behind(uint64_t buffer, uint64_t offset, uint64_t nbytes)
{
    const struct buffer *found = sim_handle_get(HANDLE_BUFFER, buffer);
    int is_inside = found && offset <= found->nbytes && nbytes <= found->nbytes - offset;
    return is_inside ? found->address + offset : 0;
}

/* Where the host sees it. */
int sim_buffer_contents(uint64_t buffer, uint64_t *address)
{
    *address = sim_address_behind(buffer, 0, 0);
    return *address ? KIND_SUCCESS : KIND_INVALID_VALUE;
}

int sim_buffer_slice(uint64_t buffer, uint64_t offset, uint64_t nbytes, uint64_t *slice)
{
    uint64_t address = sim_address_behind(buffer, offset, nbytes);
    if (!address || !nbytes || offset % BUFFER_ALIGNMENT)
        return KIND_INVALID_VALUE;
    *slice = buffer_new(address, nbytes, 1);
    return KIND_SUCCESS;
}

int sim_buffer_alignment(unsigned *bits)
{
    *bits = 8 * BUFFER_ALIGNMENT;
    return KIND_SUCCESS;
}

int sim_buffer_copy(uint64_t source, uint64_t source_offset, uint64_t target, uint64_t target_offset, uint64_t nbytes,
                    uint64_t stream)
{
    uint64_t from = sim_address_behind(source, source_offset, nbytes);
    uint64_t to = sim_address_behind(target, target_offset, nbytes);
    if (!from || !to)
        return KIND_INVALID_VALUE;
    return sim_memcpy_async(to, from, nbytes, MEMCPY_KIND_DEVICE_TO_DEVICE, stream);
}

int sim_buffer_fill(uint64_t target, uint64_t offset, uint64_t nbytes, int value, uint64_t stream)
{
    uint64_t address = sim_address_behind(target, offset, nbytes);
    return address ? sim_memset_async(address, value, nbytes, stream) : KIND_INVALID_VALUE;
}

int sim_buffer_read(uint64_t source, uint64_t source_offset, uint64_t address, uint64_t nbytes, uint64_t stream)
{
    uint64_t from = sim_address_behind(source, source_offset, nbytes);
    return from ? sim_memcpy_async(address, from, nbytes, MEMCPY_KIND_DEVICE_TO_HOST, stream) : KIND_INVALID_VALUE;
}

int sim_buffer_write(uint64_t target, uint64_t target_offset, uint64_t address, uint64_t nbytes, uint64_t stream)
{
    uint64_t to = sim_address_behind(target, target_offset, nbytes);
    return to ? sim_memcpy_async(to, address, nbytes, MEMCPY_KIND_HOST_TO_DEVICE, stream) : KIND_INVALID_VALUE;
}

/* A copy in its stream, which has arrived when the call returns. */
int sim_memcpy_and_wait(uint64_t dst, uint64_t src, uint64_t nbytes, uint64_t stream)
{
    int kind = sim_memcpy_async(dst, src, nbytes, MEMCPY_KIND_DEFAULT, stream);
    return kind ? kind : sim_stream_sync(stream);
}

/* Work begins without being asked to. */
int sim_stream_flush(uint64_t stream)
{
    return sim_handle_get(HANDLE_STREAM, stream) ? KIND_SUCCESS : KIND_INVALID_HANDLE;
}

/* Marks: events that belong to no device before they are recorded. */

int sim_mark_create(uint64_t *event)
{
    return sim_event_create_flags(1, 0, 0, event);
}

int sim_mark_record(uint64_t event, uint64_t stream)
{
    struct event *mark = sim_handle_get(HANDLE_EVENT, event);
    const struct stream *on = sim_handle_get(HANDLE_STREAM, stream);
    if (!mark || !on)
        return KIND_INVALID_HANDLE;
    mark->device = on->device;
    return sim_event_record(event, stream);
}

/* One that is made where it is recorded. */
int sim_mark_make(uint64_t stream, uint64_t *event)
{
    int kind = sim_mark_create(event);
    return kind ? kind : sim_mark_record(*event, stream);
}

int sim_mark_time(uint64_t event, uint64_t *time)
{
    const struct event *mark = sim_handle_get(HANDLE_EVENT, event);
    if (!mark || !mark->latest)
        return KIND_INVALID_HANDLE;
    if (!mark->latest->done)
        return KIND_NOT_READY;
    *time = mark->latest->time;
    return KIND_SUCCESS;
}
