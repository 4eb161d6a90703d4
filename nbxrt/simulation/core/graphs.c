/* Capture, graphs, and their replay. A graph keeps its work in the order in which it was captured, which respects every
   dependency, and a launch gives that work to one stream. */
#include "state.h"

struct graph { struct body *body; };

/* What may not happen while something is being captured. */
static int is_unsafe(int operation)
{
    switch (operation) {
    case OP_MALLOC: case OP_FREE: case OP_MALLOC_HOST: case OP_FREE_HOST: case OP_MALLOC_MANAGED: case OP_HOST_REGISTER:
    case OP_HOST_UNREGISTER: case OP_MEMCPY: case OP_MEMCPY_PEER: case OP_MEMSET: case OP_SYNC: case OP_MODULE_LOAD:
    case OP_MODULE_UNLOAD:
        return 1;
    default:
        return 0;
    }
}

static int is_in_the_way(const struct capture *capture)
{
    if (capture->mode == CAPTURE_MODE_RELAXED)
        return 0;
    return capture->mode == CAPTURE_MODE_GLOBAL || capture->thread == sim_thread()->id;
}

int sim_capture_forbids(int operation)
{
    int found = 0;
    if (!is_unsafe(operation))
        return KIND_SUCCESS;
    for (struct stream *stream = sim_streams; stream; stream = stream->next)
        if (stream->capture && is_in_the_way(stream->capture)) {
            sim_capture_break(stream->capture);
            found = 1;
        }
    return found ? KIND_CAPTURE_UNSUPPORTED : KIND_SUCCESS;
}

void sim_capture_break(struct capture *capture)
{
    capture->broken = 1;
}

int sim_capture_append(struct stream *stream, struct item *item)
{
    struct body *body = stream->capture->body;
    if (body->last)
        body->last->next = item;
    else
        body->first = item;
    body->last = item;
    body->count++;
    stream->unjoined = stream != stream->capture->origin ? body->count : 0;
    return stream->capture->broken ? KIND_CAPTURE_UNSUPPORTED : KIND_SUCCESS;
}

void sim_body_drop(struct body *body)
{
    if (--body->references)
        return;
    for (struct item *item = body->first, *next; item; item = next) {
        next = item->next;
        sim_item_free(item);
    }
    for (size_t i = 0; sim_block_number(i);) {
        struct block *block = sim_block_number(i);
        if (block->body == body)
            sim_block_release(block);
        else
            i++;
    }
    free(body);
}

int sim_stream_begin_capture(uint64_t stream, int mode)
{
    struct stream *captured = sim_stream(stream);
    if (!captured)
        return KIND_INVALID_HANDLE;
    if (captured->legacy)
        return KIND_CAPTURE_UNSUPPORTED;
    if (captured->capture)
        return KIND_INVALID_VALUE;
    struct capture *capture = calloc(1, sizeof *capture);
    capture->mode = mode;
    capture->thread = sim_thread()->id;
    capture->origin = captured;
    capture->body = calloc(1, sizeof *capture->body);
    capture->body->references = 1;
    captured->capture = capture;
    captured->unjoined = 0;
    return KIND_SUCCESS;
}

/* Events remember the capture that they were recorded in, so its memory stays; they forget it here. */
static void forget_capture(enum handle_type type, uint64_t handle, void *object, void *capture)
{
    struct event *event = object;
    (void)handle;
    if (type == HANDLE_EVENT && event->captured == capture)
        event->captured = NULL;
}

int sim_stream_end_capture(uint64_t stream, uint64_t *graph)
{
    struct stream *captured = sim_stream(stream);
    if (!captured)
        return KIND_INVALID_HANDLE;
    struct capture *capture = captured->capture;
    if (!capture)
        return KIND_INVALID_VALUE;
    if (capture->mode != CAPTURE_MODE_RELAXED && capture->thread != sim_thread()->id)
        return KIND_NOT_PERMITTED;
    if (capture->origin != captured)
        return KIND_CAPTURE_UNSUPPORTED;
    int complete = !capture->broken;
    for (struct stream *other = sim_streams; other; other = other->next)
        if (other->capture == capture) {
            complete = complete && !other->unjoined;
            other->capture = NULL;
            other->unjoined = 0;
        }
    sim_handle_each(forget_capture, capture);
    struct body *body = capture->body;
    free(capture);
    if (!complete) {
        sim_body_drop(body);
        return KIND_CAPTURE_UNSUPPORTED;
    }
    struct graph *made = calloc(1, sizeof *made);
    made->body = body;
    *graph = sim_handle_new(HANDLE_GRAPH, made);
    return KIND_SUCCESS;
}

/* 2: a capture that an error has ended, and that is still to be closed. */
int sim_stream_is_capturing(uint64_t stream, int *capturing)
{
    const struct stream *asked = sim_stream(stream);
    if (!asked)
        return KIND_INVALID_HANDLE;
    *capturing = !asked->capture ? 0 : asked->capture->broken ? 2 : 1;
    return KIND_SUCCESS;
}

int sim_graph_instantiate(uint64_t graph, uint64_t *graph_exec)
{
    const struct graph *from = sim_handle_get(HANDLE_GRAPH, graph);
    if (!from)
        return KIND_INVALID_VALUE;
    struct graph *made = calloc(1, sizeof *made);
    made->body = from->body;
    made->body->references++;
    *graph_exec = sim_handle_new(HANDLE_EXEC, made);
    return KIND_SUCCESS;
}

static int same_shape(const struct body *one, const struct body *other)
{
    const struct item *left = one->first, *right = other->first;
    for (; left && right; left = left->next, right = right->next)
        if (left->work != right->work)
            return 0;
    return !left && !right;
}

int sim_graph_exec_update(uint64_t graph_exec, uint64_t graph)
{
    struct graph *updated = sim_handle_get(HANDLE_EXEC, graph_exec);
    const struct graph *from = sim_handle_get(HANDLE_GRAPH, graph);
    if (!updated || !from)
        return KIND_INVALID_VALUE;
    if (!same_shape(updated->body, from->body))
        return KIND_GRAPH_UPDATE_FAILURE;
    from->body->references++;
    sim_body_drop(updated->body);
    updated->body = from->body;
    return KIND_SUCCESS;
}

/* Some vendors' captures end in what is launched: there is nothing between. */
static enum handle_type executable(void)
{
    return sim_captures_are_executable ? HANDLE_GRAPH : HANDLE_EXEC;
}

int sim_graph_launch(uint64_t graph_exec, uint64_t stream)
{
    const struct graph *launched = sim_handle_get(executable(), graph_exec);
    struct stream *on = sim_stream(stream);
    int kind = KIND_SUCCESS;
    if (!launched)
        return KIND_INVALID_VALUE;
    if (!on)
        return KIND_INVALID_HANDLE;
    for (const struct item *item = launched->body->first; item && !kind; item = item->next) {
        struct item *again = sim_item(item->work);
        *again = *item;
        again->next = NULL;
        if (again->launch)
            again->launch->references++;
        kind = sim_enqueue(on, again);
    }
    return kind;
}

static int destroy(enum handle_type type, uint64_t handle)
{
    struct graph *graph = sim_handle_get(type, handle);
    if (!graph)
        return KIND_INVALID_VALUE;
    sim_handle_drop(handle);
    sim_body_drop(graph->body);
    free(graph);
    return KIND_SUCCESS;
}

int sim_graph_destroy(uint64_t graph)
{
    return destroy(HANDLE_GRAPH, graph);
}

int sim_graph_exec_destroy(uint64_t graph_exec)
{
    return destroy(executable(), graph_exec);
}
