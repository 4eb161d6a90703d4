/* What tests and tools call by ctypes: settings at run time, what is alive. Faults and the log have theirs beside them. */
#include "state.h"

/* Releasing everything, as the end of the process would. */

static void destroy(enum handle_type type, uint64_t handle, void *object, void *wanted)
{
    (void)object;
    if (type != *(enum handle_type *)wanted)
        return;
    switch (type) {
    case HANDLE_STREAM: sim_stream_destroy(handle); break;
    case HANDLE_EVENT: sim_event_destroy(handle); break;
    case HANDLE_GRAPH: sim_graph_destroy(handle); break;
    case HANDLE_EXEC: sim_graph_exec_destroy(handle); break;
    case HANDLE_ALLOCATION: sim_mem_release(handle); break;
    case HANDLE_MODULE: sim_module_unload(handle); break;
    default: sim_handle_drop(handle); break;
    }
}

static void drop_work(void)
{
    for (struct stream *stream = sim_streams; stream; stream = stream->next) {
        while (stream->first) {
            struct item *item = stream->first;
            stream->first = item->next;
            if (item->record)
                item->record->done = 1;
            sim_item_free(item);
        }
        stream->last = NULL;
        stream->capture = NULL;
    }
}

static void release_everything(void)
{
    drop_work();
    for (enum handle_type type = HANDLE_TYPE_COUNT - 1; type > HANDLE_NONE; type--)
        sim_handle_each(destroy, &type);
    for (struct block *block; (block = sim_block_number(0));) {
        if (block->origin == FROM_MAP) {
            sim_mem_unmap(block->address, block->nbytes);
        } else {
            block->body = NULL;
            sim_block_release(block);
        }
    }
    sim_ranges_forget();
    for (int i = 0; i < MOST_DEVICES; i++) {
        struct device *device = &sim_devices[i];
        device->pool = (struct pool){0};
        device->used = device->enabled_peers = 0;
        device->has_context = device->lost = 0;
    }
    sim_thread()->last_kind = KIND_SUCCESS;
    sim_thread()->bound = 0;
    sim_thread()->device = 0;
}

static void enter(void)
{
    pthread_mutex_lock(&sim_lock);
    sim_settle();
}

static void leave(void)
{
    pthread_cond_broadcast(&sim_changed);
    pthread_mutex_unlock(&sim_lock);
}

/* Everything as in a new process: nothing alive, settings from the environment, log and launches empty. */
EXPORTED void nbxrt_sim_reset(void)
{
    pthread_mutex_lock(&sim_lock);
    release_everything();
    sim_launches_forget();
    sim_log_clear();
    sim_on_launch(NULL, NULL);
    sim_on_image(NULL, NULL);
    sim_architecture[0] = 0;
    sim_forget_settings();
    sim_forget_processes();
    leave();
}

EXPORTED void nbxrt_sim_release_all(void)
{
    enter();
    release_everything();
    leave();
}

/* Devices. */

EXPORTED int nbxrt_sim_devices(void)
{
    enter();
    int count = sim_settings.devices;
    leave();
    return count;
}

EXPORTED void nbxrt_sim_set_devices(int count)
{
    enter();
    sim_settings.devices = count < 0 ? 0 : count > MOST_DEVICES ? MOST_DEVICES : count;
    sim_set_visible(NULL);
    leave();
}

/* "1,0": what the runtime shows as device 0 and 1. */
EXPORTED void nbxrt_sim_set_visible(const char *list)
{
    enter();
    sim_set_visible(list);
    leave();
}

EXPORTED void nbxrt_sim_set_driver_version(int version)
{
    enter();
    sim_settings.driver_version = version;
    leave();
}

EXPORTED void nbxrt_sim_set_context(uint64_t nbytes)
{
    enter();
    sim_settings.context = nbytes;
    leave();
}

EXPORTED int nbxrt_sim_set_models(const char *list)
{
    enter();
    int kind = sim_set_models(list);
    leave();
    return kind;
}

EXPORTED void nbxrt_sim_set_part(int device, int part)
{
    enter();
    if (device >= 0 && device < MOST_DEVICES)
        sim_devices[device].part = part;
    leave();
}

EXPORTED void nbxrt_sim_set_no_driver(int none)
{
    enter();
    sim_settings.no_driver = none;
    leave();
}

EXPORTED uint64_t nbxrt_sim_memory(int device)
{
    enter();
    uint64_t memory = device >= 0 && device < MOST_DEVICES ? sim_devices[device].memory : 0;
    leave();
    return memory;
}

EXPORTED void nbxrt_sim_set_memory(int device, uint64_t nbytes)
{
    enter();
    for (int i = 0; i < MOST_DEVICES; i++)
        if (device < 0 || i == device)
            sim_devices[i].memory = nbytes;
    leave();
}

EXPORTED int nbxrt_sim_set_attribute(int device, const char *word, int value)
{
    int known = -1;
    enter();
    for (int attribute = 0; attribute < DEVICE_ATTRIBUTE_COUNT; attribute++)
        if (!strcmp(word, device_attribute_words[attribute]))
            known = attribute;
    for (int i = 0; i < MOST_DEVICES && known >= 0; i++)
        if (device < 0 || i == device)
            sim_devices[i].attributes[known] = value;
    leave();
    return known < 0 ? -1 : 0;
}

