/* The simulator's own state, shared by its parts. Everything here is guarded by sim_lock, which sim_begin takes. */
#ifndef NBXRT_SIM_STATE_H
#define NBXRT_SIM_STATE_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core.h"

enum { MOST_DEVICES = 64, MOST_ARGUMENTS = 64, MOST_LAUNCH_ATTRIBUTES = 8 };
enum { GRANULARITY = 2 << 20, PAGE = 4096 };

#define EXPORTED __attribute__((visibility("default")))

extern pthread_mutex_t sim_lock;
extern pthread_cond_t sim_changed;      /* something finished, or joined: whoever waits looks again */

/* Settings, from the environment at the first call and from the control functions. */
struct settings {
    int devices;
    int no_driver;
    uint64_t latency_ns;                /* 0: work moves when somebody waits or asks; else a thread does it so late */
    char visible[256];                  /* physical devices that the runtime shows, in order; empty: all */
    int obey_visibility;
    uint64_t context;                   /* bytes of the device that its context takes */
    int driver_version;                 /* what the runtime answers for the driver's; -1: the library's own, or none */
};
extern struct settings sim_settings;

/* Devices: `devices` is by physical number, the runtime's ordinals go through `visible`. */
struct pool { uint64_t threshold, reserved, reserved_high, used, used_high; };

struct device {
    uint64_t memory, used;
    int has_context;
    int lost;                           /* the sticky kind that lost the context, or KIND_SUCCESS */
    uint64_t enabled_peers;             /* physical devices whose memory it accesses */
    uint64_t unreachable_peers;
    int attributes[DEVICE_ATTRIBUTE_COUNT];
    int model;                          /* by its place in sim_models */
    int part;                           /* 1: a part of a card; 2: one that the management library does not know */
    int processes_given;
    struct sim_rows processes;
    struct pool pool;
    struct stream *legacy;
};
extern struct device sim_devices[MOST_DEVICES];

int sim_device_count_visible(void);
int sim_physical(int ordinal);          /* -1 when there is no such device */
int sim_ordinal(int physical);          /* -1 when it is not visible */
int sim_current(void);                  /* physical number of the thread's device */
int sim_make_context(int physical);

struct thread {
    long id;
    int device;
    int last_kind;
    uint64_t bound;                     /* devices whose context the thread has */
    int in_callback;
    int group_depth;
    struct stream *own_stream[MOST_DEVICES];
};
struct thread *sim_thread(void);

void sim_survive_forks(void);

extern const char *const sim_names[];   /* what can fail by its name; NULL ends them */

/* Faults, by the name of an operation, a symbol, `context` or `work`. Without a symbol: of another operation of a call
   that was asked for already. */
int sim_fault(const char *name, const char *symbol, int device);
void sim_faults_from_environment(void);
void sim_forget_faults(void);           /* and delays */
void sim_each_part(const char *name, int (*use)(const char *));     /* of a variable, between commas */
void sim_complain(const char *what, const char *text, int why);     /* why: what it was refused with */
void sim_sleep_before(const char *name, const char *symbol);
uint64_t sim_now(void);
void sim_wait_changed(unsigned milliseconds);

/* The log. Texts fill what room there is and answer the length of the whole. */
void sim_log_to(const char *path);
void sim_log_from_environment(void);
void sim_log_call(const struct sim_call *call);
size_t sim_log_text(char *buffer, size_t size);
void sim_log_clear(void);

/* Handles: numbers that are never given out twice. */
enum handle_type {
    HANDLE_NONE, HANDLE_STREAM, HANDLE_EVENT, HANDLE_GRAPH, HANDLE_EXEC, HANDLE_ALLOCATION, HANDLE_MODULE,
    HANDLE_FUNCTION, HANDLE_COMMUNICATOR, HANDLE_OBJECT, HANDLE_BUFFER, HANDLE_TYPE_COUNT
};
extern const char *const sim_handle_names[];

uint64_t sim_handle_new(enum handle_type type, void *object);
void *sim_handle_get(enum handle_type type, uint64_t handle);
void sim_handle_drop(uint64_t handle);
void sim_handle_each(void (*visit)(enum handle_type type, uint64_t handle, void *object, void *data), void *data);

/* Memory: every block that the runtime knows, by address. */
enum origin {
    FROM_MALLOC, FROM_POOL, FROM_HOST, FROM_REGISTER, FROM_MANAGED, FROM_IPC, FROM_MODULE, FROM_MAP, ORIGIN_COUNT
};

struct block {
    uint64_t address, nbytes, mapped;   /* mapped: bytes of address space behind it */
    uint64_t offset;                    /* in the backing file */
    enum origin origin;
    int memory;                         /* word of memory_type */
    int device;
    int freeing;                        /* a stream will release it */
    int references;                     /* of memory opened from another process */
    uint64_t source;                    /* what memory of another process is told apart by */
    uint64_t readable, writable;        /* devices that may use mapped memory */
    struct allocation *allocation;
    struct body *body;                  /* the graph that owns it */
};

struct block *sim_block_at(uint64_t address);
struct block *sim_block_of(uint64_t address);           /* one that begins there */
struct block *sim_block_add(struct block block);
void sim_block_remove(struct block *block);
struct block *sim_block_number(size_t index);           /* NULL behind the last */
int sim_block_new(enum origin origin, int device, uint64_t nbytes, struct block **made);
void sim_block_release(struct block *block);
void *sim_wished_address(int device, uint64_t nbytes);
uint64_t sim_whole_pages(uint64_t nbytes);
int sim_backing(void);                                  /* the file behind device memory, or -1 */
uint64_t sim_backing_room(uint64_t nbytes);
void sim_backing_forget(uint64_t offset, uint64_t nbytes);
void sim_pool_trim(struct device *device, uint64_t keep);

