/* An API of objects, made for the tests of steps: handles instead of addresses, several calls an operation.
   Memory is a buffer object; work is encoded, then committed; a queue finishes its work when it is waited for, or at
   once unless `shelf_hold` is set. `shelf_fail` names the function whose next call fails; `shelf_live` counts objects. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, BAD = -1, NO_MEMORY = -4, NO_DEVICE = -7, BROKEN = -9 };

typedef struct object { int kind, state, index; struct object *of; size_t nbytes; char *content; uint64_t time;
    int has_fill; size_t offset, count; int value; struct object *buffer; } object;
enum { CONTEXT = 1, QUEUE, BUFFER, ENCODER, WORK, MARK };

int shelf_devices = 2, shelf_hold, shelf_live, shelf_open_encoders, shelf_calls, shelf_spoilt;
char shelf_fail[64];
static uint64_t now_ns = 1000;
static object devices[8];
static object *last_work[8];

static int fails(const char *name) {
    shelf_calls++;
    if (strcmp(shelf_fail, name)) return 0;
    shelf_fail[0] = 0;
    return 1;
}
static object *make(int kind, object *of) {
    object *made = calloc(1, sizeof *made);
    made->kind = kind; made->of = of;
    __atomic_add_fetch(&shelf_live, 1, __ATOMIC_SEQ_CST);
    return made;
}
static int end(object *it, int kind) {
    if (!it || it->kind != kind) return BAD;
    it->kind = 0;
    __atomic_sub_fetch(&shelf_live, 1, __ATOMIC_SEQ_CST);
    free(it->content); free(it);
    return OK;
}

int shelfDevices(unsigned room, void **list, unsigned *found) {
    if (fails("shelfDevices")) return BAD;
    if (!shelf_devices) return NO_DEVICE;              /* the number stays as it was */
    *found = shelf_devices;
    for (unsigned i = 0; list && i < room && i < (unsigned)shelf_devices; i++) {
        devices[i].index = i; list[i] = &devices[i];
    }
    return OK;
}
int shelfDeviceKind(void *device, int *kind) { *kind = ((object *)device)->index == 1 ? 4 : 2; return OK; }
void *shelfContext(void *device, int *error) {
    if ((*error = fails("shelfContext") ? BAD : OK)) return NULL;
    return make(CONTEXT, device);
}
int shelfContextRelease(void *context) { return end(context, CONTEXT); }
void *shelfQueue(void *context, int *error) {
    if ((*error = fails("shelfQueue") ? BAD : OK)) return NULL;
    return make(QUEUE, context);
}
int shelfQueueRelease(void *queue) { return end(queue, QUEUE); }
int shelfFinish(void *queue) {
    if (fails("shelfFinish") || !queue || ((object *)queue)->kind != QUEUE) return BAD;
    object *work = ((object *)queue)->buffer;
    if (work && work->kind == WORK && work->state == 1) work->state = shelf_spoilt ? 5 : 4;
    return OK;
}
void *shelfBuffer(void *context, size_t nbytes) {
    if (fails("shelfBuffer") || nbytes > ((size_t)1 << 32)) return NULL;
    object *made = make(BUFFER, context);
    made->nbytes = nbytes; made->content = calloc(1, nbytes + 256);
    return made;
}
int shelfContents(void *buffer, void **address) {
    if (fails("shelfContents")) return BAD;
    *address = (void *)(((uintptr_t)((object *)buffer)->content + 255) / 256 * 256);
    return OK;
}
int shelfBufferRelease(void *buffer) { return end(buffer, BUFFER); }

