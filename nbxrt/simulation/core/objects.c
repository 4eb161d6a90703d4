/* APIs of objects: handles of devices and of things that only the vendor's own functions use, marks in streams, and
   kernels whose arguments are set one by one. A call is about the device of its handles, not about a current one. */
#include "state.h"

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

/* Things of the vendor's that do nothing here, but have to be there and to be ended. */

struct thing { unsigned sort; };

void sim_expect_object(struct sim_call *call, unsigned sort, const void *handle)
{
    const struct thing *thing = sim_handle_get(HANDLE_OBJECT, (uint64_t)(uintptr_t)handle);
    if ((!thing || thing->sort != sort) && !call->kind)
        call->kind = KIND_INVALID_HANDLE;
}

int sim_object_create(unsigned sort, uint64_t *object)
{
    struct thing *made = malloc(sizeof *made);
    made->sort = sort;
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
    struct block *block = sim_block_of(address);
    if (!block)
        return KIND_INVALID_VALUE;
    sim_block_release(block);
    return KIND_SUCCESS;
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
