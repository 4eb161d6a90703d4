/* A stand-in for Metal.framework and the few classes of Foundation around it: it answers the real selectors with the
   real types, does its work on a thread for each queue, counts live objects, and ends the process where Metal's own
   assertions do. Objects that died stay as zombies, so that a message to one is named. */

#include <objc/message.h>
#include <objc/runtime.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

__attribute__((noreturn)) void stub_abort(const char *format, ...);
extern id objc_autorelease(id object);
extern int (*stub_device_of)(id object);
extern long stub_failure(const char *name, int device);

typedef unsigned long NSUInteger;
typedef struct { NSUInteger location, length; } NSRange;
typedef struct { NSUInteger width, height, depth; } MTLSize;

enum { ROOM = 64, SLOTS = 31, MOST_BYTES = 4096, DEVICES = 64 };

static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }
static size_t whole_pages(size_t length) { return (length + page() - 1) / page() * page(); }

/* Metal's protocols, in Apple's types. The compiler holds the classes below to them, and the runtime tells them. */
@class NSString, NSError, MTLCompileOptions, StubArchitecture, StubBuffer, StubCommandBuffer, StubCommandQueue, StubData,
    StubFunction, StubLibrary, StubPipeline, StubSharedEvent;
@protocol MTLArchitecture
- (NSString *)name;
@end
@protocol MTLDevice
- (NSString *)name;
- (StubArchitecture *)architecture;
- (uint64_t)registryID;
- (BOOL)hasUnifiedMemory;
- (BOOL)supportsFamily:(long)family;
- (uint64_t)recommendedMaxWorkingSetSize;
- (NSUInteger)currentAllocatedSize;
- (NSUInteger)maxBufferLength;
- (NSUInteger)maxThreadgroupMemoryLength;
- (MTLSize)maxThreadsPerThreadgroup;
- (StubCommandQueue *)newCommandQueue;
- (StubCommandQueue *)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)room;
- (StubBuffer *)newBufferWithLength:(NSUInteger)length options:(NSUInteger)options;
- (StubBuffer *)newBufferWithBytesNoCopy:(void *)bytes length:(NSUInteger)length options:(NSUInteger)options
                             deallocator:(id)deallocator;
- (StubSharedEvent *)newSharedEvent;
- (StubLibrary *)newLibraryWithSource:(NSString *)source options:(MTLCompileOptions *)options error:(id *)error;
- (StubLibrary *)newLibraryWithData:(StubData *)data error:(id *)error;
- (StubPipeline *)newComputePipelineStateWithFunction:(StubFunction *)function error:(id *)error;
@end
@protocol MTLBuffer
- (void *)contents;
- (NSUInteger)length;
@end
@protocol MTLCommandQueue
- (StubCommandBuffer *)commandBuffer;
@end
@protocol MTLCommandBuffer
- (id)blitCommandEncoder;
- (id)computeCommandEncoder;
- (void)encodeSignalEvent:(StubSharedEvent *)event value:(uint64_t)value;
- (void)encodeWaitForEvent:(StubSharedEvent *)event value:(uint64_t)value;
- (void)commit;
- (void)waitUntilCompleted;
- (NSUInteger)status;
- (NSError *)error;
- (double)GPUStartTime;
- (double)GPUEndTime;
@end
@protocol MTLCommandEncoder
- (void)endEncoding;
@end
@protocol MTLBlitCommandEncoder
- (void)copyFromBuffer:(StubBuffer *)source sourceOffset:(NSUInteger)from toBuffer:(StubBuffer *)target
     destinationOffset:(NSUInteger)to size:(NSUInteger)size;
- (void)fillBuffer:(StubBuffer *)target range:(NSRange)range value:(uint8_t)value;
@end
@protocol MTLComputeCommandEncoder
- (void)setComputePipelineState:(StubPipeline *)state;
- (void)setBuffer:(StubBuffer *)given offset:(NSUInteger)offset atIndex:(NSUInteger)index;
- (void)setBytes:(const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)threads;
@end
@protocol MTLSharedEvent
- (uint64_t)signaledValue;
- (void)setSignaledValue:(uint64_t)next;
- (BOOL)waitUntilSignaledValue:(uint64_t)wanted timeoutMS:(uint64_t)milliseconds;
@end
@protocol MTLLibrary
- (StubFunction *)newFunctionWithName:(NSString *)name;
@end
@protocol MTLComputePipelineState
- (NSUInteger)maxTotalThreadsPerThreadgroup;
- (NSUInteger)threadExecutionWidth;
- (NSUInteger)staticThreadgroupMemoryLength;
@end