int shelfEncoder(void *queue, void **encoder) {
    if (fails("shelfEncoder")) return BAD;
    shelf_open_encoders++;
    *encoder = make(ENCODER, queue);
    return OK;
}
int shelfFill(void *encoder, void *buffer, size_t offset, size_t count, uint8_t *value) {
    if (fails("shelfFill")) return BAD;
    object *it = encoder, *into = buffer;
    if (into->kind != BUFFER || offset + count > into->nbytes) return BAD;
    it->has_fill = 1; it->buffer = into; it->offset = offset; it->count = count; it->value = *value;
    return OK;
}
int shelfEnd(void *encoder) { shelf_open_encoders--; return end(encoder, ENCODER); }
int shelfCommit(void *queue, void *encoder, void **work) {
    if (fails("shelfCommit")) return BAD;
    object *it = encoder, *made = make(WORK, queue);
    void *start;
    if (it->has_fill) {
        shelfContents(it->buffer, &start);
        memset((char *)start + it->offset, it->value, it->count);
    }
    made->state = shelf_hold ? 1 : shelf_spoilt ? 5 : 4;
    ((object *)queue)->buffer = made;
    *work = made;
    return OK;
}
int shelfStatus(void *work, int *status) {
    if (((object *)work)->kind != WORK && ((object *)work)->kind != MARK) return BAD;
    *status = ((object *)work)->state;
    return OK;
}
int shelfWorkRelease(void *work) {
    object *queue = ((object *)work)->of;
    if (queue->kind == QUEUE && queue->buffer == work) queue->buffer = NULL;
    return end(work, WORK);
}
int shelfMark(void *queue, void **mark) {
    if (fails("shelfMark")) return BAD;
    object *made = make(MARK, queue);
    made->state = shelf_hold ? 1 : 4; made->time = now_ns += 1000000;
    *mark = made;
    return OK;
}
int shelfMarkWait(void *mark) { if (((object *)mark)->kind != MARK) return BAD; ((object *)mark)->state = 4; return OK; }
int shelfMarkTime(void *mark, uint64_t *time) { *time = ((object *)mark)->time; return OK; }
#define TICK_BITS 21    /* of a clock whose ticks begin anew after some two milliseconds */
int shelfMarkTicks(void *mark, uint64_t *ticks) { *ticks = ((object *)mark)->time % (1 << TICK_BITS); return OK; }
int shelfClock(uint64_t *tick, unsigned *bits) { *tick = 1; *bits = TICK_BITS; return OK; }
int shelfMarkRelease(void *mark) { return end(mark, MARK); }
int shelfCopy(void *to, const void *from, size_t nbytes) { memmove(to, from, nbytes); return OK; }
int shelfMemory(void *device, uint64_t *total) { *total = 1 << 30; return OK; }

/* Memory of the caller's as a buffer, copies inside the shelf, and counters that queues raise and wait for. */
int shelf_copies, shelf_waits;
void *shelfWrap(void *start, size_t nbytes) {
    if ((uintptr_t)start % 4096 || nbytes % 4096) return NULL;
    object *made = make(BUFFER, NULL);
    made->nbytes = nbytes; made->buffer = start;       /* its content is not its own */
    return made;
}
static char *begin(void *buffer) {
    void *start = ((object *)buffer)->buffer;
    if (!start) shelfContents(buffer, &start);
    return start;
}
static object *work_in(void *queue) {
    object *made = make(WORK, queue);
    made->state = shelf_hold ? 1 : 4; made->time = now_ns += 1000000;
    return made;
}
int shelfInside(void *queue, void *from, size_t at, void *to, size_t there, size_t nbytes, void **work) {
    if ((at | there | nbytes) % 8) return BAD;
    memcpy(begin(to) + there, begin(from) + at, nbytes);
    shelf_copies++; *work = work_in(queue);
    return OK;
}
int shelfByte(void *queue, void *to, size_t there, size_t nbytes, int value, void **work) {
    if ((there | nbytes) % 8 || value < 0 || value > 255) return BAD;
    memset(begin(to) + there, value, nbytes);
    shelf_copies++; *work = work_in(queue);
    return OK;
}
int shelfOut(void *queue, void *from, size_t at, void *to, size_t nbytes, void **work) {
    if (fails("shelfOut") || at + nbytes > ((object *)from)->nbytes) return BAD;
    memcpy(to, begin(from) + at, nbytes);
    *work = work_in(queue);
    return OK;
}
int shelfIn(void *queue, const void *from, void *to, size_t there, size_t nbytes, void **work) {
    if (fails("shelfIn") || there + nbytes > ((object *)to)->nbytes) return BAD;
    memcpy(begin(to) + there, from, nbytes);
    *work = work_in(queue);
    return OK;
}
void *shelfCounter(void *device, int *error) { *error = OK; return make(MARK, NULL); }
int shelfRaise(void *queue, void *counter, uint64_t value, void **work) {
    if (((object *)counter)->time >= value) return BAD;    /* it only rises */
    ((object *)counter)->time = value; *work = work_in(queue);
    return OK;
}
int shelfHoldBack(void *queue, void *counter, uint64_t value, void **work) {
    if (((object *)counter)->kind != MARK || ((object *)counter)->time < value) return BAD;
    shelf_waits++; *work = work_in(queue);
    return OK;
}
int shelfKeep(void *work) { ((object *)work)->count++; return OK; }
int shelfGiveUp(void *work) { return ((object *)work)->count-- ? OK : end(work, WORK); }
int shelfDone(void *work) { ((object *)work)->state = 4; return OK; }
int shelfTime(void *work, uint64_t *time) { *time = ((object *)work)->time; return OK; }
int shelfThreads(void *device, uint64_t *threads) { *threads = 64 + ((object *)device)->index; return OK; }

