/* Work, and when it is done: bytes move when a stream reaches the work, not when it is asked for.

   All work has a number in the order in which it was given. What work waits for has a smaller number: earlier work of
   its stream, the record that it waits for, and between the default stream and the blocking streams of a device, earlier
   work of the other. So running what is needed first always ends.

   Without a latency nothing moves by itself: whoever waits runs what is waited for, and each query runs one piece. With
   a latency a thread runs everything, in order of number, each piece that late after it was given. */
#include <sys/types.h>
#include <time.h>

#include "state.h"

enum { LOOK_AGAIN_NS = 300000 };

static uint64_t numbers;                /* of all work that was ever given */
static int worker_runs;
static pid_t worker_process;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER;

/* Giving work. */

struct item *sim_item(enum work work)
{
    struct item *item = calloc(1, sizeof *item);
    item->work = work;
    return item;
}

void sim_item_free(struct item *item)
{
    if (item->record)
        sim_record_drop(item->record);
    if (item->launch)
        sim_launch_drop(item->launch);
    if (item->collective)
        sim_collective_drop(item->collective);
    free(item);
}

void sim_record_drop(struct record *record)
{
    if (!--record->references)
        free(record);
}

static int has_work(void);
static int earliest_ready(struct stream **found);

static void wait_given(uint64_t nanoseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t end = (uint64_t)until.tv_nsec + nanoseconds;
    until.tv_sec += (time_t)(end / 1000000000u);
    until.tv_nsec = (long)(end % 1000000000u);
    pthread_cond_timedwait(&given, &sim_lock, &until);
}

static void *worker(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&sim_lock);
    for (;;) {
        struct stream *stream;
        if (!sim_settings.latency_ns || !has_work()) {
            pthread_cond_wait(&given, &sim_lock);
            continue;
        }
        if (!earliest_ready(&stream)) {         /* all of it waits for another rank */
            wait_given(LOOK_AGAIN_NS);
            continue;
        }
        uint64_t now = sim_now(), due = stream->first->given + sim_settings.latency_ns;
        if (due > now) {
            wait_given(due - now);
            continue;
        }
        sim_run_first(stream);
        pthread_cond_broadcast(&sim_changed);
    }
    return NULL;
}

void sim_wake_worker(void)
{
    pthread_t thread;
    if (!sim_settings.latency_ns)
        return;
    if (!worker_runs || worker_process != getpid()) {
        worker_process = getpid();
        worker_runs = !pthread_create(&thread, NULL, worker, NULL);
        if (worker_runs)
            pthread_detach(thread);
    }
    pthread_cond_signal(&given);
}

int sim_enqueue(struct stream *stream, struct item *item)
{
    item->given = sim_now();
    if (stream->capture)
        return sim_capture_append(stream, item);
    if (stream->legacy)                 /* it would wait for a stream that is only recording */
        for (struct stream *other = sim_streams; other; other = other->next)
            if (other->capture && other->blocking && other->device == stream->device) {
                sim_capture_break(other->capture);
                sim_item_free(item);
                return KIND_CAPTURE_UNSUPPORTED;
            }
    item->number = ++numbers;
    if (stream->last)
        stream->last->next = item;
    else
        stream->first = item;
    stream->last = item;
    sim_wake_worker();
    return KIND_SUCCESS;
}

/* Running work. */

static int has_before(const struct stream *stream, uint64_t number)
{
    return (stream->busy && stream->busy <= number) || (stream->first && stream->first->number <= number);
}

static void run_until(struct stream *stream, uint64_t number)
{
    while (has_before(stream, number)) {
        if (stream->busy)
            sim_wait_changed(100);
        else
            sim_run_first(stream);
    }
}

void sim_run_before(struct stream *stream, uint64_t number)
{
    run_until(stream, number - 1);
}

static struct stream *holding_up(const struct stream *stream, uint64_t number)
{
    for (struct stream *other = sim_streams; other; other = other->next) {
        int ordered = (stream->legacy && other->blocking) || (stream->blocking && other->legacy);
        if (other != stream && other->device == stream->device && ordered && has_before(other, number - 1))
            return other;
    }
    return NULL;
}

/* Run what the first work of the stream waits for. */
static void clear_the_way(struct stream *stream, const struct item *item)
{
    struct stream *other;
    uint64_t number = item->number;
    while ((other = holding_up(stream, number)))
        run_until(other, number - 1);
    if (stream->first == item && item->work == WORK_WAIT && item->record && !item->record->done)
        run_until(item->record->stream, item->record->number);
}

void sim_lose(int device, int kind)
{
    if (!sim_devices[device].lost)
        sim_devices[device].lost = kind;
}

static void move_bytes(struct stream *stream, const struct item *item)
{
    int copies = item->work == WORK_COPY;
    int gone = (item->known & KNOWN_DST && !sim_block_at(item->dst)) ||
               (item->known & KNOWN_SRC && !sim_block_at(item->src));
    int kind = gone ? KIND_INVALID_VALUE : sim_range(item->dst, item->nbytes, SIDE_ANY, stream->device, 1);
    if (!kind && copies)
        kind = sim_range(item->src, item->nbytes, SIDE_ANY, stream->device, 0);
    if (kind)                           /* it was released while the copy was waiting */
        sim_lose(stream->device, KIND_ILLEGAL_ADDRESS);
    else if (copies)
        memmove((void *)(uintptr_t)item->dst, (const void *)(uintptr_t)item->src, item->nbytes);
    else
        memset((void *)(uintptr_t)item->dst, item->value & 0xff, item->nbytes);
}

