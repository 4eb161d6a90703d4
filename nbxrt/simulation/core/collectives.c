/* Collectives between ranks that are threads, or groups of calls, of this process.

   Each rank's call is work of its stream. A rank that comes to it waits until the others have called too and brings
   their streams as far; the first that has done so does the whole operation for all, and the others find it done. Sent
   elements are kept until they are received, so that ranks may send to each other in any order. */
#include <math.h>

#include "numbers.h"
#include "state.h"

enum { WAIT_MS = 20000 };

struct part { uint64_t send, receive, number; struct stream *stream; int posted; };

struct collective {
    struct collective *next;
    struct ranks *ranks;
    int references, operation, datatype, reduction, root, mismatched;
    int called, done;
    uint64_t order, count;
    int from, to;                       /* of send and receive */
    char *sent;
    uint64_t received_at;
    struct part parts[SIM_MOST_RANKS];
};

/* One communicator, all ranks of it. */
struct ranks {
    struct ranks *next;
    unsigned char id[32];
    int count, joined, left, broken;
    int devices[SIM_MOST_RANKS];
    uint64_t calls[SIM_MOST_RANKS];                         /* collectives that each rank has called */
    uint64_t messages[2][SIM_MOST_RANKS][SIM_MOST_RANKS];   /* sent and received, by sender and receiver */
    struct collective *open;
};

struct communicator { struct ranks *ranks; int rank, device; };

static struct ranks *all_ranks;
static _Thread_local struct ranks *awaited[SIM_MOST_RANKS];
static _Thread_local int awaited_count;

/* Joining and leaving. */

int sim_comm_unique_id(struct sim_bytes *id)
{
    static uint64_t made;
    uint64_t words[4] = {0x6d6d6f636d6973, (uint64_t)getpid(), ++made, sim_now()};
    id->nbytes = sizeof words;
    memcpy(id->data, words, sizeof words);
    return KIND_SUCCESS;
}

static struct ranks *ranks_of(const void *id, int count)
{
    for (struct ranks *ranks = all_ranks; ranks; ranks = ranks->next)
        if (!memcmp(ranks->id, id, sizeof ranks->id))
            return ranks;
    struct ranks *made = calloc(1, sizeof *made);
    memcpy(made->id, id, sizeof made->id);
    made->count = count;
    for (int rank = 0; rank < SIM_MOST_RANKS; rank++)
        made->devices[rank] = -1;
    made->next = all_ranks;
    return all_ranks = made;
}

static int wait_for_all(struct ranks *ranks)
{
    uint64_t end = sim_now() + (uint64_t)WAIT_MS * 1000000;
    while (ranks->joined < ranks->count && !ranks->broken && sim_now() < end)
        sim_wait_changed(100);
    if (ranks->joined < ranks->count && !ranks->broken)
        ranks->broken = KIND_SYSTEM_ERROR;
    return ranks->broken;
}

static int join(struct ranks *ranks, int rank, int device)
{
    if (ranks->devices[rank] >= 0)
        return KIND_INVALID_VALUE;
    for (int other = 0; other < ranks->count; other++)
        if (ranks->devices[other] == device)
            ranks->broken = KIND_INVALID_VALUE;             /* two ranks on one device */
    ranks->devices[rank] = device;
    ranks->joined++;
    pthread_cond_broadcast(&sim_changed);
    return KIND_SUCCESS;
}

int sim_comm_init_rank(int nranks, const void *id, size_t id_nbytes, int rank, uint64_t *communicator)
{
    if (nranks < 1 || nranks > SIM_MOST_RANKS || rank < 0 || rank >= nranks || id_nbytes < sizeof all_ranks->id)
        return KIND_INVALID_VALUE;
    struct ranks *ranks = ranks_of(id, nranks);
    int kind = ranks->count == nranks ? join(ranks, rank, sim_current()) : KIND_INVALID_VALUE;
    if (kind)
        return kind;
    if (sim_thread()->group_depth) {
        if (awaited_count < SIM_MOST_RANKS)
            awaited[awaited_count++] = ranks;
    } else if ((kind = wait_for_all(ranks))) {
        return kind;
    }
    struct communicator *made = calloc(1, sizeof *made);
    *made = (struct communicator){ranks, rank, ranks->devices[rank]};
    *communicator = sim_handle_new(HANDLE_COMMUNICATOR, made);
    return KIND_SUCCESS;
}

