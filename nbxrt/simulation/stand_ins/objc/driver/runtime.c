/* What Apple's libobjc has beside the messages and GCC's runtime has not: retain and release, autorelease pools, and
   the class of an object as a function. Misuse ends the process with a sentence, as there. */

#include <objc/message.h>
#include <objc/runtime.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

extern id objc_msgSend(id receiver, SEL selector);
extern IMP (*__objc_msg_forward2)(id receiver, SEL selector);

__attribute__((noreturn)) void stub_abort(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fputs("stub: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    fflush(stderr);
    abort();
}

/* The header has an inline function of the name. */
Class exported_class_of(id object) __asm__("object_getClass");
Class exported_class_of(id object) { return object ? object->class_pointer : Nil; }

static void send(id object, const char *name)
{
    if (object)
        objc_msgSend(object, sel_registerName(name));
}

id objc_retain(id object) { send(object, "retain"); return object; }
void objc_release(id object) { send(object, "release"); }

struct pool {
    struct pool *below;
    id *objects;
    size_t count, room;
};

static __thread struct pool *top;
static long unpooled;

void *objc_autoreleasePoolPush(void)
{
    struct pool *pool = calloc(1, sizeof *pool);
    pool->below = top;
    return top = pool;
}

static void drain(struct pool *pool)
{
    SEL release = sel_registerName("release");
    for (size_t at = 0; at < pool->count; at++) /* not sent by the caller, and not to be seen as if */
        objc_msg_lookup(pool->objects[at], release)(pool->objects[at], release);
    top = pool->below;
    free(pool->objects);
    free(pool);
}

void objc_autoreleasePoolPop(void *token)
{
    struct pool *pool = top;
    while (pool && pool != token)
        pool = pool->below;
    if (!pool)
        stub_abort("autorelease pool %p is not one of this thread, or was popped before", token);
    while (top != token)
        drain(top);
    drain(top);
}

id objc_autorelease(id object)
{
    if (!object)
        return nil;
    if (!top) { /* it leaks, as where no pool is in place */
        __atomic_add_fetch(&unpooled, 1, __ATOMIC_RELAXED);
        return object;
    }
    if (top->count == top->room)
        top->objects = realloc(top->objects, (top->room = 2 * top->room + 16) * sizeof(id));
    top->objects[top->count++] = object;
    return object;
}

/* Objects that were autoreleased where no pool was. */
long stub_unpooled(void) { return __atomic_load_n(&unpooled, __ATOMIC_RELAXED); }

static void unrecognized(id receiver, SEL selector)
{
    stub_abort("-[%s %s]: unrecognized selector", object_getClassName(receiver), sel_getName(selector));
}

static IMP forward(id receiver, SEL selector)
{
    (void)receiver, (void)selector;
    return (IMP)unrecognized;
}

/* Without it, GCC's runtime looks for a method of its own that nobody has, and calls null. */
__attribute__((constructor)) static void prepare(void) { __objc_msg_forward2 = forward; }