EXPORTED void nbxrt_sim_set_peer(int device, int peer, int reachable)
{
    enter();
    if (device >= 0 && device < MOST_DEVICES && peer >= 0 && peer < MOST_DEVICES) {
        uint64_t bit = (uint64_t)1 << peer, *unreachable = &sim_devices[device].unreachable_peers;
        *unreachable = reachable ? *unreachable & ~bit : *unreachable | bit;
    }
    leave();
}

/* What the management library lists on the device; a negative count gives the truth again. */
EXPORTED void nbxrt_sim_set_processes(int device, int count, const uint32_t *pids, const uint64_t *used)
{
    enter();
    if (device >= 0 && device < MOST_DEVICES && count <= SIM_MOST_ROWS) {
        struct device *set = &sim_devices[device];
        set->processes_given = count >= 0;
        set->processes.count = count < 0 ? 0 : (size_t)count;
        for (int i = 0; i < count; i++)
            set->processes.row[i] = (struct sim_row){pids[i], used[i]};
    }
    leave();
}

/* Physical devices that have a context, as bits. */
EXPORTED uint64_t nbxrt_sim_contexts(void)
{
    uint64_t contexts = 0;
    enter();
    for (int i = 0; i < MOST_DEVICES; i++)
        contexts |= (uint64_t)(sim_devices[i].has_context != 0) << i;
    leave();
    return contexts;
}

/* Faults, delays and work. */

EXPORTED void nbxrt_sim_mend(void)
{
    enter();
    sim_forget_faults();
    for (int i = 0; i < MOST_DEVICES; i++)
        sim_devices[i].lost = KIND_SUCCESS;
    leave();
}

EXPORTED void nbxrt_sim_set_latency(uint64_t microseconds)
{
    enter();
    sim_settings.latency_ns = microseconds * 1000;
    sim_wake_worker();
    leave();
}

/* Run up to `count` pieces of work, in the order in which they were given; how many were run. */
EXPORTED uint64_t nbxrt_sim_advance(uint64_t count)
{
    uint64_t run = 0;
    enter();
    while (run < count && sim_advance())
        run++;
    leave();
    return run;
}

EXPORTED uint64_t nbxrt_sim_pending(void)
{
    uint64_t pending = 0;
    enter();
    for (const struct stream *stream = sim_streams; stream; stream = stream->next) {
        pending += stream->busy != 0;
        for (const struct item *item = stream->first; item; item = item->next)
            pending++;
    }
    leave();
    return pending;
}

/* Called for every launch that a stream comes to: void (*)(name, grid, block, argument pointers, data). It may not call
   the vendor's functions. */
EXPORTED void nbxrt_sim_on_launch(void *function, void *data)
{
    enter();
    sim_on_launch(function, data);
    leave();
}

EXPORTED void nbxrt_sim_set_architecture(const char *text)
{
    enter();
    snprintf(sim_architecture, sizeof sim_architecture, "%s", text);
    leave();
}

/* Called for an image that is no simulated module: size_t (*)(image, text, room, data). It writes the text of a module
   that stands for it and answers the text's length, or 0. It may not call the vendor's functions. */
EXPORTED void nbxrt_sim_on_image(void *function, void *data)
{
    enter();
    sim_on_image(function, data);
    leave();
}

/* Texts: as much as there is room for, and the length of the whole. */

EXPORTED void nbxrt_sim_clear_log(void)
{
    enter();
    sim_log_clear();
    sim_launches_forget();
    leave();
}

EXPORTED size_t nbxrt_sim_launches(char *buffer, size_t size)
{
    enter();
    size_t length = sim_launches_text(buffer, size);
    leave();
    return length;
}

struct text { char *buffer; size_t size, used; };

static void say(struct text *text, const char *kind, uint64_t handle, uint64_t nbytes, int device)
{
    size_t left = text->used < text->size ? text->size - text->used : 0;
    text->used += (size_t)snprintf(left ? text->buffer + text->used : NULL, left, "%s\t%llu\t%llu\t%d\n", kind,
                                   (unsigned long long)handle, (unsigned long long)nbytes, device);
}

static void say_handle(enum handle_type type, uint64_t handle, void *object, void *text)
{
    uint64_t nbytes = type == HANDLE_ALLOCATION ? ((const struct allocation *)object)->nbytes : 0;
    int device = type == HANDLE_ALLOCATION ? ((const struct allocation *)object)->device
                 : type == HANDLE_STREAM   ? ((const struct stream *)object)->device
                 : type == HANDLE_EVENT    ? ((const struct event *)object)->device
                                           : -1;
    if (type != HANDLE_FUNCTION)        /* it goes with its module */
        say(text, sim_handle_names[type], handle, nbytes, device);
}

/* KIND handle nbytes device, a line for everything that is alive. */
EXPORTED size_t nbxrt_sim_ledger(char *buffer, size_t size)
{
    static const char *const kinds[ORIGIN_COUNT] = {
        [FROM_MALLOC] = "device", [FROM_POOL] = "pool",      [FROM_HOST] = "pinned",   [FROM_REGISTER] = "registered",
        [FROM_MANAGED] = "managed", [FROM_IPC] = "imported", [FROM_MODULE] = "global", [FROM_MAP] = "mapped"};
    struct text text = {buffer, size, 0};
    const struct block *block;
    enter();
    for (size_t i = 0; (block = sim_block_number(i)); i++)
        say(&text, kinds[block->origin], block->address, block->nbytes, block->device);
    sim_handle_each(say_handle, &text);
    size_t left = text.used < size ? size - text.used : 0;
    text.used += sim_ranges_text(left ? buffer + text.used : NULL, left);
    leave();
    return text.used;
}