/* Code: `ok` has a kernel `fill(buffer, value)` of bytes; what begins with `bad` does not build. */
int shelfLoad(const char *bytes, size_t nbytes, int is_text, void **module) {
    if (fails("shelfLoad") || !nbytes) return BAD;
    object *made = make(WORK, NULL);
    made->state = strncmp(bytes, "bad", 3) ? 0 : 1; made->index = is_text;
    *module = made;
    return OK;
}
int shelfBuild(void *module) { return ((object *)module)->state ? BROKEN : OK; }
int shelfLog(void *module, char *log) { strcpy(log, "line 1: this is bad"); return OK; }
int shelfUnload(void *module) { return end(module, WORK); }
int shelfKernel(void *module, const char *name, void **kernel) {
    if (strcmp(name, "fill")) return BAD;
    *kernel = make(MARK, NULL);
    return OK;
}
int shelfKernelRelease(void *kernel) { return end(kernel, MARK); }
int shelfArguments(void *kernel, unsigned *count) { *count = 2; return fails("shelfArguments") ? BAD : OK; }
int shelfArgument(void *kernel, unsigned index, unsigned *kind) { *kind = index == 0 ? 7 : 0; return OK; }
char shelf_type[32] = "byte";
int shelfTypeName(void *kernel, unsigned index, char *name) { strcpy(name, index == 1 ? shelf_type : "byte*"); return OK; }
int shelfSetBuffer(void *kernel, unsigned index, void *buffer, size_t offset) {
    if (fails("shelfSetBuffer")) return BAD;
    ((object *)kernel)->buffer = buffer; ((object *)kernel)->offset = offset;
    return index == 0 && ((object *)buffer)->kind == BUFFER ? OK : BAD;
}
int shelfSlice(void *buffer, size_t at, size_t nbytes, void **slice) {
    if (at % 64 || at + nbytes > ((object *)buffer)->nbytes) return BAD;
    object *made = make(BUFFER, buffer);
    made->nbytes = nbytes; made->buffer = (object *)(begin(buffer) + at);
    *slice = made;
    return OK;
}
int shelfSliceAlignment(void *device, unsigned *bits) { *bits = 512; return device ? OK : BAD; }
int shelfSetValue(void *kernel, unsigned index, size_t nbytes, const void *at) {
    if (index != 1 || nbytes != 1) return BAD;
    ((object *)kernel)->value = *(const unsigned char *)at;
    return OK;
}
int shelfLaunch(void *kernel, void *queue, size_t threads, void **work) {
    object *it = kernel;
    memset(begin(it->buffer) + it->offset, it->value, threads);
    object *made = make(WORK, queue);
    made->state = shelf_hold ? 1 : 4;
    ((object *)queue)->buffer = made;
    *work = made;
    return OK;
}
