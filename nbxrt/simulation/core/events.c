/* Events: points in a stream that can be waited for, asked and timed. */
#include "state.h"

static struct event *event_of(uint64_t handle)
{
    return sim_handle_get(HANDLE_EVENT, handle);
}

int sim_event_create_flags(int timing, int blocking, int interprocess, uint64_t *event)
{
    (void)blocking;
    if (interprocess && timing)         /* a shared event keeps no time */
        return KIND_INVALID_VALUE;
    struct event *made = calloc(1, sizeof *made);
    made->device = sim_current();
    made->timing = timing;
    made->interprocess = interprocess;
    made->page_file = -1;
    if (interprocess) {
        made->page = sim_shared_page(&made->page_file);
        if (!made->page) {
            free(made);
            return KIND_NOT_SUPPORTED;
        }
    }
    *event = sim_handle_new(HANDLE_EVENT, made);
    return KIND_SUCCESS;
}

int sim_event_create(uint64_t *event)
{
    return sim_event_create_flags(1, 0, 0, event);
}

int sim_event_destroy(uint64_t event)
{
    struct event *destroyed = event_of(event);
    if (!destroyed)
        return KIND_INVALID_HANDLE;
    if (destroyed->latest)
        sim_record_drop(destroyed->latest);
    if (destroyed->page_file >= 0)      /* the page stays mapped: work may still write to it */
        close(destroyed->page_file);
    sim_handle_drop(event);
    free(destroyed);
    return KIND_SUCCESS;
}

/* The event whose record counts: its own, or that of the event of this process that it was opened from. */
static struct event *told_by(struct event *event)
{
    struct event *source = event->source ? event_of(event->source) : NULL;
    return source ? source : event;
}

static int record_in_capture(struct event *event, struct stream *stream)
{
    event->captured = stream->capture;
    event->captured_on = stream;
    event->captured_count = stream->capture->body->count;
    return KIND_SUCCESS;
}

int sim_event_record(uint64_t event, uint64_t stream)
{
    struct event *recorded = event_of(event);
    struct stream *on = sim_stream(stream);
    if (!recorded || !on || recorded->device != on->device)
        return KIND_INVALID_HANDLE;
    recorded = told_by(recorded);
    if (on->capture)
        return record_in_capture(recorded, on);
    struct record *record = calloc(1, sizeof *record);
    struct item *item = sim_item(WORK_RECORD);
    record->references = 2;
    record->stream = on;
    record->page = recorded->page;
    record->page_count = recorded->page ? ++recorded->page->recorded : 0;
    item->record = record;
    int kind = sim_enqueue(on, item);
    if (kind) {
        sim_record_drop(record);
        return kind;
    }
    record->number = item->number;
    if (recorded->latest)
        sim_record_drop(recorded->latest);
    recorded->latest = record;
    recorded->captured = NULL;
    return KIND_SUCCESS;
}

static int is_shared_from_elsewhere(const struct event *event)
{
    return event->page && event->page_file < 0 && !event->latest;
}

int sim_event_sync(uint64_t event)
{
    struct event *waited = event_of(event);
    if (!waited)
        return KIND_INVALID_HANDLE;
    waited = told_by(waited);
    if (waited->captured) {
        sim_capture_break(waited->captured);
        return KIND_CAPTURE_UNSUPPORTED;
    }
    if (is_shared_from_elsewhere(waited)) {
        sim_wait_for_page(waited->page, waited->page->recorded);
        return KIND_SUCCESS;
    }
    struct record *record = waited->latest;
    if (!record)
        return KIND_SUCCESS;
    int device = waited->device;
    if (!record->done) {
        record->references++;
        sim_wait_stream(record->stream, record->number);
        sim_record_drop(record);
    }
    return sim_devices[device].lost;
}

int sim_event_query(uint64_t event)
{
    struct event *asked = event_of(event);
    if (!asked)
        return KIND_INVALID_HANDLE;
    asked = told_by(asked);
    if (asked->captured) {
        sim_capture_break(asked->captured);
        return KIND_CAPTURE_UNSUPPORTED;
    }
    if (is_shared_from_elsewhere(asked))
        return asked->page->done < asked->page->recorded ? KIND_NOT_READY : KIND_SUCCESS;
    struct record *record = asked->latest;
    int device = asked->device;
    if (!record || record->done)
        return sim_devices[device].lost;
    if (!sim_settings.latency_ns && !record->stream->busy && sim_collective_ready(record->stream->first->collective))
        sim_run_first(record->stream);
    return sim_devices[device].lost ? sim_devices[device].lost : KIND_NOT_READY;
}

int sim_event_elapsed(uint64_t start, uint64_t end, float *elapsed)
{
    const struct event *first = event_of(start), *second = event_of(end);
    if (!first || !second || !first->timing || !second->timing || first->device != second->device)
        return KIND_INVALID_HANDLE;
    if (!first->latest || !second->latest)
        return KIND_INVALID_HANDLE;
    if (!first->latest->done || !second->latest->done)
        return KIND_NOT_READY;
    *elapsed = (float)((double)((int64_t)(second->latest->time - first->latest->time)) / 1e6);
    return KIND_SUCCESS;
}

static int join_capture(struct stream *stream, const struct event *event)
{
    struct capture *capture = event->captured;
    if (stream->capture && stream->capture != capture) {
        sim_capture_break(capture);
        return KIND_CAPTURE_UNSUPPORTED;
    }
    stream->capture = capture;
    struct stream *other = event->captured_on;
    if (other != stream && other->capture == capture && event->captured_count >= other->unjoined)
        other->unjoined = 0;
    return KIND_SUCCESS;
}

int sim_stream_wait_event(uint64_t stream, uint64_t event)
{
    struct stream *waiting = sim_stream(stream);
    struct event *waited = event_of(event);
    if (!waiting || !waited)
        return KIND_INVALID_HANDLE;
    waited = told_by(waited);
    if (waited->captured)
        return join_capture(waiting, waited);
    struct item *item = sim_item(WORK_WAIT);
    if (is_shared_from_elsewhere(waited)) {
        item->page = waited->page;
        item->page_count = waited->page->recorded;
    } else if (waited->latest) {
        item->record = waited->latest;
        item->record->references++;
    }
    return sim_enqueue(waiting, item);
}