/* What a test sets. */
static int device_count = 1, has_default = 1, lists = 1;
static long delay_us, failing_code;
static int held;
void stub_devices(int count, int with_default, int listed) { device_count = count, has_default = with_default, lists = listed; }
void stub_delay(long microseconds) { delay_us = microseconds; }
void stub_hold(int hold) { __atomic_store_n(&held, hold, __ATOMIC_SEQ_CST); }
void stub_fail_next(long code) { __atomic_store_n(&failing_code, code, __ATOMIC_SEQ_CST); }

/* The same by the variables of a process: NBXRT_SIM_DEVICES, NBXRT_SIM_MEMORY in bytes, NBXRT_SIM_LATENCY_US. */
static NSUInteger memory_of_each = 1UL << 33;
static void set_from(const char *name, NSUInteger *value)
{
    const char *said = getenv(name);
    if (said)
        *value = strtoul(said, NULL, 10);
}
static int device_of(id object);
__attribute__((constructor)) static void settle(void)
{
    NSUInteger count = 1, pause = 0;
    set_from("NBXRT_SIM_DEVICES", &count);
    set_from("NBXRT_SIM_MEMORY", &memory_of_each);
    set_from("NBXRT_SIM_LATENCY_US", &pause);
    device_count = count < DEVICES ? (int)count : DEVICES;
    delay_us = (long)pause;
    stub_device_of = device_of;
}

/* What a test asks. */
static long live, committed, encoders;
long stub_live(void) { return __atomic_load_n(&live, __ATOMIC_SEQ_CST); }
long stub_committed(void) { return __atomic_load_n(&committed, __ATOMIC_SEQ_CST); }
long stub_encoders(void) { return __atomic_load_n(&encoders, __ATOMIC_SEQ_CST); }

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void pause_us(long microseconds)
{
    struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
    if (microseconds > 0)
        nanosleep(&time, NULL);
}

/* As long as a test holds the work, but no longer than 30 s: what waits for it by mistake comes back. */
static void rest(void)
{
    pause_us(delay_us);
    for (double end = now() + 30; __atomic_load_n(&held, __ATOMIC_SEQ_CST) && now() < end;)
        pause_us(200);
}

@interface NSObject {
    Class isa;
    int references;
}
+ (id)alloc;
+ (id)new;
- (id)init;
- (id)retain;
- (void)release;
- (id)autorelease;
- (void)dealloc;
@end

/* A dead object: it answers no message. */
@interface Zombie {
    Class isa;
    int references;
}
@end
@implementation Zombie
@end

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static struct { const char *name; long count; } by_class[64];

static void count(id object, long change)
{
    const char *name = object_getClassName(object);
    int at = 0;
    pthread_mutex_lock(&counting);
    while (by_class[at].name && strcmp(by_class[at].name, name))
        at++;
    by_class[at].name = name;
    by_class[at].count += change;
    pthread_mutex_unlock(&counting);
    __atomic_add_fetch(&live, change, __ATOMIC_SEQ_CST);
}

/* The live objects by class, as text. */
const char *stub_live_by_class(void)
{
    static char text[4096];
    size_t length = 0;
    text[0] = 0;
    pthread_mutex_lock(&counting);
    for (int at = 0; at < 64 && by_class[at].name; at++)
        if (by_class[at].count)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s %ld\n", by_class[at].name, by_class[at].count);
    pthread_mutex_unlock(&counting);
    return text;
}

@implementation NSObject
+ (id)alloc
{
    NSObject *made = class_createInstance(self, 0);
    made->references = 1;
    count(made, 1);
    return made;
}
+ (id)new { return [[self alloc] init]; }
- (id)init { return self; }
- (id)retain
{
    __atomic_add_fetch(&references, 1, __ATOMIC_SEQ_CST);
    return self;
}
- (void)release
{
    if (__atomic_sub_fetch(&references, 1, __ATOMIC_SEQ_CST) == 0)
        [self dealloc];
}
- (id)autorelease { return objc_autorelease(self); }
- (void)dealloc
{
    count(self, -1);
    isa = objc_getClass("Zombie");
}
@end

/* Foundation */

@interface NSString : NSObject {
    char *bytes;
}
+ (NSString *)stringWithCString:(const char *)text encoding:(NSUInteger)encoding;
- (const char *)UTF8String;
@end
@implementation NSString
+ (NSString *)stringWithCString:(const char *)text encoding:(NSUInteger)encoding
{
    if (encoding != 4)
        stub_abort("stringWithCString: encoding %lu is not UTF-8", encoding);
    NSString *made = [NSString alloc];
    made->bytes = strdup(text);
    return [made autorelease];
}
- (const char *)UTF8String { return bytes; }
- (void)dealloc
{
    free(bytes);
    [super dealloc];
}
@end