int sim_group_start(void)
{
    sim_thread()->group_depth++;
    return KIND_SUCCESS;
}

int sim_group_end(void)
{
    int kind = KIND_SUCCESS;
    if (!sim_thread()->group_depth)
        return KIND_INVALID_VALUE;
    if (--sim_thread()->group_depth)
        return KIND_SUCCESS;
    while (awaited_count) {
        int own = wait_for_all(awaited[--awaited_count]);
        kind = kind ? kind : own;
    }
    return kind;
}

/* The memory of a communicator stays: work that waits in a stream may still name it. */
static int leave(uint64_t handle, int at_once)
{
    struct communicator *left = sim_handle_get(HANDLE_COMMUNICATOR, handle);
    if (!left)
        return KIND_INVALID_VALUE;
    if (at_once) {
        left->ranks->broken = left->ranks->broken ? left->ranks->broken : KIND_SYSTEM_ERROR;
        pthread_cond_broadcast(&sim_changed);
    } else {
        sim_wait_device(left->device);
        if (!sim_handle_get(HANDLE_COMMUNICATOR, handle))
            return KIND_INVALID_VALUE;
    }
    sim_handle_drop(handle);
    left->ranks->left++;
    free(left);
    return KIND_SUCCESS;
}

int sim_comm_destroy(uint64_t communicator)
{
    return leave(communicator, 0);
}

int sim_comm_abort(uint64_t communicator)
{
    return leave(communicator, 1);
}

int sim_comm_async_error(uint64_t communicator, int *code)
{
    const struct communicator *asked = sim_handle_get(HANDLE_COMMUNICATOR, communicator);
    if (!asked)
        return KIND_INVALID_VALUE;
    *code = asked->ranks->broken;
    return KIND_SUCCESS;
}

/* Calling. */

struct request { int operation, datatype, reduction, root, from, to; uint64_t send, receive, count, order; };

static uint64_t share(int operation, int ranks, int is_send)
{
    int all = operation == OP_ALL_TO_ALL || operation == (is_send ? OP_REDUCE_SCATTER : OP_ALL_GATHER);
    return all ? (uint64_t)ranks : 1;
}

static int are_buffers_good(const struct request *request, const struct communicator *own)
{
    uint64_t nbytes = request->count * sim_element_size(request->datatype);
    int operation = request->operation, is_root = own->rank == request->root;
    int needs_send = operation != OP_RECEIVE && (operation != OP_BROADCAST || is_root);
    int needs_receive = operation != OP_SEND && (operation != OP_REDUCE || is_root);
    uint64_t out = nbytes * share(operation, own->ranks->count, 1);
    uint64_t in = nbytes * share(operation, own->ranks->count, 0);
    if (needs_send && sim_range(request->send, out, SIDE_DEVICE, own->device, 0))
        return 0;
    return !needs_receive || !sim_range(request->receive, in, SIDE_DEVICE, own->device, 1);
}

static int is_message(int operation)
{
    return operation == OP_SEND || operation == OP_RECEIVE;
}

/* The operation that this rank's call belongs to: the one with its place in the order of all calls, or a new one. */
static struct collective *find(struct ranks *ranks, const struct request *request)
{
    for (struct collective *found = ranks->open; found; found = found->next) {
        int same_kind = is_message(found->operation) == is_message(request->operation);
        if (same_kind && found->order == request->order && found->from == request->from && found->to == request->to)
            return found;
    }
    struct collective *made = calloc(1, sizeof *made);
    made->ranks = ranks;
    made->operation = request->operation;
    made->datatype = request->datatype;
    made->reduction = request->reduction;
    made->root = request->root;
    made->count = request->count;
    made->order = request->order;
    made->from = request->from;
    made->to = request->to;
    made->next = ranks->open;
    return ranks->open = made;
}

static int differs(const struct collective *one, const struct request *other)
{
    if (one->count != other->count || one->datatype != other->datatype)
        return 1;
    return !is_message(one->operation) &&
           (one->operation != other->operation || one->reduction != other->reduction || one->root != other->root);
}

/* Who sends to whom, and the place of the call in the order of its kind. */
static void number_call(struct request *request, struct communicator *own)
{
    int sends = request->operation == OP_SEND, receives = request->operation == OP_RECEIVE;
    request->from = sends ? own->rank : receives ? request->root : 0;
    request->to = receives ? own->rank : sends ? request->root : 0;
    uint64_t *counted = sends || receives ? &own->ranks->messages[receives][request->from][request->to]
                                          : &own->ranks->calls[own->rank];
    request->order = (*counted)++;
}

