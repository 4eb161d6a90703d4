/* What the generated wrappers of a vendor's functions use of the simulator, which knows the contract and no vendor. */
#ifndef NBXRT_SIM_CORE_H
#define NBXRT_SIM_CORE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "contract.h"

enum { SIM_MOST_ROWS = 1024 };

struct sim_text { char text[256]; };
struct sim_bytes { size_t nbytes; unsigned char data[256]; };
struct sim_row { uint32_t pid; uint64_t used; };
struct sim_rows { size_t count; struct sim_row row[SIM_MOST_ROWS]; };

/* A library role of the vendor: its status code of every kind, and how it is used. */
struct sim_role {
    const char *name;
    const int *codes;
    const char *const *names;   /* of the kinds, as the role's functions say them */
    int keeps_error;            /* the thread's last error can be asked for */
    int needs_init;             /* a call must come before all others */
    int has_contexts;           /* calls fail on a thread that no context was bound to */
};

/* Given by the wrappers. */
extern const struct sim_role sim_roles[];
extern const int sim_role_count;
extern const int sim_is_of_objects;             /* handles tell what device a call is about, and no current device does */
extern const int sim_contexts_are_apart;        /* what is of one device is unknown to the others */
extern const char *const sim_models[];          /* kinds of devices; NULL ends them */
struct sim_type { size_t nbytes; const char *name; };
extern const struct sim_type sim_types[];       /* how kernels name the types of their arguments; 0 bytes end them */
extern const int sim_captures_are_executable;  /* the handle of a graph is that of the executable one */
extern const char *const sim_visibility[];
extern const char *const sim_uuid_prefixes[];   /* of whole devices, then of parts of them; NULL ends them */

/* One call of a vendor function, from sim_begin, which takes the simulator's lock, to sim_end, which gives it back. */
struct sim_call {
    int role;
    int operation;              /* -1 for a call that belongs to the role */
    const char *name;           /* of the operation, or ROLE.CALL */
    const char *symbol;
    int kind;
    int code;                   /* the status as the vendor codes it, after sim_end */
    int device;
    int is_entered;             /* a handle has told the device */
    size_t length;
    char text[320];             /* arguments as `name=value`, separated by spaces */
};

void sim_begin(struct sim_call *call, int role, int operation, const char *name, const char *symbol);
int sim_end(struct sim_call *call);

/* The call also does another operation, which may have a fault of its own. */
void sim_also(struct sim_call *call, const char *name);

void sim_note_signed(struct sim_call *call, const char *name, long long value);
void sim_note_unsigned(struct sim_call *call, const char *name, unsigned long long value);
void sim_note_address(struct sim_call *call, const char *name, const void *value);
void sim_note_text(struct sim_call *call, const char *name, const char *value);

/* The call is refused with invalid_value unless the condition holds. */
void sim_expect(struct sim_call *call, int holds);

/* A vendor's number as the word's position in the contract; an unknown number refuses the call. */
int sim_word(struct sim_call *call, const char *name, const int *numbers, int count, const char *const *words,
             long long given);
/* The vendor's number of a word, or a refusal when the vendor has none. `numbers` is INT32_MIN where there is none. */
int sim_number(struct sim_call *call, const int *numbers, int count, int word);

/* What code the devices take, as the vendor says it; empty unless a test has set it. */
extern char sim_architecture[256];
int sim_device_count_visible(void);

/* APIs of objects (objects.c): a call is about the device of the handles that it is given. Where none tells it, it is
   about none. Once all arguments are read, sim_ready says whether the device answers the call. */
enum { SIM_FUNCTION, SIM_MODULE, SIM_EVENT };
void sim_enter(struct sim_call *call, int ordinal);
void sim_enter_behind(struct sim_call *call, int what, uint64_t handle);
void sim_ready(struct sim_call *call);
/* How far work is, by the vendor's numbers: done, not done, or the code of what it failed with. */
int sim_told(const struct sim_call *call, int kind, int complete, int busy);
int sim_model(int ordinal);
void sim_expect_model(struct sim_call *call, unsigned models);      /* as bits */
void sim_enter_device(struct sim_call *call, const void *handle);
uint64_t sim_enter_stream(struct sim_call *call, const void *handle);
int sim_ordinal_behind(struct sim_call *call, const char *name, const void *handle);
int sim_ordinal_here(void);
int sim_fact(int ordinal, int attribute);
void sim_expect_level(struct sim_call *call, const void *handle);
void sim_expect_object(struct sim_call *call, unsigned sort, const void *handle);
void sim_list(struct sim_call *call, int is_of_devices, unsigned room, void **list, unsigned *found);

/* A launch with `count` attributes, each of the layout {bytes, offset of its id, offset of its value}. */
int sim_function_parameter(uint64_t function, size_t index, size_t *offset, size_t *size);
int sim_launch_with(uint64_t function, const unsigned *grid, const unsigned *block, unsigned shared_memory,
                    uint64_t stream, void **arguments, const void *attributes, unsigned count, const size_t *layout);

/* Calls that belong to a role. */
int sim_role_init(int role);
int sim_driver_version(int usual);      /* as the runtime sees it: 0 where there is no driver */
int sim_version_of_driver(int usual);   /* as the driver itself says it */
int sim_role_close(int role);
int sim_role_enter(int role);
int sim_has_context(int device);
int sim_role_clear(void);
const char *sim_role_kind_name(int role, int code);
const char *sim_role_kind_text(int role, int code, const char *const *texts);

#endif