static NSString *text(const char *bytes) { return [NSString stringWithCString:bytes encoding:4]; }

@interface NSError : NSObject {
    long code;
    NSString *description;
}
+ (NSError *)withCode:(long)number description:(const char *)says;
- (long)code;
- (NSString *)localizedDescription;
@end
@implementation NSError
+ (NSError *)withCode:(long)number description:(const char *)says
{
    NSError *made = [NSError alloc];
    made->code = number;
    made->description = [text(says) retain];
    return [made autorelease];
}
- (long)code { return code; }
- (NSString *)localizedDescription { return description; }
- (void)dealloc
{
    [description release];
    [super dealloc];
}
@end

static id refused(id *error, long code, const char *says)
{
    if (error)
        *error = [NSError withCode:code description:says];
    return nil;
}

@interface NSArray : NSObject {
    id members[DEVICES];
    NSUInteger length;
}
- (void)add:(id)member;
- (NSUInteger)count;
- (id)objectAtIndex:(NSUInteger)index;
@end
@implementation NSArray
- (void)add:(id)member { members[length++] = [member retain]; }
- (NSUInteger)count { return length; }
- (id)objectAtIndex:(NSUInteger)index
{
    if (index >= length)
        stub_abort("*** -[NSArray objectAtIndex:]: index %lu beyond bounds", index);
    return members[index];
}
- (void)dealloc
{
    for (NSUInteger at = 0; at < length; at++)
        [members[at] release];
    [super dealloc];
}
@end

/* Metal: objects that hold something */

@interface StubDevice : NSObject <MTLDevice> {
@public
    const char *called;
    NSUInteger identity, allocated;
    BOOL unified;
}
@end

@interface StubArchitecture : NSObject <MTLArchitecture>
- (NSString *)name;
@end
@implementation StubArchitecture
- (NSString *)name { return text("applegpu_stub"); }
@end

@interface StubBuffer : NSObject <MTLBuffer> {
@public
    StubDevice *device;
    char *bytes;
    NSUInteger length, mapped;
    NSUInteger options;
}
- (void *)contents;
- (NSUInteger)length;
@end
@implementation StubBuffer
- (void *)contents { return options >> 4 == 2 ? NULL : bytes; }
- (NSUInteger)length { return length; }
- (NSUInteger)gpuAddress { return 0x1000000000UL + (NSUInteger)bytes; }
- (void)dealloc
{
    if (mapped)
        munmap(bytes, mapped);
    __atomic_sub_fetch(&device->allocated, mapped, __ATOMIC_SEQ_CST);
    [super dealloc];
}
@end

@interface StubSharedEvent : NSObject <MTLSharedEvent> {
@public
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t value;
}
- (uint64_t)signaledValue;
- (void)setSignaledValue:(uint64_t)next;
- (BOOL)waitUntilSignaledValue:(uint64_t)wanted timeoutMS:(uint64_t)milliseconds;
@end
@implementation StubSharedEvent
- (id)init
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&changed, &attributes);
    return self;
}
- (uint64_t)signaledValue
{
    pthread_mutex_lock(&lock);
    uint64_t now = value;
    pthread_mutex_unlock(&lock);
    return now;
}
- (void)setSignaledValue:(uint64_t)next /* only a larger value changes it */
{
    pthread_mutex_lock(&lock);
    if (next > value)
        value = next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}
- (BOOL)waitUntilSignaledValue:(uint64_t)wanted timeoutMS:(uint64_t)milliseconds
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (milliseconds > 3600000)
        milliseconds = 3600000;
    end.tv_sec += (time_t)(milliseconds / 1000);
    end.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (end.tv_nsec >= 1000000000)
        end.tv_sec++, end.tv_nsec -= 1000000000;
    pthread_mutex_lock(&lock);
    while (value < wanted && pthread_cond_timedwait(&changed, &lock, &end) == 0) {
    }
    BOOL came = value >= wanted;
    pthread_mutex_unlock(&lock);
    return came;
}
@end

/* Metal: kernels. What the source defines is found by name; what runs is C. */