static int give(const struct request *request, struct communicator *own, struct stream *stream)
{
    struct collective *joined = find(own->ranks, request);
    struct item *item = sim_item(WORK_COLLECTIVE);
    joined->mismatched |= differs(joined, request);
    item->collective = joined;
    item->value = request->operation == OP_RECEIVE;
    item->nbytes = request->count * sim_element_size(request->datatype);
    joined->references++;
    int kind = sim_enqueue(stream, item);
    if (kind)
        return kind;
    if (request->operation == OP_RECEIVE)
        joined->received_at = request->receive;
    else
        joined->parts[own->rank] = (struct part){request->send, request->receive, item->number, stream, 1};
    joined->called++;
    pthread_cond_broadcast(&sim_changed);
    return KIND_SUCCESS;
}

static int call_with(struct request request, uint64_t send, uint64_t receive, uint64_t count, uint64_t communicator,
                     uint64_t stream)
{
    struct communicator *own = sim_handle_get(HANDLE_COMMUNICATOR, communicator);
    struct stream *on = sim_stream(stream);
    if (!own || !on || on->device != own->device || request.root < 0 || request.root >= own->ranks->count)
        return KIND_INVALID_VALUE;
    if (own->ranks->broken)
        return own->ranks->broken;
    if (on->capture)
        return KIND_CAPTURE_UNSUPPORTED;
    request.send = send;
    request.receive = receive;
    request.count = count;
    if (!count)
        return KIND_SUCCESS;
    if (!are_buffers_good(&request, own))
        return KIND_INVALID_VALUE;
    number_call(&request, own);
    return give(&request, own, on);
}

int sim_all_reduce(uint64_t send, uint64_t receive, uint64_t count, int datatype, int reduction, uint64_t communicator,
                   uint64_t stream)
{
    struct request request = {.operation = OP_ALL_REDUCE, .datatype = datatype, .reduction = reduction};
    return call_with(request, send, receive, count, communicator, stream);
}

int sim_broadcast(uint64_t send, uint64_t receive, uint64_t count, int datatype, int root, uint64_t communicator,
                  uint64_t stream)
{
    struct request request = {.operation = OP_BROADCAST, .datatype = datatype, .root = root};
    return call_with(request, send, receive, count, communicator, stream);
}

int sim_reduce(uint64_t send, uint64_t receive, uint64_t count, int datatype, int reduction, int root,
               uint64_t communicator, uint64_t stream)
{
    struct request request = {.operation = OP_REDUCE, .datatype = datatype, .reduction = reduction, .root = root};
    return call_with(request, send, receive, count, communicator, stream);
}

int sim_all_gather(uint64_t send, uint64_t receive, uint64_t count, int datatype, uint64_t communicator,
                   uint64_t stream)
{
    struct request request = {.operation = OP_ALL_GATHER, .datatype = datatype};
    return call_with(request, send, receive, count, communicator, stream);
}

int sim_reduce_scatter(uint64_t send, uint64_t receive, uint64_t count, int datatype, int reduction,
                       uint64_t communicator, uint64_t stream)
{
    struct request request = {.operation = OP_REDUCE_SCATTER, .datatype = datatype, .reduction = reduction};
    return call_with(request, send, receive, count, communicator, stream);
}

int sim_all_to_all(uint64_t send, uint64_t receive, uint64_t count, int datatype, uint64_t communicator,
                   uint64_t stream)
{
    struct request request = {.operation = OP_ALL_TO_ALL, .datatype = datatype};
    return call_with(request, send, receive, count, communicator, stream);
}

int sim_send(uint64_t address, uint64_t count, int datatype, int peer, uint64_t communicator, uint64_t stream)
{
    struct request request = {.operation = OP_SEND, .datatype = datatype, .root = peer};
    return call_with(request, address, 0, count, communicator, stream);
}

int sim_receive(uint64_t address, uint64_t count, int datatype, int peer, uint64_t communicator, uint64_t stream)
{
    struct request request = {.operation = OP_RECEIVE, .datatype = datatype, .root = peer};
    return call_with(request, 0, address, count, communicator, stream);
}

/* Running. */

static char *at(uint64_t address)
{
    return (char *)(uintptr_t)address;
}

