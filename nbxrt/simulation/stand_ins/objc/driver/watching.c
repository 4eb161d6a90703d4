/* Every message is looked up here: it can be made to fail, to rest, and stands in the log. What a message's failure is
   depends on what it gives: no object, and an error object where it has room for one. A command buffer that is committed
   can fail by the name `work`. Messages that the framework sends to itself are not seen. */

#include <objc/message.h>
#include <objc/runtime.h>

#include "described.h"
#include "state.h"

/* The framework's: which device an object is of, or -1. */
int (*stub_device_of)(id object);

static int watches;                     /* something was asked for: a fault, a delay, or a record */

void sim_settle(void)
{
    static int settled;
    if (settled)
        return;
    settled = 1;
    watches = getenv("NBXRT_SIM_FAIL") || getenv("NBXRT_SIM_SLEEP_US") || getenv("NBXRT_SIM_LOG");
    sim_faults_from_environment();
    sim_log_from_environment();
}

__attribute__((constructor)) static void settle(void)
{
    pthread_mutex_lock(&sim_lock);
    sim_settle();
    pthread_mutex_unlock(&sim_lock);
}

EXPORTED void nbxrt_sim_mend(void)
{
    pthread_mutex_lock(&sim_lock);
    sim_forget_faults();
    pthread_mutex_unlock(&sim_lock);
}

EXPORTED void nbxrt_sim_clear_log(void)
{
    pthread_mutex_lock(&sim_lock);
    sim_log_clear();
    pthread_mutex_unlock(&sim_lock);
}

EXPORTED void nbxrt_sim_watch(void)
{
    pthread_mutex_lock(&sim_lock);
    watches = 1;
    pthread_mutex_unlock(&sim_lock);
}

/* The error's code for what was asked to fail, or 0. */
long stub_failure(const char *name, int device)
{
    pthread_mutex_lock(&sim_lock);
    int kind = sim_fault(name, "commit", device);
    pthread_mutex_unlock(&sim_lock);
    return kind ? stub_codes[kind] : 0;
}

static const char *types_of(id receiver, SEL selector)
{
    Class of = receiver->class_pointer;
    struct objc_method *method = class_isMetaClass(of) ? class_getClassMethod((Class)receiver, selector)
                                                       : class_getInstanceMethod(of, selector);
    return method ? method_getTypeEncoding(method) : NULL;
}

/* Behind one type of an encoding, and behind the offset that follows it. */
static const char *next_type(const char *types)
{
    int depth = 0;
    while (strchr("rnNoORV^", *types) && *types)
        types++;
    do {
        depth += (*types == '{') - (*types == '}');
    } while (*types && (types++, depth));
    while ((*types >= '0' && *types <= '9') || *types == '-' || *types == '?')
        types++;
    return types;
}

/* How many general registers an argument of that type comes in; a large structure and numbers with a point in none. */
static int registers_of(const char *type)
{
    if (*type != '{')
        return *type && !strchr("fdD", *type);
    const char *field = strchr(type, '='), *end = strchr(type, '}');
    return field && end && end - field <= 3 ? (int)(end - field) - 1 : 0;
}

/* `label=value` for every argument that came in a general register; others have no value. */
static void note(struct sim_call *call, const char *selector, const char *types, const uintptr_t *given, int count)
{
    const char *type = types ? next_type(next_type(next_type(types))) : "";
    for (const char *label = selector, *colon; (colon = strchr(label, ':')); label = colon + 1) {
        size_t room = sizeof call->text - call->length;
        int taken = registers_of(type);
        char value[32] = "?";
        if (taken == 1 && count > 0)
            snprintf(value, sizeof value, "%llu", (unsigned long long)(*type == 'C' || *type == 'B' ? *given & 0xff : *given));
        int length = snprintf(call->text + call->length, room, " %.*s=%s", (int)(colon - label), label, value);
        call->length += length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
        given += taken, count -= taken;
        type = *type ? next_type(type) : type;
    }
}

static int asked_to_fail(const char *selector, int device)
{
    int kind = sim_fault("", selector, device);
    for (const struct stub_name *name = stub_names; name->operation; name++)
        if (!strcmp(name->selector, selector)) {
            int of_operation = sim_fault(name->operation, NULL, device);
            kind = kind ? kind : of_operation;
        }
    return kind;
}

static void log_message(id receiver, const char *selector, const char *types, const uintptr_t *given, int count,
                        int device, int kind)
{
    struct sim_call call = {.name = "driver.send", .symbol = selector, .device = device, .kind = kind,
                            .code = (int)stub_codes[kind]};
    int length = snprintf(call.text, sizeof call.text, "to=%s", object_getClassName(receiver));
    call.length = length < 0 ? 0 : (size_t)length;
    note(&call, selector, types, given, count);
    sim_log_call(&call);
}

static id nothing(id receiver, SEL selector)
{
    (void)receiver, (void)selector;
    return nil;
}

/* The error object of a message that ends in `error:`, which is the last argument. */
static void give_error(const char *selector, const uintptr_t *given, int count, int kind)
{
    int colons = 0;
    for (const char *at = selector; *at; at++)
        colons += *at == ':';
    size_t length = strlen(selector);
    if (length < 6 || strcmp(selector + length - 6, "error:") || colons > count || !given[colons - 1])
        return;
    id class = (id)objc_getClass("NSError");
    SEL make = sel_registerName("withCode:description:");
    id (*made)(id, SEL, long, const char *) = (id (*)(id, SEL, long, const char *))objc_msg_lookup(class, make);
    *(id *)given[colons - 1] = made(class, make, stub_codes[kind], "the simulation was told to fail");
}

IMP stub_lookup(id receiver, SEL selector, const uintptr_t *given, int count)
{
    IMP method = objc_msg_lookup(receiver, selector);
    if (!watches)
        return method;
    const char *name = sel_getName(selector), *types = types_of(receiver, selector);
    int device = stub_device_of ? stub_device_of(receiver) : -1;
    int gives_object = types && *types == '@';
    pthread_mutex_lock(&sim_lock);
    sim_sleep_before("", name);
    int kind = gives_object ? asked_to_fail(name, device) : KIND_SUCCESS;
    log_message(receiver, name, types, given, count, device, kind);
    pthread_mutex_unlock(&sim_lock);
    if (!kind)
        return method;
    give_error(name, given, count, kind);
    return (IMP)nothing;
}