@interface MTLCompileOptions : NSObject {
@public
    NSUInteger languageVersion;
    long mathMode;
    BOOL fastMathEnabled;
}
@end
@implementation MTLCompileOptions
- (NSUInteger)languageVersion { return languageVersion; }
- (void)setLanguageVersion:(NSUInteger)version { languageVersion = version; }
- (long)mathMode { return mathMode; }
- (void)setMathMode:(long)mode { mathMode = mode; }
- (BOOL)fastMathEnabled { return fastMathEnabled; }
- (void)setFastMathEnabled:(BOOL)enabled { fastMathEnabled = enabled; }
@end

struct bound { StubBuffer *buffer; NSUInteger offset; char *bytes; NSUInteger length; };

static char *at(const struct bound *slot)
{
    return slot->buffer ? slot->buffer->bytes + slot->offset : slot->bytes;
}

static void vector_add(const struct bound *slots, size_t threads)
{
    const uint32_t *left = (void *)at(slots), *right = (void *)at(slots + 1);
    uint32_t *out = (void *)at(slots + 2), length = *(uint32_t *)(void *)at(slots + 3);
    for (size_t index = 0; index < threads && index < length; index++)
        out[index] = left[index] + right[index];
}

static const struct { const char *name; int slots; void (*run)(const struct bound *, size_t); } KERNELS[] = {
    {"add", 4, vector_add},
};

@interface StubFunction : NSObject {
@public
    int kernel;
}
@end
@implementation StubFunction
@end

@interface StubLibrary : NSObject <MTLLibrary> {
@public
    char *source;
}
- (StubFunction *)newFunctionWithName:(NSString *)name;
@end
@implementation StubLibrary
- (StubFunction *)newFunctionWithName:(NSString *)name
{
    char wanted[256];
    snprintf(wanted, sizeof wanted, "kernel void %s(", [name UTF8String]);
    if (!strstr(source, wanted))
        return nil;
    for (int at = 0; at < (int)(sizeof KERNELS / sizeof *KERNELS); at++)
        if (!strcmp(KERNELS[at].name, [name UTF8String])) {
            StubFunction *made = [StubFunction new];
            made->kernel = at;
            return made;
        }
    return nil;
}
- (void)dealloc
{
    free(source);
    [super dealloc];
}
@end

@interface StubPipeline : NSObject <MTLComputePipelineState> {
@public
    int kernel;
}
- (NSUInteger)maxTotalThreadsPerThreadgroup;
@end
@implementation StubPipeline
- (NSUInteger)maxTotalThreadsPerThreadgroup { return 1024; }
- (NSUInteger)threadExecutionWidth { return 32; }
- (NSUInteger)staticThreadgroupMemoryLength { return 0; }
@end

/* The data object of libdispatch, which Objective-C sees as an object. */
@interface StubData : NSObject {
@public
    char *bytes;
    size_t length;
}
@end
@implementation StubData
- (void)dealloc
{
    free(bytes);
    [super dealloc];
}
@end

void *dispatch_data_create(const void *bytes, size_t length, void *queue, void *destructor)
{
    (void)queue, (void)destructor;
    StubData *made = [StubData new];
    made->bytes = calloc(1, length + 1);
    made->length = length;
    memcpy(made->bytes, bytes, length);
    return made;
}

/* Metal: queues and what is encoded for them */

enum what { COPY, FILL, SIGNAL, WAIT, RUN };

struct command {
    struct command *next;
    enum what what;
    id first, second;
    NSUInteger from, to, size;
    uint64_t value;
    struct bound slots[SLOTS];
    int kernel;
};

@class StubCommandBuffer;

/* A queue's thread and what it works at; it outlives the queue object until the thread has seen that it is closed. */
struct lane {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    StubCommandBuffer *first, *last;
    int outstanding, room, closed;
};

@interface StubCommandQueue : NSObject <MTLCommandQueue> {
@public
    StubDevice *device;
    struct lane *lane;
}
@end

@interface StubCommandBuffer : NSObject <MTLCommandBuffer> {
@public
    StubCommandQueue *queue;
    StubCommandBuffer *after;
    struct command *commands, **end;
    id encoder;
    NSUInteger status;
    NSError *error;
    double start, finish;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    long fails_with;
}
- (struct command *)add:(enum what)what first:(id)first second:(id)second;
- (void)work;
@end

@interface StubEncoder : NSObject <MTLCommandEncoder> {
@public
    StubCommandBuffer *buffer;
    BOOL ended;
}
- (void)endEncoding;
@end

static void must_be_open(StubEncoder *encoder)
{
    if (encoder->ended)
        stub_abort("-[%s]: a command was encoded after endEncoding", object_getClassName(encoder));
}

