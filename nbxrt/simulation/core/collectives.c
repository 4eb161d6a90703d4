/* Collectives between ranks that are threads, groups of calls, or processes.

   Each rank's call is work of its stream. A rank that comes to it waits until the others of its process have called too
   and brings their streams as far; the first that has done so does the whole operation for all of them, and the others
   find it done. What ranks of other processes need is copied behind the communicator's board, and theirs is read from
   there. Sent elements are kept until they are received, so that ranks may send to each other in any order. */
#include <math.h>

#include "board.h"
#include "numbers.h"
#include "state.h"

enum { WAIT_MS = 60000, LOOK_MS = 1 };
/* Ranks of other processes wait for what this one's streams do, so that a thread must do it. */
enum { LATENCY_BETWEEN_PROCESSES_NS = 20000 };

struct part { uint64_t send, receive, number; struct stream *stream; int posted; };

struct collective {
    struct collective *next;
    struct ranks *ranks;
    int references, operation, datatype, reduction, root, mismatched;
    int called, done;
    uint64_t order, count;
    int from, to;                       /* of send and receive */
    int published;                      /* what other processes need of this one is behind the board */
    char *sent;
    uint64_t received_at;
    struct part parts[SIM_MOST_RANKS];
};

struct staged { uint64_t order, offset, nbytes; };

/* One communicator as this process has it; what its processes share is on the board. */
struct ranks {
    struct ranks *next;
    unsigned char id[32];
    struct board *board;
    int file;                           /* behind the board; -1 where all ranks are of this process */
    int count, here, left;              /* ranks of this process, and how many of them have left */
    struct staged staged[SIM_MOST_RANKS][SIM_BOARD_ROOM];
    uint64_t calls[SIM_MOST_RANKS];                         /* collectives that each rank has called */
    uint64_t messages[2][SIM_MOST_RANKS][SIM_MOST_RANKS];   /* sent and received, by sender and receiver */
    struct collective *open;
};

struct communicator { struct ranks *ranks; int rank, device; };

struct request { int operation, datatype, reduction, root, from, to; uint64_t send, receive, count, order; };

static struct ranks *all_ranks;

/* What a thread's group has called; it is given to the streams when the group ends. */
struct call { struct request request; struct communicator own; struct stream *stream; };
static _Thread_local struct ranks *awaited[SIM_MOST_RANKS];
static _Thread_local int awaited_count;
static _Thread_local struct call *grouped;
static _Thread_local size_t grouped_count;

/* Joining and leaving. */

struct identity { uint64_t magic; int32_t process, file; uint64_t number, time; };

int sim_comm_unique_id(struct sim_bytes *id)
{
    static uint64_t made;
    struct identity identity = {0x6d6d6f636d6973, (int32_t)getpid(), sim_board_make(), ++made, sim_now()};
    id->nbytes = sizeof identity;
    memcpy(id->data, &identity, sizeof identity);
    return KIND_SUCCESS;
}

static struct ranks *ranks_of(const void *id, int count)
{
    struct identity identity;
    int file, none = 0;
    memcpy(&identity, id, sizeof identity);
    for (struct ranks *ranks = all_ranks; ranks; ranks = ranks->next)
        if (!memcmp(ranks->id, id, sizeof ranks->id))
            return ranks;
    struct board *board = sim_board_open(identity.process, identity.file, &file);
    if (!board)
        return NULL;
    struct ranks *made = calloc(1, sizeof *made);
    memcpy(made->id, id, sizeof made->id);
    made->board = board;
    made->file = file;
    made->count = count;
    atomic_compare_exchange_strong(&board->count, &none, count);
    made->next = all_ranks;
    return all_ranks = made;
}

static int is_here(const struct ranks *ranks, int rank)
{
    return ranks->board->owners[rank] == getpid();
}

static void break_ranks(struct ranks *ranks, int kind)
{
    int whole = KIND_SUCCESS;
    atomic_compare_exchange_strong(&ranks->board->broken, &whole, kind);
    pthread_cond_broadcast(&sim_changed);
}

static int wait_for_all(struct ranks *ranks)
{
    uint64_t end = sim_now() + (uint64_t)WAIT_MS * 1000000;
    while (ranks->board->joined < ranks->count && !ranks->board->broken && sim_now() < end)
        sim_wait_changed(LOOK_MS);
    if (ranks->board->joined < ranks->count)
        break_ranks(ranks, KIND_SYSTEM_ERROR);
    if (ranks->here < ranks->count && !sim_settings.latency_ns)
        sim_settings.latency_ns = LATENCY_BETWEEN_PROCESSES_NS;
    return ranks->board->broken;
}

