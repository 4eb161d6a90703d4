/* What happens around every call: whether it can be answered at all, its arguments, its status. */
#include <sys/types.h>

#include "state.h"

static pid_t owner;                     /* the process in which the driver was first used */
static pid_t started[16];               /* by role: the process in which its first call was made */

/* Whether a call can be answered. */

static int needs_context(int operation)
{
    switch (operation) {
    case OP_DEVICE_COUNT: case OP_SET_DEVICE: case OP_GET_DEVICE: case OP_DEVICE_ATTRIBUTE: case OP_DEVICE_NAME:
    case OP_DEVICE_UUID: case OP_PCI_BUS_ID: case OP_DEVICE_CAN_ACCESS_PEER: case OP_MEM_GRANULARITY:
    case OP_MEM_CREATE: case OP_MEM_RELEASE: case OP_MEM_ADDRESS_RESERVE: case OP_MEM_ADDRESS_FREE: case OP_MEM_MAP:
    case OP_MEM_UNMAP: case OP_MEM_SET_ACCESS: case OP_COMM_UNIQUE_ID: case OP_GROUP_START: case OP_GROUP_END:
    case OP_COMM_ASYNC_ERROR: case OP_OBJECT_CREATE: case OP_OBJECT_DESTROY: case OP_DEVICE_FACTS: case OP_MARK_CREATE:
    case OP_MARK_TIME: case OP_EVENT_DESTROY: case OP_LEVEL_COUNT: case OP_LEVEL_AT: case OP_LEVEL_RELEASE:
        return 0;
    case OP_EVENT_QUERY:                /* how far work is, and what it failed with, is its own to say */
        return !sim_is_of_objects;
    default:
        return 1;
    }
}

int sim_make_context(int physical)
{
    struct device *device = &sim_devices[physical];
    int kind = sim_fault("context", "", sim_ordinal(physical));
    if (kind)
        return kind;
    if (!device->has_context)
        device->used += sim_settings.context;
    device->has_context = 1;
    sim_thread()->bound |= (uint64_t)1 << physical;
    for (int role = 0; role < sim_role_count; role++)
        if (sim_roles[role].has_contexts)
            started[role] = getpid();
    return KIND_SUCCESS;
}

static int in_context(const struct sim_call *call)
{
    int physical = sim_current();
    if (physical < 0)
        return KIND_INVALID_DEVICE;
    if (!sim_roles[call->role].has_contexts) {
        int kind = sim_make_context(physical);
        if (kind)
            return kind;
    } else if (!(sim_thread()->bound >> physical & 1)) {
        return KIND_INVALID_CONTEXT;
    }
    return sim_devices[physical].lost;
}

static int is_management(int role)
{
    return !strcmp(sim_roles[role].name, "management");
}

void sim_forget_processes(void)
{
    owner = 0;
    memset(started, 0, sizeof started);
}

static int forked(void)
{
    return owner && owner != getpid();
}

/* Whether the library answers anybody. */
static int usable(const struct sim_call *call)
{
    int is_management = group_of_operation[call->operation] == GROUP_MANAGEMENT;
    if (sim_thread()->in_callback)
        return KIND_NOT_PERMITTED;
    if (!is_management && forked())
        return KIND_NOT_INITIALIZED;
    if (sim_roles[call->role].needs_init && started[call->role] != getpid())
        return KIND_NOT_INITIALIZED;
    return KIND_SUCCESS;
}

/* Whether the device that the call is about answers it. */
static int answerable(struct sim_call *call)
{
    int kind = sim_fault(call->name, call->symbol, call->device);
    if (kind) {
        int physical = sim_physical(call->device);
        if (kind_is_sticky[kind] && physical >= 0)
            sim_lose(physical, kind);
        return kind;
    }
    if (sim_settings.no_driver)
        return KIND_NO_DRIVER;
    if (group_of_operation[call->operation] == GROUP_MANAGEMENT)
        return KIND_SUCCESS;
    if (!sim_device_count_visible())
        return KIND_NO_DEVICE;
    owner = getpid();
    if (needs_context(call->operation) && (!sim_is_of_objects || call->is_entered) && (kind = in_context(call)))
        return kind;
    return sim_capture_forbids(call->operation);
}

void sim_begin(struct sim_call *call, int role, int operation, const char *name, const char *symbol)
{
    call->role = role;
    call->operation = operation;
    call->name = name;
    call->symbol = symbol;
    call->length = 0;
    call->text[0] = 0;
    pthread_mutex_lock(&sim_lock);
    sim_settle();
    sim_sleep_before(name, symbol);
    call->device = sim_thread()->device;
    call->is_entered = 0;
    if (operation < 0)
        call->kind = sim_fault(name, symbol, call->device);
    else if (group_of_operation[operation] == GROUP_ERROR)
        call->kind = KIND_SUCCESS;
    else if (!(call->kind = usable(call)) && !sim_is_of_objects)
        call->kind = answerable(call);
}