@implementation StubEncoder
- (void)endEncoding
{
    if (ended)
        stub_abort("-[%s endEncoding]: called twice", object_getClassName(self));
    ended = YES;
    buffer->encoder = nil;
}
- (void)dealloc
{
    if (!ended)
        stub_abort("command encoder released without endEncoding");
    [buffer release];
    [super dealloc];
}
@end

@interface StubBlitEncoder : StubEncoder <MTLBlitCommandEncoder>
@end
@implementation StubBlitEncoder
- (void)copyFromBuffer:(StubBuffer *)source sourceOffset:(NSUInteger)from toBuffer:(StubBuffer *)target
     destinationOffset:(NSUInteger)to size:(NSUInteger)size
{
    must_be_open(self);
    if ((from | to | size) % 4)
        stub_abort("copyFromBuffer: offsets %lu and %lu and size %lu must be multiples of 4", from, to, size);
    if (from + size > [source length] || to + size > [target length])
        stub_abort("copyFromBuffer: the range is outside a buffer");
    if (source == target && from < to + size && to < from + size)
        stub_abort("copyFromBuffer: the ranges overlap");
    struct command *command = [buffer add:COPY first:source second:target];
    command->from = from, command->to = to, command->size = size;
}
- (void)fillBuffer:(StubBuffer *)target range:(NSRange)range value:(uint8_t)value
{
    must_be_open(self);
    if (range.length == 0 || (range.location | range.length) % 4)
        stub_abort("fillBuffer: range (%lu, %lu) must be multiples of 4", range.location, range.length);
    if (range.location + range.length > [target length])
        stub_abort("fillBuffer: the range is outside the buffer");
    struct command *command = [buffer add:FILL first:target second:nil];
    command->to = range.location, command->size = range.length, command->value = value;
}
@end

@interface StubComputeEncoder : StubEncoder <MTLComputeCommandEncoder> {
    StubPipeline *pipeline;
    struct bound slots[SLOTS];
}
@end
@implementation StubComputeEncoder
- (void)setComputePipelineState:(StubPipeline *)state
{
    must_be_open(self);
    [state retain];
    [pipeline release];
    pipeline = state;
}
- (void)setBuffer:(StubBuffer *)given offset:(NSUInteger)offset atIndex:(NSUInteger)index
{
    must_be_open(self);
    if (index >= SLOTS)
        stub_abort("setBuffer: index %lu must be less than %d", index, SLOTS);
    if (given && offset >= [given length])
        stub_abort("setBuffer: offset %lu is outside the buffer", offset);
    [given retain];
    [slots[index].buffer release];
    slots[index] = (struct bound){given, offset, NULL, 0};
}
- (void)setBytes:(const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)index
{
    must_be_open(self);
    if (index >= SLOTS || length == 0 || length > MOST_BYTES)
        stub_abort("setBytes: index %lu or length %lu is not possible", index, length);
    [slots[index].buffer release];
    slots[index] = (struct bound){nil, 0, memcpy(malloc(length), bytes, length), length};
}
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index
{
    must_be_open(self);
    if (length % 16)
        stub_abort("setThreadgroupMemoryLength: %lu must be a multiple of 16", length);
}
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)threads
{
    must_be_open(self);
    NSUInteger in_group = threads.width * threads.height * threads.depth;
    if (!pipeline)
        stub_abort("dispatchThreadgroups: no pipeline is set");
    if (in_group == 0 || in_group > [pipeline maxTotalThreadsPerThreadgroup])
        stub_abort("dispatchThreadgroups: %lu threads in a group are not possible", in_group);
    for (int index = 0; index < KERNELS[pipeline->kernel].slots; index++)
        if (!slots[index].buffer && !slots[index].bytes)
            stub_abort("dispatchThreadgroups: nothing is bound at index %d", index);
    struct command *command = [buffer add:RUN first:pipeline second:nil];
    command->kernel = pipeline->kernel;
    command->size = in_group * groups.width * groups.height * groups.depth;
    for (int index = 0; index < SLOTS; index++) {
        command->slots[index] = slots[index];
        [slots[index].buffer retain];
        if (slots[index].bytes)
            command->slots[index].bytes = memcpy(malloc(slots[index].length), slots[index].bytes, slots[index].length);
    }
}
- (void)dealloc
{
    for (int index = 0; index < SLOTS; index++) {
        [slots[index].buffer release];
        free(slots[index].bytes);
    }
    [pipeline release];
    [super dealloc];
}
@end