static int join(struct ranks *ranks, int rank, int device)
{
    struct board *board = ranks->board;
    int none = 0;
    if (ranks->count != board->count || !atomic_compare_exchange_strong(&board->devices[rank], &none, device + 1))
        return KIND_INVALID_VALUE;
    for (int other = 0; other < ranks->count; other++)
        if (other != rank && board->devices[other] == device + 1)
            break_ranks(ranks, KIND_INVALID_VALUE);         /* two ranks on one device */
    board->owners[rank] = getpid();
    sim_board_hold(ranks->file, rank);
    ranks->here++;
    board->joined++;
    pthread_cond_broadcast(&sim_changed);
    return KIND_SUCCESS;
}

int sim_comm_init_rank(int nranks, const void *id, size_t id_nbytes, int rank, uint64_t *communicator)
{
    if (nranks < 1 || nranks > SIM_MOST_RANKS || rank < 0 || rank >= nranks || id_nbytes < sizeof all_ranks->id)
        return KIND_INVALID_VALUE;
    struct ranks *ranks = ranks_of(id, nranks);
    if (!ranks)
        return KIND_SYSTEM_ERROR;
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
    *made = (struct communicator){ranks, rank, ranks->board->devices[rank] - 1};
    *communicator = sim_handle_new(HANDLE_COMMUNICATOR, made);
    return KIND_SUCCESS;
}

/* As vendors' libraries do between processes of one machine. */
static void wait_for_leavers(const struct ranks *ranks)
{
    uint64_t end = sim_now() + (uint64_t)WAIT_MS * 1000000;
    for (int rank = 0; rank < ranks->count; rank++)
        while (!is_here(ranks, rank) && !ranks->board->leaving[rank] && sim_board_is_held(ranks->file, rank) &&
               !ranks->board->broken && sim_now() < end)
            sim_wait_changed(LOOK_MS);
}

/* The memory of a communicator stays: work that waits in a stream may still name it. */
static int leave(uint64_t handle, int at_once)
{
    struct communicator *left = sim_handle_get(HANDLE_COMMUNICATOR, handle);
    if (!left)
        return KIND_INVALID_VALUE;
    struct ranks *ranks = left->ranks;
    ranks->board->leaving[left->rank] = 1;
    if (at_once) {
        break_ranks(ranks, KIND_SYSTEM_ERROR);
    } else {
        sim_wait_device(left->device);
        wait_for_leavers(ranks);
        if (!sim_handle_get(HANDLE_COMMUNICATOR, handle))
            return KIND_INVALID_VALUE;
    }
    sim_handle_drop(handle);
    free(left);
    if (++ranks->left == ranks->here) {
        const struct identity *made_by = (const void *)ranks->id;
        sim_board_close(ranks->file);
        if (made_by->process == getpid())
            sim_board_close(made_by->file);
        ranks->file = -1;
    }
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
    *code = asked->ranks->board->broken;
    return KIND_SUCCESS;
}

/* Calling. */

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

static int give(const struct request *request, const struct communicator *own, struct stream *stream)
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

/* Groups. */

int sim_group_start(void)
{
    sim_thread()->group_depth++;
    return KIND_SUCCESS;
}

static int keep_for_group(const struct request *request, const struct communicator *own, struct stream *stream)
{
    struct call *calls = realloc(grouped, (grouped_count + 1) * sizeof *calls);
    if (!calls)
        return KIND_OUT_OF_MEMORY;
    grouped = calls;
    grouped[grouped_count++] = (struct call){*request, *own, stream};
    return KIND_SUCCESS;
}

static size_t next_in_group(size_t from, int sends)
{
    while (from < grouped_count && (grouped[from].request.operation == OP_SEND) != sends)
        from++;
    return from;
}

/* All of a group starts together, and a stream runs one piece after the other: first goes what waits for nobody, which
   is as many sends as there is room for on a board. Two ranks that receive before they send would wait for ever. */