static void reduce_part(const struct collective *work, uint64_t first, char *to)
{
    const char *rows[SIM_MOST_RANKS];
    for (int rank = 0; rank < work->ranks->count; rank++)
        rows[rank] = at(work->parts[rank].send) + first * sim_element_size(work->datatype);
    sim_reduce_rows(work->datatype, work->reduction, rows, work->ranks->count, work->count, to);
}

/* What a rank receives. All of it is made before any of it is written, since a rank may receive where it sends from. */
static char *made_for(const struct collective *work, int rank, size_t *nbytes)
{
    size_t own = work->count * sim_element_size(work->datatype), count = (size_t)work->ranks->count;
    *nbytes = own * share(work->operation, work->ranks->count, 0);
    char *made = malloc(*nbytes);
    switch (work->operation) {
    case OP_BROADCAST:
        memcpy(made, at(work->parts[work->root].send), own);
        break;
    case OP_ALL_GATHER:
        for (size_t from = 0; from < count; from++)
            memcpy(made + from * own, at(work->parts[from].send), own);
        break;
    case OP_ALL_TO_ALL:
        for (size_t from = 0; from < count; from++)
            memcpy(made + from * own, at(work->parts[from].send) + (size_t)rank * own, own);
        break;
    case OP_REDUCE_SCATTER:
        reduce_part(work, (uint64_t)rank * work->count, made);
        break;
    default:
        reduce_part(work, 0, made);
    }
    return made;
}

static void do_for_all(struct collective *work)
{
    char *made[SIM_MOST_RANKS];
    size_t nbytes[SIM_MOST_RANKS];
    for (int rank = 0; rank < work->ranks->count; rank++)
        made[rank] = made_for(work, rank, &nbytes[rank]);
    for (int rank = 0; rank < work->ranks->count; rank++) {
        if (work->operation != OP_REDUCE || rank == work->root)
            memcpy(at(work->parts[rank].receive), made[rank], nbytes[rank]);
        free(made[rank]);
    }
}

static int is_called_by_all(const struct collective *work)
{
    if (is_message(work->operation))
        return work->parts[work->from].posted;
    return work->called == work->ranks->count;
}

int sim_collective_ready(const struct collective *work)
{
    return !work || work->done || work->ranks->broken || is_called_by_all(work);
}

static int wait_for_calls(struct collective *work)
{
    uint64_t end = sim_now() + (uint64_t)WAIT_MS * 1000000;
    while (!sim_collective_ready(work) && sim_now() < end)
        sim_wait_changed(100);
    if (!sim_collective_ready(work))
        work->ranks->broken = KIND_SYSTEM_ERROR;
    if (work->mismatched && !work->ranks->broken)
        work->ranks->broken = KIND_INVALID_VALUE;
    return work->ranks->broken;
}

static void run_message(struct collective *work, struct stream *stream, int receives)
{
    const struct part *from = &work->parts[work->from];
    size_t nbytes = work->count * sim_element_size(work->datatype);
    if (receives && !work->sent && from->stream != stream)
        sim_run_before(from->stream, from->number + 1);
    if (!work->sent) {
        work->sent = malloc(nbytes);
        memcpy(work->sent, at(from->send), nbytes);
    }
    if (!receives)
        return;
    memcpy(at(work->received_at), work->sent, nbytes);
    work->done = 1;
}

static void run_collective(struct collective *work, const struct stream *stream)
{
    for (int rank = 0; rank < work->ranks->count; rank++)
        if (work->parts[rank].stream != stream)
            sim_run_before(work->parts[rank].stream, work->parts[rank].number);
    if (!work->done)
        do_for_all(work);
    work->done = 1;
}

/* A broken communicator loses no context: its error is asked for, and what was to be received is not. */
int sim_collective_run(struct collective *work, struct stream *stream, int receives)
{
    if (work->done || wait_for_calls(work))
        return KIND_SUCCESS;
    if (is_message(work->operation))
        run_message(work, stream, receives);
    else
        run_collective(work, stream);
    return KIND_SUCCESS;
}

void sim_collective_drop(struct collective *work)
{
    int awaits_others = !work->done && !work->ranks->broken;
    if (--work->references || awaits_others)
        return;
    for (struct collective **place = &work->ranks->open; *place; place = &(*place)->next)
        if (*place == work) {
            *place = work->next;
            break;
        }
    free(work->sent);
    free(work);
}