static void forget(struct command *command)
{
    while (command) {
        struct command *next = command->next;
        for (int index = 0; index < SLOTS; index++) {
            [command->slots[index].buffer release];
            free(command->slots[index].bytes);
        }
        [command->first release];
        [command->second release];
        free(command);
        command = next;
    }
}

@implementation StubCommandBuffer
- (id)init
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&changed, NULL);
    end = &commands;
    return self;
}
- (struct command *)add:(enum what)what first:(id)first second:(id)second
{
    if (status >= 2)
        stub_abort("a command was encoded into a command buffer that is committed");
    struct command *command = calloc(1, sizeof *command);
    command->what = what;
    command->first = [first retain]; /* a command buffer retains what it uses until it has completed */
    command->second = [second retain];
    *end = command;
    end = &command->next;
    return command;
}
- (id)encoderOf:(Class)kind
{
    if (status >= 2)
        stub_abort("an encoder was asked of a command buffer that is committed");
    if (encoder)
        stub_abort("an encoder was asked of a command buffer that has one that is not ended");
    StubEncoder *made = [kind new];
    made->buffer = [self retain];
    encoder = made;
    __atomic_add_fetch(&encoders, 1, __ATOMIC_SEQ_CST);
    return [made autorelease];
}
- (id)blitCommandEncoder { return [self encoderOf:objc_getClass("StubBlitEncoder")]; }
- (id)computeCommandEncoder { return [self encoderOf:objc_getClass("StubComputeEncoder")]; }
- (void)encodeSignalEvent:(StubSharedEvent *)event value:(uint64_t)value
{
    if (encoder)
        stub_abort("encodeSignalEvent: an encoder of the command buffer is not ended");
    [self add:SIGNAL first:event second:nil]->value = value;
}
- (void)encodeWaitForEvent:(StubSharedEvent *)event value:(uint64_t)value
{
    if (encoder)
        stub_abort("encodeWaitForEvent: an encoder of the command buffer is not ended");
    [self add:WAIT first:event second:nil]->value = value;
}
- (void)commit
{
    if (encoder)
        stub_abort("commit: an encoder of the command buffer is not ended");
    if (status >= 2)
        stub_abort("commit: the command buffer is committed already");
    struct lane *lane = queue->lane;
    fails_with = __atomic_exchange_n(&failing_code, 0, __ATOMIC_SEQ_CST);
    if (!fails_with)
        fails_with = stub_failure("work", stub_device_of(self));
    __atomic_add_fetch(&committed, 1, __ATOMIC_SEQ_CST);
    [self retain]; /* until it has completed */
    pthread_mutex_lock(&lane->lock);
    status = 2;
    if (lane->last)
        lane->last->after = self;
    else
        lane->first = self;
    lane->last = self;
    pthread_cond_broadcast(&lane->changed);
    pthread_mutex_unlock(&lane->lock);
}
- (void)work
{
    struct lane *lane = queue->lane;
    rest();
    start = now();
    for (struct command *command = fails_with ? NULL : commands; command; command = command->next) {
        StubBuffer *source = command->first, *target = command->second;
        switch (command->what) {
        case COPY:
            memcpy(target->bytes + command->to, source->bytes + command->from, command->size);
            break;
        case FILL:
            memset(source->bytes + command->to, (int)command->value, command->size);
            break;
        case SIGNAL:
            [(StubSharedEvent *)command->first setSignaledValue:command->value];
            break;
        case WAIT:
            [(StubSharedEvent *)command->first waitUntilSignaledValue:command->value timeoutMS:~0UL];
            break;
        case RUN:
            KERNELS[command->kernel].run(command->slots, command->size);
            break;
        }
    }
    forget(commands);
    commands = NULL;
    pthread_mutex_lock(&lock);
    finish = now();
    if (fails_with)
        error = [[NSError withCode:fails_with description:"the stub was told to fail"] retain];
    __atomic_store_n(&status, fails_with ? 5 : 4, __ATOMIC_SEQ_CST);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lane->lock);
    lane->outstanding--;
    pthread_cond_broadcast(&lane->changed);
    pthread_mutex_unlock(&lane->lock);
}
- (void)waitUntilCompleted
{
    if (__atomic_load_n(&status, __ATOMIC_SEQ_CST) < 2)
        stub_abort("waitUntilCompleted: the command buffer is not committed");
    pthread_mutex_lock(&lock);
    while (status < 4)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}
- (NSUInteger)status { return __atomic_load_n(&status, __ATOMIC_SEQ_CST); }
- (NSError *)error { return error; }
- (double)GPUStartTime { return [self status] >= 4 ? start : 0.0; }
- (double)GPUEndTime { return [self status] >= 4 ? finish : 0.0; }
- (void)dealloc
{
    forget(commands); /* one that was never committed keeps its place in the queue, as in Metal */
    [error release];
    [queue release];
    [super dealloc];
}
@end