static int give_group(void)
{
    int kind = KIND_SUCCESS, ahead = 0;
    size_t send = next_in_group(0, 1), other = next_in_group(0, 0);
    while (send < grouped_count || other < grouped_count) {
        int sends = send < grouped_count && (ahead < SIM_BOARD_ROOM || other == grouped_count);
        size_t *next = sends ? &send : &other;
        int own = give(&grouped[*next].request, &grouped[*next].own, grouped[*next].stream);
        kind = kind ? kind : own;
        ahead += sends ? 1 : -1;
        *next = next_in_group(*next + 1, sends);
    }
    free(grouped);
    grouped = NULL;
    grouped_count = 0;
    return kind;
}

int sim_group_end(void)
{
    if (!sim_thread()->group_depth)
        return KIND_INVALID_VALUE;
    if (--sim_thread()->group_depth)
        return KIND_SUCCESS;
    int kind = give_group();
    while (awaited_count) {
        int own = wait_for_all(awaited[--awaited_count]);
        kind = kind ? kind : own;
    }
    return kind;
}

static int call_with(struct request request, uint64_t send, uint64_t receive, uint64_t count, uint64_t communicator,
                     uint64_t stream)
{
    struct communicator *own = sim_handle_get(HANDLE_COMMUNICATOR, communicator);
    struct stream *on = sim_stream(stream);
    if (!own || !on || on->device != own->device || request.root < 0 || request.root >= own->ranks->count)
        return KIND_INVALID_VALUE;
    if (own->ranks->board->broken)
        return own->ranks->board->broken;
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
    return sim_thread()->group_depth ? keep_for_group(&request, own, on) : give(&request, own, on);
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

/* What other processes need of this one, and what this one needs of them. */

static char *at(uint64_t address)
{
    return (char *)(uintptr_t)address;
}

static int crosses_processes(const struct collective *work)
{
    if (is_message(work->operation))
        return !is_here(work->ranks, work->from) || !is_here(work->ranks, work->to);
    return work->ranks->here < work->ranks->count;
}

static struct post *post_of(const struct collective *work, int rank)
{
    struct board *board = work->ranks->board;
    uint64_t place = work->order % SIM_BOARD_ROOM;
    return is_message(work->operation) ? &board->messages[work->from][work->to][place] : &board->posts[rank][place];
}

static int is_posted(const struct collective *work, int rank)
{
    return post_of(work, rank)->order == work->order + 1;
}

/* Up to which call every rank has the elements of this one. */
static uint64_t taken_by_all(const struct collective *work)
{
    const struct board *board = work->ranks->board;
    uint64_t least = UINT64_MAX;
    if (is_message(work->operation))
        return board->messages_taken[work->from][work->to];
    for (int rank = 0; rank < work->ranks->count; rank++)
        least = board->taken[rank] < least ? board->taken[rank] : least;
    return least;
}

static void forget_staged(struct ranks *ranks, int rank, uint64_t taken)
{
    for (int place = 0; place < SIM_BOARD_ROOM; place++) {
        struct staged *staged = &ranks->staged[rank][place];
        if (staged->nbytes && staged->order < taken) {
            sim_board_forget(ranks->file, staged->offset, staged->nbytes);
            staged->nbytes = 0;
        }
    }
}

static void post(struct collective *work, int rank)
{
    struct ranks *ranks = work->ranks;
    struct post *own = post_of(work, rank);
    int sends = work->operation != OP_BROADCAST || rank == work->root;
    own->operation = work->operation;
    own->datatype = work->datatype;
    own->reduction = work->reduction;
    own->root = work->root;
    own->count = work->count;
    own->nbytes = sends ? work->count * sim_element_size(work->datatype) * share(work->operation, ranks->count, 1) : 0;
    own->offset = sim_board_put(ranks->board, ranks->file, at(work->parts[rank].send), own->nbytes);
    if (!is_message(work->operation)) {
        forget_staged(ranks, rank, taken_by_all(work));
        ranks->staged[rank][work->order % SIM_BOARD_ROOM] = (struct staged){work->order, own->offset, own->nbytes};
    }
    atomic_store(&own->order, work->order + 1);
}

static int is_called_here(const struct collective *work)
{
    if (is_message(work->operation))
        return !is_here(work->ranks, work->from) || work->parts[work->from].posted;
    return work->called == work->ranks->here;
}

/* Post the calls of this process, whose streams have come to them; later, when a rank is too far behind. */
static void publish(struct collective *work)
{
    int is_sent_here = !is_message(work->operation) || is_here(work->ranks, work->from);
    if (work->published || !is_called_here(work) || work->ranks->file < 0)
        return;
    if (is_sent_here && work->order >= taken_by_all(work) + SIM_BOARD_ROOM)
        return;
    work->published = 1;
    for (int rank = 0; is_sent_here && rank < work->ranks->count; rank++)
        if (work->parts[rank].posted && (!is_message(work->operation) || rank == work->from))
            post(work, rank);
}

/* Whether all that comes from other processes is there. A process that died will not bring it. */
static int has_come(const struct collective *work)
{
    int from = is_message(work->operation) ? work->from : 0;
    int to = is_message(work->operation) ? work->from + 1 : work->ranks->count;
    for (int rank = from; rank < to; rank++) {
        if (is_here(work->ranks, rank) || is_posted(work, rank))
            continue;
        if (!sim_board_is_held(work->ranks->file, rank) && !is_posted(work, rank))
            break_ranks(work->ranks, KIND_SYSTEM_ERROR);
        return 0;
    }
    return 1;
}

static int is_other_call(const struct collective *work, const struct post *other)
{
    struct request request = {.operation = is_message(work->operation) ? work->operation : other->operation,
                              .datatype = other->datatype, .reduction = other->reduction,
                              .root = other->root, .count = other->count};
    return differs(work, &request);
}

static int is_needed(const struct collective *work, int rank)
{
    if (work->operation == OP_BROADCAST)
        return rank == work->root;
    return work->operation != OP_REDUCE || is_here(work->ranks, work->root);
}

/* The elements that a rank of another process sends; NULL where nobody here needs them, or they cannot be had. */
static char *fetch(struct collective *work, int rank)
{
    const struct post *other = post_of(work, rank);
    work->mismatched |= is_other_call(work, other);
    if (work->mismatched || !is_needed(work, rank))
        return NULL;
    char *came = malloc(other->nbytes + 1);
    if (sim_board_get(work->ranks->file, other->offset, came, other->nbytes)) {
        break_ranks(work->ranks, KIND_SYSTEM_ERROR);
        free(came);
        return NULL;
    }
    return came;
}

/* Running. */

static void reduce_part(const struct collective *work, char *const *sent, uint64_t first, char *to)
{
    const char *rows[SIM_MOST_RANKS];
    for (int rank = 0; rank < work->ranks->count; rank++)
        rows[rank] = sent[rank] + first * sim_element_size(work->datatype);
    sim_reduce_rows(work->datatype, work->reduction, rows, work->ranks->count, work->count, to);
}

/* What a rank receives. All of it is made before any of it is written, since a rank may receive where it sends from. */
static char *made_for(const struct collective *work, char *const *sent, int rank, size_t *nbytes)
{
    size_t own = work->count * sim_element_size(work->datatype), count = (size_t)work->ranks->count;
    *nbytes = own * share(work->operation, work->ranks->count, 0);
    char *made = malloc(*nbytes);
    switch (work->operation) {
    case OP_BROADCAST:
        memcpy(made, sent[work->root], own);
        break;
    case OP_ALL_GATHER:
        for (size_t from = 0; from < count; from++)
            memcpy(made + from * own, sent[from], own);
        break;
    case OP_ALL_TO_ALL:
        for (size_t from = 0; from < count; from++)
            memcpy(made + from * own, sent[from] + (size_t)rank * own, own);
        break;
    case OP_REDUCE_SCATTER:
        reduce_part(work, sent, (uint64_t)rank * work->count, made);
        break;
    default:
        reduce_part(work, sent, 0, made);
    }
    return made;
}

static int receives(const struct collective *work, int rank)
{
    return is_here(work->ranks, rank) && (work->operation != OP_REDUCE || rank == work->root);
}

static void do_for_all_here(struct collective *work, char *const *sent)
{
    char *made[SIM_MOST_RANKS];
    size_t nbytes[SIM_MOST_RANKS];
    for (int rank = 0; rank < work->ranks->count; rank++)
        made[rank] = receives(work, rank) ? made_for(work, sent, rank, &nbytes[rank]) : NULL;
    for (int rank = 0; rank < work->ranks->count; rank++) {
        if (made[rank])
            memcpy(at(work->parts[rank].receive), made[rank], nbytes[rank]);
        free(made[rank]);
    }
}

/* Whether running it waits for nobody. */
static int is_ready(const struct collective *work)
{
    if (work->done || work->ranks->board->broken)
        return 1;
    if (!is_called_here(work) || (crosses_processes(work) && !work->published))
        return 0;
    if (is_message(work->operation) && is_here(work->ranks, work->from))
        return 1;
    return has_come(work) || work->ranks->board->broken;
}

int sim_collective_ready(struct collective *work)
{
    if (work && crosses_processes(work) && work->ranks->here <= 1)
        publish(work);
    return !work || is_ready(work);
}

static void bring_streams(const struct collective *work, const struct stream *stream)
{
    for (int rank = 0; rank < work->ranks->count; rank++)
        if (is_here(work->ranks, rank) && work->parts[rank].stream != stream)
            sim_run_before(work->parts[rank].stream, work->parts[rank].number);
}

static int wait_for_calls(struct collective *work, const struct stream *stream)
{
    struct ranks *ranks = work->ranks;
    uint64_t end = sim_now() + (uint64_t)WAIT_MS * 1000000;
    while (!is_ready(work) && sim_now() < end) {
        int crosses = crosses_processes(work) && is_called_here(work);
        if (crosses && !work->published) {
            if (!is_message(work->operation))
                bring_streams(work, stream);
            publish(work);
        }
        if (!is_ready(work))
            sim_wait_changed(crosses ? LOOK_MS : 100);
    }
    if (!is_ready(work))
        break_ranks(ranks, KIND_SYSTEM_ERROR);
    if (work->mismatched)
        break_ranks(ranks, KIND_INVALID_VALUE);
    return ranks->board->broken;
}

static void take_message(struct collective *work)
{
    struct board *board = work->ranks->board;
    char *came = fetch(work, work->from);
    if (came)
        memcpy(at(work->received_at), came, work->count * sim_element_size(work->datatype));
    if (came)
        sim_board_forget(work->ranks->file, post_of(work, work->from)->offset, post_of(work, work->from)->nbytes);
    free(came);
    atomic_store(&board->messages_taken[work->from][work->to], work->order + 1);
    if (work->mismatched)
        break_ranks(work->ranks, KIND_INVALID_VALUE);
    work->done = 1;
}

static void run_message(struct collective *work, struct stream *stream, int is_receiver)
{
    const struct part *from = &work->parts[work->from];
    size_t nbytes = work->count * sim_element_size(work->datatype);
    if (crosses_processes(work)) {
        if (is_receiver)
            take_message(work);
        work->done = 1;
        return;
    }
    if (is_receiver && !work->sent && from->stream != stream)
        sim_run_before(from->stream, from->number + 1);
    if (!work->sent) {
        work->sent = malloc(nbytes);
        memcpy(work->sent, at(from->send), nbytes);
    }
    if (!is_receiver)
        return;
    memcpy(at(work->received_at), work->sent, nbytes);
    work->done = 1;
}

static void take_all(struct collective *work)
{
    char *sent[SIM_MOST_RANKS], *came[SIM_MOST_RANKS];
    struct ranks *ranks = work->ranks;
    for (int rank = 0; rank < ranks->count; rank++) {
        came[rank] = is_here(ranks, rank) ? NULL : fetch(work, rank);
        sent[rank] = is_here(ranks, rank) ? at(work->parts[rank].send) : came[rank];
    }
    if (work->mismatched)
        break_ranks(ranks, KIND_INVALID_VALUE);
    if (!ranks->board->broken)
        do_for_all_here(work, sent);
    for (int rank = 0; rank < ranks->count; rank++) {
        free(came[rank]);
        if (is_here(ranks, rank))
            atomic_store(&ranks->board->taken[rank], work->order + 1);
    }
}

static void run_collective(struct collective *work, const struct stream *stream)
{
    bring_streams(work, stream);
    if (!work->done)
        take_all(work);
    work->done = 1;
}

/* A broken communicator loses no context: its error is asked for, and what was to be received is not. */
int sim_collective_run(struct collective *work, struct stream *stream, int is_receiver)
{
    if (work->done || wait_for_calls(work, stream))
        return KIND_SUCCESS;
    if (is_message(work->operation))
        run_message(work, stream, is_receiver);
    else
        run_collective(work, stream);
    return KIND_SUCCESS;
}

void sim_collective_drop(struct collective *work)
{
    int awaits_others = !work->done && !work->ranks->board->broken;
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