/* Memory that is known by a handle, or a part of it. */
struct buffer { uint64_t address, nbytes; int is_part; };
uint64_t sim_address_behind(uint64_t buffer, uint64_t offset, uint64_t nbytes);     /* 0: outside, or no buffer */

/* Whether `nbytes` at `address` may be used as this side of a copy by that device. */
enum side { SIDE_ANY, SIDE_HOST, SIDE_DEVICE };
extern _Thread_local int sim_running;       /* this thread does the work of a stream just now */
int sim_range(uint64_t address, uint64_t nbytes, enum side side, int device, int writes);

/* Work. */
enum work { WORK_COPY, WORK_FILL, WORK_RECORD, WORK_WAIT, WORK_RELEASE, WORK_LAUNCH, WORK_NOTHING, WORK_COLLECTIVE };

struct launch_attribute { int id; unsigned value[3]; };

struct launch {
    int references;
    uint64_t function;
    int device;
    char name[128];
    char body[16];
    unsigned grid[3], block[3], shared;
    int count;
    size_t sizes[MOST_ARGUMENTS];
    unsigned char *values[MOST_ARGUMENTS];
    unsigned attribute_count;
    struct launch_attribute attributes[MOST_LAUNCH_ATTRIBUTES];
};

/* An event that processes share: how often it was recorded, and up to which record its work is done. */
struct event_page { _Atomic uint64_t recorded, done; };

struct record {
    int references;
    struct stream *stream;
    uint64_t number;                    /* in the order of all work */
    int done;
    uint64_t time;
    struct event_page *page;
    uint64_t page_count;
};

enum { KNOWN_DST = 1, KNOWN_SRC = 2 };

struct item {
    struct item *next;
    enum work work;
    uint64_t number, given;
    uint64_t dst, src, nbytes;
    int value;
    int known;                          /* KNOWN_DST, KNOWN_SRC: sides that were in a block when the work was given */
    struct record *record;
    struct launch *launch;
    struct collective *collective;
    struct event_page *page;            /* an event of another process, and the count to wait for */
    uint64_t page_count;
};

struct stream {
    struct stream *next;
    uint64_t handle;
    int device, legacy, blocking, priority, destroyed;
    uint64_t busy;                      /* number of the work that is being done, or 0 */
    struct item *first, *last;
    uint64_t clock;
    struct capture *capture;
    int unjoined;                       /* captured work that the capture's first stream does not wait for yet */
};

struct event {
    int device, timing, interprocess;
    struct record *latest;
    struct capture *captured;
    struct stream *captured_on;
    int captured_count;
    struct event_page *page;
    int page_file;
    uint64_t source;                    /* handle of the event of this process that it was opened from */
};

extern struct stream *sim_streams;
struct stream *sim_stream(uint64_t handle);
struct item *sim_item(enum work work);
void sim_item_free(struct item *item);
void sim_run_first(struct stream *stream);
void sim_forget_if_over(struct stream *stream);
void sim_wait_for_page(const struct event_page *page, uint64_t count);
struct event_page *sim_shared_page(int *file);          /* NULL where memory cannot be shared */
int sim_enqueue(struct stream *stream, struct item *item);
void sim_wake_worker(void);
void sim_wait_stream(struct stream *stream, uint64_t number);
void sim_run_before(struct stream *stream, uint64_t number);
void sim_wait_device(int device);       /* -1: all */
void sim_run_range(uint64_t address, uint64_t nbytes);
int sim_advance(void);                  /* one item in the order of all work; 0 when there is none */
void sim_record_drop(struct record *record);
void sim_launch_drop(struct launch *launch);
void sim_launch_run(struct launch *launch, struct stream *stream);
int sim_collective_ready(struct collective *collective);     /* running it waits for nobody; true of NULL */
int sim_collective_run(struct collective *collective, struct stream *stream, int is_receiver);
void sim_collective_drop(struct collective *collective);
void sim_lose(int device, int kind);
int sim_device_of_function(uint64_t function);      /* -1 for what is none */
int sim_device_of_module(uint64_t module);

/* Captures. */
struct body {
    int references;
    struct item *first, *last;
    int count;
};

struct capture {
    int mode, broken, references;
    long thread;
    struct stream *origin;
    struct body *body;
};

int sim_capture_append(struct stream *stream, struct item *item);
void sim_capture_break(struct capture *capture);
int sim_capture_forbids(int operation);
void sim_body_drop(struct body *body);

/* Physical memory of the virtual memory operations. */
struct allocation {
    int device, handles, maps;
    int file;                           /* of its own, for others too; -1: a part of the backing file */
    int is_foreign;                     /* counted where it was created */
    uint64_t nbytes, offset;            /* in the file that it is a part of */
};
void sim_allocation_unmapped(struct allocation *allocation);

void sim_settle(void);                  /* read the settings from the environment once */
void sim_forget_settings(void);
void sim_forget_processes(void);        /* which processes have used the driver */
int sim_add_fault(const char *text);
int sim_add_delay(const char *text);
int sim_set_visible(const char *list);
int sim_set_models(const char *list);   /* -1 for what is no list of models */
void sim_ranges_forget(void);
size_t sim_ranges_text(char *buffer, size_t size);
void sim_launches_forget(void);
size_t sim_launches_text(char *buffer, size_t size);
void sim_on_launch(void *function, void *data);
void sim_on_image(void *function, void *data);

#endif