extern void *objc_autoreleasePoolPush(void);
extern void objc_autoreleasePoolPop(void *token);

static void *serve(void *given)
{
    struct lane *lane = given;
    for (;;) {
        pthread_mutex_lock(&lane->lock);
        while (!lane->first && !lane->closed)
            pthread_cond_wait(&lane->changed, &lane->lock);
        StubCommandBuffer *buffer = lane->first;
        if (buffer && !(lane->first = buffer->after))
            lane->last = NULL;
        pthread_mutex_unlock(&lane->lock);
        if (!buffer)
            break;
        void *pool = objc_autoreleasePoolPush();
        [buffer work];
        [buffer release];
        objc_autoreleasePoolPop(pool);
    }
    free(lane);
    return NULL;
}

@implementation StubCommandQueue
- (StubCommandBuffer *)commandBuffer
{
    pthread_mutex_lock(&lane->lock);
    while (lane->outstanding >= lane->room)
        pthread_cond_wait(&lane->changed, &lane->lock);
    lane->outstanding++;
    pthread_mutex_unlock(&lane->lock);
    StubCommandBuffer *made = [StubCommandBuffer new];
    made->queue = [self retain];
    return [made autorelease];
}
- (void)dealloc
{
    pthread_mutex_lock(&lane->lock);
    lane->closed = 1;
    pthread_cond_broadcast(&lane->changed);
    pthread_mutex_unlock(&lane->lock);
    [super dealloc];
}
@end

@implementation StubDevice
- (NSString *)name { return text(called); }
- (StubArchitecture *)architecture { return [[StubArchitecture new] autorelease]; }
- (uint64_t)registryID { return identity; }
- (BOOL)hasUnifiedMemory { return unified; }
- (BOOL)isLowPower { return NO; }
- (BOOL)isHeadless { return NO; }
- (BOOL)isRemovable { return NO; }
- (NSUInteger)location { return 0; }
- (BOOL)supportsFamily:(long)family { return family <= 1009 || family == 5001; }
- (uint64_t)recommendedMaxWorkingSetSize { return memory_of_each; }
- (NSUInteger)currentAllocatedSize { return __atomic_load_n(&allocated, __ATOMIC_SEQ_CST); }
- (NSUInteger)maxBufferLength { return 1UL << 32; }
- (NSUInteger)maxThreadgroupMemoryLength { return 32768; }
- (MTLSize)maxThreadsPerThreadgroup { return (MTLSize){1024, 1024, 64}; }
- (StubSharedEvent *)newSharedEvent { return [StubSharedEvent new]; }
- (StubCommandQueue *)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)room
{
    StubCommandQueue *made = [StubCommandQueue new];
    pthread_t thread;
    made->device = self;
    made->lane = calloc(1, sizeof *made->lane);
    made->lane->room = (int)room;
    pthread_mutex_init(&made->lane->lock, NULL);
    pthread_cond_init(&made->lane->changed, NULL);
    pthread_create(&thread, NULL, serve, made->lane);
    pthread_detach(thread);
    return made;
}
- (StubCommandQueue *)newCommandQueue { return [self newCommandQueueWithMaxCommandBufferCount:ROOM]; }
- (StubBuffer *)newBufferWithLength:(NSUInteger)length options:(NSUInteger)options
{
    if (length == 0)
        stub_abort("newBufferWithLength: the length must not be 0");
    if (length > [self maxBufferLength] || [self currentAllocatedSize] + whole_pages(length) > memory_of_each)
        return nil;
    char *bytes = mmap(NULL, whole_pages(length), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED)
        return nil;
    StubBuffer *made = [StubBuffer new];
    made->device = self, made->bytes = bytes, made->length = length, made->options = options;
    made->mapped = whole_pages(length);
    __atomic_add_fetch(&allocated, made->mapped, __ATOMIC_SEQ_CST);
    return made;
}
- (StubBuffer *)newBufferWithBytesNoCopy:(void *)bytes length:(NSUInteger)length options:(NSUInteger)options
                             deallocator:(id)deallocator
{
    if (!bytes || length == 0 || (NSUInteger)bytes % page() || length % page() || deallocator)
        return nil;
    StubBuffer *made = [StubBuffer new];
    made->device = self, made->bytes = bytes, made->length = length, made->options = options;
    return made;
}
- (StubLibrary *)newLibraryWithSource:(NSString *)source options:(MTLCompileOptions *)options error:(id *)error
{
    if (!strstr([source UTF8String], "kernel void "))
        return refused(error, 3, "program_source:1:1: error: unknown type name");
    StubLibrary *made = [StubLibrary new];
    made->source = strdup([source UTF8String]);
    return made;
}
- (StubLibrary *)newLibraryWithData:(StubData *)data error:(id *)error
{
    if (data->length < 8 || memcmp(data->bytes, "MTLB", 4))
        return refused(error, 1, "Invalid library file");
    StubLibrary *made = [StubLibrary new];
    made->source = strdup(data->bytes + 4);
    return made;
}
- (StubPipeline *)newComputePipelineStateWithFunction:(StubFunction *)function error:(id *)error
{
    StubPipeline *made = [StubPipeline new];
    made->kernel = function->kernel;
    return made;
}
- (void)dealloc
{
    if (self)
        stub_abort("a device was released once too often");
    [super dealloc];
}
@end