/* The first handle tells what device the call is about; the others have to be of the same. */
void sim_enter(struct sim_call *call, int ordinal)
{
    if (!call->kind && call->is_entered && call->device != ordinal)
        call->kind = KIND_INVALID_DEVICE;
    if (call->kind)
        return;
    call->is_entered = 1;
    sim_thread()->device = call->device = ordinal;
}

void sim_ready(struct sim_call *call)
{
    if (!call->kind)
        call->kind = answerable(call);
}

int sim_ordinal_here(void)
{
    return sim_thread()->device;
}

void sim_also(struct sim_call *call, const char *name)
{
    if (!call->kind)
        call->kind = sim_fault(name, NULL, call->device);
}

int sim_end(struct sim_call *call)
{
    int asks_error = call->operation >= 0 && group_of_operation[call->operation] == GROUP_ERROR;
    call->code = sim_roles[call->role].codes[call->kind];
    if (call->kind && sim_roles[call->role].keeps_error && !asks_error)
        sim_thread()->last_kind = call->kind;
    sim_log_call(call);
    pthread_mutex_unlock(&sim_lock);
    return call->code;
}

/* Arguments. */

static void note(struct sim_call *call, const char *name, const char *value)
{
    size_t room = sizeof call->text - call->length;
    int length = snprintf(call->text + call->length, room, "%s%s=%s", call->length ? " " : "", name, value);
    call->length += length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
}

void sim_note_signed(struct sim_call *call, const char *name, long long value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", value);
    note(call, name, text);
}

void sim_note_unsigned(struct sim_call *call, const char *name, unsigned long long value)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", value);
    note(call, name, text);
}

void sim_note_address(struct sim_call *call, const char *name, const void *value)
{
    sim_note_unsigned(call, name, (unsigned long long)(uintptr_t)value);
}

void sim_note_text(struct sim_call *call, const char *name, const char *value)
{
    char text[96];
    size_t length = 0;
    for (; value && value[length] && length + 1 < sizeof text; length++)
        text[length] = value[length] <= ' ' ? '_' : value[length];
    text[length] = 0;
    note(call, name, text);
}

void sim_expect(struct sim_call *call, int holds)
{
    if (!holds && !call->kind)
        call->kind = KIND_INVALID_VALUE;
}

int sim_word(struct sim_call *call, const char *name, const int *numbers, int count, const char *const *words,
             long long given)
{
    for (int word = 0; word < count; word++)
        if (numbers[word] != INT32_MIN && numbers[word] == given) {
            sim_note_text(call, name, words[word]);
            return word;
        }
    sim_note_signed(call, name, given);
    sim_expect(call, 0);
    return -1;
}

int sim_number(struct sim_call *call, const int *numbers, int count, int word)
{
    int known = word >= 0 && word < count && numbers[word] != INT32_MIN;
    sim_expect(call, known);
    return known ? numbers[word] : 0;
}

/* Calls that belong to a role. */

int sim_role_init(int role)
{
    if (!is_management(role) && forked())
        return KIND_NOT_INITIALIZED;
    if (sim_settings.no_driver)
        return KIND_NO_DRIVER;
    if (!is_management(role)) {
        if (!sim_device_count_visible())
            return KIND_NO_DEVICE;
        owner = getpid();
    }
    started[role] = getpid();
    return KIND_SUCCESS;
}

int sim_version_of_driver(int usual)
{
    return sim_settings.driver_version >= 0 ? sim_settings.driver_version : usual;
}

int sim_driver_version(int usual)
{
    return sim_version_of_driver(sim_settings.no_driver ? 0 : usual);
}

int sim_role_close(int role)
{
    if (sim_roles[role].needs_init && started[role] != getpid())
        return KIND_NOT_INITIALIZED;
    started[role] = 0;
    return KIND_SUCCESS;
}

int sim_role_enter(int role)
{
    (void)role;
    if (forked())
        return KIND_NOT_INITIALIZED;
    if (sim_settings.no_driver)
        return KIND_NO_DRIVER;
    int physical = sim_current();
    return physical < 0 ? KIND_NO_DEVICE : sim_make_context(physical);
}

int sim_role_clear(void)
{
    sim_thread()->last_kind = KIND_SUCCESS;
    return KIND_SUCCESS;
}

int sim_get_last_error(int *code)
{
    struct thread *thread = sim_thread();
    *code = thread->last_kind;
    int physical = sim_current();
    thread->last_kind = physical >= 0 ? sim_devices[physical].lost : KIND_SUCCESS;
    return KIND_SUCCESS;
}

int sim_peek_last_error(int *code)
{
    *code = sim_thread()->last_kind;
    return KIND_SUCCESS;
}

static int kind_of_code(int role, int code)
{
    for (int kind = 0; kind < KIND_COUNT; kind++)
        if (sim_roles[role].codes[kind] == code && sim_roles[role].names[kind])
            return kind;
    return -1;
}

const char *sim_role_kind_name(int role, int code)
{
    int kind = kind_of_code(role, code);
    return kind < 0 ? "unrecognized error code" : sim_roles[role].names[kind];
}

const char *sim_role_kind_text(int role, int code, const char *const *texts)
{
    int kind = kind_of_code(role, code);
    return kind < 0 ? "unrecognized error code" : texts[kind];
}
