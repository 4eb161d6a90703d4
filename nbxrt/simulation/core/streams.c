/* Streams: making, asking, destroying them. What runs their work is in work.c. */
#include "state.h"

struct stream *sim_streams;

static struct stream *new_stream(int device, int blocking)
{
    struct stream *stream = calloc(1, sizeof *stream);
    stream->device = device;
    stream->blocking = blocking;
    stream->next = sim_streams;
    sim_streams = stream;
    return stream;
}

static struct stream *legacy_stream(int device)
{
    struct device *owner = &sim_devices[device];
    if (!owner->legacy) {
        owner->legacy = new_stream(device, 0);
        owner->legacy->legacy = 1;
    }
    return owner->legacy;
}

/* 0 and 1 are the default stream of the current device, 2 is the thread's own. */
struct stream *sim_stream(uint64_t handle)
{
    int device = sim_current();
    if (handle > 2)
        return sim_handle_get(HANDLE_STREAM, handle);
    if (device < 0)
        return NULL;
    if (handle < 2)
        return legacy_stream(device);
    struct stream **own = &sim_thread()->own_stream[device];
    if (!*own)
        *own = new_stream(device, 1);
    return *own;
}

/* A destroyed stream leaves the list when its work is done. Its memory stays: another thread may be waiting on it. */
void sim_forget_if_over(struct stream *stream)
{
    if (!stream->destroyed || stream->first || stream->busy)
        return;
    for (struct stream **place = &sim_streams; *place; place = &(*place)->next)
        if (*place == stream) {
            *place = stream->next;
            break;
        }
}

static int create(int priority, int non_blocking, uint64_t *handle)
{
    struct stream *stream = new_stream(sim_current(), !non_blocking);
    stream->priority = priority;
    stream->handle = *handle = sim_handle_new(HANDLE_STREAM, stream);
    return KIND_SUCCESS;
}

int sim_stream_create(uint64_t *stream)
{
    return create(0, 0, stream);
}

int sim_stream_create_flags(int non_blocking, uint64_t *stream)
{
    return create(0, non_blocking, stream);
}

int sim_stream_create_priority(int priority, int non_blocking, uint64_t *stream)
{
    return create(priority, non_blocking, stream);
}

int sim_stream_priority_range(int *least, int *greatest)
{
    *least = 0;
    *greatest = -2;
    return KIND_SUCCESS;
}

int sim_stream_destroy(uint64_t stream)
{
    struct stream *destroyed = stream > 2 ? sim_stream(stream) : NULL;
    if (!destroyed)
        return KIND_INVALID_HANDLE;
    sim_handle_drop(stream);
    if (destroyed->capture)
        sim_capture_break(destroyed->capture);
    destroyed->capture = NULL;
    destroyed->destroyed = 1;
    sim_forget_if_over(destroyed);
    return KIND_SUCCESS;
}

int sim_stream_sync(uint64_t stream)
{
    struct stream *waited = sim_stream(stream);
    if (!waited)
        return KIND_INVALID_HANDLE;
    if (waited->capture) {
        sim_capture_break(waited->capture);
        return KIND_CAPTURE_UNSUPPORTED;
    }
    int device = waited->device;
    sim_wait_stream(waited, UINT64_MAX);
    sim_pool_trim(&sim_devices[device], sim_devices[device].pool.threshold);
    return sim_devices[device].lost;
}

int sim_stream_query(uint64_t stream)
{
    struct stream *asked = sim_stream(stream);
    if (!asked)
        return KIND_INVALID_HANDLE;
    if (asked->capture) {
        sim_capture_break(asked->capture);
        return KIND_CAPTURE_UNSUPPORTED;
    }
    int device = asked->device, lost = sim_devices[device].lost;
    if (!asked->first && !asked->busy)
        return lost;
    if (!sim_settings.latency_ns && !asked->busy && sim_collective_ready(asked->first->collective))
        sim_run_first(asked);
    lost = sim_devices[device].lost;
    return lost ? lost : KIND_NOT_READY;
}