static StubDevice *devices[DEVICES];
static pthread_once_t made = PTHREAD_ONCE_INIT;

/* Devices are there for good, so they are not counted. Classes are not there yet while the library is loaded. */
static void make_devices(void)
{
    static const struct { const char *called; NSUInteger identity; BOOL unified; } SORTS[] = {
        {"Stub M1", 0x100000abcUL, YES}, {"Stub Discrete", 0x100000defUL, NO}, {"Stub External", 0x100000fffUL, NO},
    };
    for (int index = 0; index < DEVICES; index++) {
        devices[index] = class_createInstance(objc_getClass("StubDevice"), 0);
        [devices[index] retain];
        int sort = index < 3 ? index : 2;   /* the third, and more like it */
        devices[index]->called = SORTS[sort].called;
        devices[index]->identity = SORTS[sort].identity + (NSUInteger)(index - sort);
        devices[index]->unified = SORTS[sort].unified;
    }
}

/* Which device an object is of: the default one is 0, the others follow as they are listed; -1 for none. */
static int device_of(id object)
{
    const char *name = object_getClassName(object);
    id device = nil;
    if (!strcmp(name, "StubDevice"))
        device = object;
    else if (!strcmp(name, "StubBuffer"))
        device = ((StubBuffer *)object)->device;
    else if (!strcmp(name, "StubCommandQueue"))
        device = ((StubCommandQueue *)object)->device;
    else if (!strcmp(name, "StubCommandBuffer"))
        return device_of(((StubCommandBuffer *)object)->queue);
    else if (!strcmp(name, "StubBlitEncoder") || !strcmp(name, "StubComputeEncoder"))
        return device_of(((StubEncoder *)object)->buffer);
    for (int at = 0; device && at < DEVICES; at++)
        if (devices[at] == device)
            return at ? device_count - at : 0;
    return -1;
}

/* How many references to the devices there are beyond the stub's own. */
long stub_device_references(void)
{
    long sum = 0;
    pthread_once(&made, make_devices);
    for (int at = 0; at < DEVICES; at++)
        sum += *(int *)((char *)devices[at] + sizeof(Class)) - 1;
    return sum;
}

id MTLCreateSystemDefaultDevice(void)
{
    pthread_once(&made, make_devices);
    return has_default && device_count ? [devices[0] retain] : nil;
}

/* The default device comes last: nothing says that it is the first. */
id MTLCopyAllDevices(void)
{
    pthread_once(&made, make_devices);
    NSArray *all = [NSArray new];
    for (int at = lists ? device_count - 1 : -1; at >= 0; at--)
        [all add:devices[at]];
    return all;
}

/* Every way in which arguments and results travel, in one class. */
@interface StubProbe : NSObject
@end
@implementation StubProbe
+ (double)sum:(double)a float:(float)b int:(int)c size:(MTLSize)d range:(NSRange)e long:(long)f byte:(uint8_t)g
{
    return a + b + c + (double)(d.width + 2 * d.height + 3 * d.depth) + (double)(e.location + 2 * e.length)
           + (double)f + g;
}
+ (MTLSize)sizeOf:(NSUInteger)first and:(NSUInteger)second { return (MTLSize){first, second, first + second}; }
+ (NSRange)rangeOf:(NSUInteger)first and:(NSUInteger)second { return (NSRange){first, second}; }
+ (float)half:(float)value { return value / 2; }
+ (long double)third:(long double)value { return value / 3; }
+ (BOOL)isOdd:(int8_t)value { return value % 2 != 0; }
@end