static void finish_record(struct record *record, uint64_t time)
{
    record->done = 1;
    record->time = time;
    if (record->page)
        record->page->done = record->page_count;
}

/* The thread gives the lock back while it waits for another process, which polls as well. */
void sim_wait_for_page(const struct event_page *page, uint64_t count)
{
    while (page->done < count) {
        pthread_mutex_unlock(&sim_lock);
        usleep(200);
        pthread_mutex_lock(&sim_lock);
    }
}

static void release_block(uint64_t address)
{
    struct block *block = sim_block_of(address);
    if (block)
        sim_block_release(block);
}

_Thread_local int sim_running;

static void perform(struct stream *stream, struct item *item)
{
    int marks = item->work == WORK_RECORD || item->work == WORK_WAIT;
    int fault = marks ? KIND_SUCCESS : sim_fault("work", "", sim_ordinal(stream->device));
    if (fault)
        sim_lose(stream->device, fault);
    if (item->work == WORK_RECORD)
        finish_record(item->record, stream->clock);
    else if (item->work == WORK_RELEASE)
        release_block(item->dst);
    else if (sim_devices[stream->device].lost)
        return;
    else if (item->work == WORK_COPY || item->work == WORK_FILL)
        move_bytes(stream, item);
    else if (item->work == WORK_LAUNCH)
        sim_launch_run(item->launch, stream);
    else if (item->work == WORK_COLLECTIVE) {
        int kind = sim_collective_run(item->collective, stream, item->value);
        if (kind)
            sim_lose(stream->device, kind);
    } else if (item->work == WORK_WAIT && item->page)
        sim_wait_for_page(item->page, item->page_count);
}

/* A stream's clock goes by what its work would take: a microsecond, and a nanosecond for 64 bytes. */
static void pass_time(struct stream *stream, const struct item *item)
{
    if (stream->clock < item->given)
        stream->clock = item->given;
    if (item->work == WORK_WAIT && item->record && stream->clock < item->record->time)
        stream->clock = item->record->time;
    if (item->work != WORK_RECORD && item->work != WORK_WAIT)
        stream->clock += 1000 + item->nbytes / 64;
}

void sim_run_first(struct stream *stream)
{
    struct item *item = stream->first;
    clear_the_way(stream, item);
    if (stream->busy || stream->first != item)      /* another thread was there first */
        return;
    stream->first = item->next;
    if (!stream->first)
        stream->last = NULL;
    stream->busy = item->number;
    pass_time(stream, item);
    sim_running = 1;
    perform(stream, item);
    sim_running = 0;
    stream->busy = 0;
    sim_item_free(item);
    pthread_cond_broadcast(&sim_changed);
    sim_forget_if_over(stream);
}

static int earliest(struct stream **found)
{
    *found = NULL;
    for (struct stream *stream = sim_streams; stream; stream = stream->next)
        if (stream->first && !stream->busy && (!*found || stream->first->number < (*found)->first->number))
            *found = stream;
    return *found != NULL;
}

static int has_work(void)
{
    struct stream *stream;
    return earliest(&stream);
}

static int is_ready(const struct stream *stream)
{
    const struct item *item = stream->first;
    int waits = item->work == WORK_WAIT && item->record && !item->record->done;
    return !waits && !holding_up(stream, item->number) && sim_collective_ready(item->collective);
}

/* Work that waits for another rank holds up nothing but what is ordered behind it. */
static int earliest_ready(struct stream **found)
{
    *found = NULL;
    for (struct stream *stream = sim_streams; stream; stream = stream->next) {
        int is_earlier = stream->first && (!*found || stream->first->number < (*found)->first->number);
        if (is_earlier && !stream->busy && is_ready(stream))
            *found = stream;
    }
    return *found != NULL;
}

int sim_advance(void)
{
    struct stream *stream;
    if (!earliest(&stream))
        return 0;
    sim_run_first(stream);
    return 1;
}

/* Waiting. */

void sim_wait_stream(struct stream *stream, uint64_t number)
{
    uint64_t last = stream->last ? stream->last->number : stream->busy;
    if (number > last)
        number = last;
    while (has_before(stream, number)) {
        if (sim_settings.latency_ns || stream->busy)
            sim_wait_changed(100);
        else
            sim_run_first(stream);
    }
}

void sim_wait_device(int device)
{
    for (struct stream *stream = sim_streams; stream;) {
        int counts = (device < 0 || stream->device == device) && has_before(stream, UINT64_MAX);
        if (counts)
            sim_wait_stream(stream, UINT64_MAX);
        stream = counts ? sim_streams : stream->next;
    }
}

static int touches(const struct item *item, uint64_t address, uint64_t nbytes)
{
    int dst = item->dst < address + nbytes && address < item->dst + item->nbytes;
    int src = item->src < address + nbytes && address < item->src + item->nbytes;
    return (item->work == WORK_COPY || item->work == WORK_FILL) && (dst || src);
}

/* Run the work that uses the memory, on whatever device. */
void sim_run_range(uint64_t address, uint64_t nbytes)
{
    for (struct stream *stream = sim_streams; stream;) {
        uint64_t last = 0;
        for (const struct item *item = stream->first; item; item = item->next)
            if (touches(item, address, nbytes))
                last = item->number;
        if (last)
            sim_wait_stream(stream, last);
        stream = last ? sim_streams : stream->next;
    }
}
