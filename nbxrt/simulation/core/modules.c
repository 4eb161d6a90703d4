/* Modules, kernels and their launches. An image is text behind a magic line, one thing a line:

       nbxrt simulated module
       kernel NAME SIZE…            a kernel, and the size in bytes of each argument, `pointer`, or `local`: its own
                                    room in the memory that a block shares
       kernel NAME SIZE… = store    it writes its second argument to element i of its first, for every thread i
       kernel NAME SIZE… = add      of (a, b, out, n): out[i] = a[i] + b[i] for every thread i below n, of 32-bit numbers
       global NAME BYTES            a variable in device memory
*/
#include "state.h"

static const char magic[] = "nbxrt simulated module";
enum { MOST_THREADS = 1024, USUAL_SHARED = 48 << 10 };

struct function {
    struct function *next;
    struct module *module;
    uint64_t handle;
    char name[128], body[16];
    int count, dynamic_shared, attributes[FUNCTION_ATTRIBUTE_COUNT];
    size_t sizes[MOST_ARGUMENTS];
    char kinds[MOST_ARGUMENTS];
    unsigned char *given[MOST_ARGUMENTS];   /* arguments that were set one by one, and the block */
    unsigned local[MOST_ARGUMENTS], block[3];
    int is_copy;                            /* it was made for one caller, who releases it */
};

enum { KIND_OF_VALUE, KIND_OF_POINTER, KIND_OF_LOCAL };

struct global { struct global *next; char name[128]; uint64_t address, nbytes; };

struct module { int device, fault; struct function *functions; struct global *globals; };

static struct launch_log { struct launch_log *next; uint64_t stream; struct launch *launch; } *done, **done_end = &done;
static void (*on_launch)(const char *name, const unsigned *grid, const unsigned *block, void *const *arguments,
                         void *data);
static void *on_launch_data;
char sim_architecture[256];
static size_t (*on_image)(const void *image, char *text, size_t room, void *data);
static void *on_image_data;

/* Reading an image. */

static void add_argument(struct function *function, const char *word)
{
    if (function->count == MOST_ARGUMENTS)
        return;
    int is_pointer = !strcmp(word, "pointer"), is_local = !strcmp(word, "local");
    function->kinds[function->count] = is_pointer ? KIND_OF_POINTER : is_local ? KIND_OF_LOCAL : KIND_OF_VALUE;
    function->sizes[function->count++] = is_pointer ? sizeof(uint64_t) : (size_t)strtoull(word, NULL, 10);
}

static int add_kernel(struct module *module, char *words)
{
    struct function *function = calloc(1, sizeof *function);
    char *next = NULL, *word = strtok_r(words, " \t\r", &next);
    if (!word) {
        free(function);
        return KIND_INVALID_VALUE;
    }
    snprintf(function->name, sizeof function->name, "%s", word);
    while ((word = strtok_r(NULL, " \t\r", &next)) && strcmp(word, "="))
        add_argument(function, word);
    if (word && (word = strtok_r(NULL, " \t\r", &next)))
        snprintf(function->body, sizeof function->body, "%s", word);
    function->attributes[FUNCTION_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = MOST_THREADS;
    function->attributes[FUNCTION_ATTRIBUTE_REGISTERS] = 32;
    function->dynamic_shared = USUAL_SHARED;
    function->module = module;
    function->next = module->functions;
    module->functions = function;
    return KIND_SUCCESS;
}

static int add_global(struct module *module, const char *words)
{
    char name[128];
    unsigned long long nbytes;
    struct block *block;
    if (sscanf(words, "%127s %llu", name, &nbytes) != 2 || !nbytes)
        return KIND_INVALID_VALUE;
    int kind = sim_block_new(FROM_MODULE, module->device, nbytes, &block);
    if (kind)
        return kind;
    struct global *global = calloc(1, sizeof *global);
    snprintf(global->name, sizeof global->name, "%s", name);
    global->address = block->address;
    global->nbytes = nbytes;
    global->next = module->globals;
    module->globals = global;
    return KIND_SUCCESS;
}

static int add_line(struct module *module, char *line)
{
    while (*line == ' ' || *line == '\t')
        line++;
    if (!strncmp(line, "kernel ", 7))
        return add_kernel(module, line + 7);
    if (!strncmp(line, "global ", 7))
        return add_global(module, line + 7);
    return *line && *line != '\r' ? KIND_INVALID_VALUE : KIND_SUCCESS;
}

static void release_function(struct function *function)
{
    if (function->handle)
        sim_handle_drop(function->handle);
    for (int i = 0; i < function->count; i++)
        free(function->given[i]);
    free(function);
}

static void release_module(struct module *module)
{
    for (struct function *function = module->functions, *next; function; function = next) {
        next = function->next;
        release_function(function);
    }
    for (struct global *global = module->globals, *next; global; global = next) {
        next = global->next;
        struct block *block = sim_block_of(global->address);
        if (block)
            sim_block_release(block);
        free(global);
    }
    free(module);
}

/* The text of an image: its own, or what a test's reader makes of a real binary; NULL when it is no module. */
static char *text_of(const void *image, size_t nbytes)
{
    enum { ROOM = 1 << 16 };
    if (!strncmp(image, magic, nbytes < sizeof magic - 1 ? nbytes : sizeof magic - 1))
        return strndup(image, nbytes);
    if (!on_image)
        return NULL;
    char *text = calloc(ROOM + 1, 1);
    pthread_mutex_unlock(&sim_lock);    /* as for `on_launch` below */
    sim_thread()->in_callback = 1;
    size_t length = on_image(image, text, ROOM, on_image_data);
    sim_thread()->in_callback = 0;
    pthread_mutex_lock(&sim_lock);
    if (length && !strncmp(text, magic, sizeof magic - 1))
        return text;
    free(text);
    return NULL;
}

void sim_on_image(void *function, void *data)
{
    memcpy(&on_image, &function, sizeof on_image);
    on_image_data = data;
}

static struct module *read_module(const void *image, size_t nbytes)
{
    char *text = text_of(image, nbytes), *next = NULL;
    struct module *made = calloc(1, sizeof *made);
    made->device = sim_current();
    made->fault = text ? KIND_SUCCESS : KIND_NO_BINARY;
    if (text)
        strtok_r(text, "\n", &next);
    for (char *line; !made->fault && (line = strtok_r(NULL, "\n", &next));)
        made->fault = add_line(made, line);
    free(text);
    return made;
}

int sim_module_load(const void *image, size_t image_nbytes, uint64_t *module)
{
    struct module *made = read_module(image, image_nbytes);
    int kind = made->fault;
    if (kind)
        release_module(made);
    else
        *module = sim_handle_new(HANDLE_MODULE, made);
    return kind;
}

/* Code that is built by another call, which says what is wrong with it. */
int sim_module_create(const void *image, size_t image_nbytes, uint64_t *module)
{
    *module = sim_handle_new(HANDLE_MODULE, read_module(image, image_nbytes));
    return KIND_SUCCESS;
}

int sim_module_build(uint64_t module)
{
    const struct module *built = sim_handle_get(HANDLE_MODULE, module);
    return !built ? KIND_INVALID_HANDLE : built->fault ? KIND_NO_BINARY : KIND_SUCCESS;
}

int sim_module_log(uint64_t module, struct sim_text *log)
{
    const struct module *asked = sim_handle_get(HANDLE_MODULE, module);
    if (!asked)
        return KIND_INVALID_HANDLE;
    if (asked->fault)
        snprintf(log->text, sizeof log->text, "1:1: error: this is no simulated module");
    return KIND_SUCCESS;
}

int sim_device_of_module(uint64_t module)
{
    const struct module *asked = sim_handle_get(HANDLE_MODULE, module);
    return asked ? asked->device : -1;
}

int sim_module_unload(uint64_t module)
{
    struct module *unloaded = sim_handle_get(HANDLE_MODULE, module);
    if (!unloaded)
        return KIND_INVALID_HANDLE;
    sim_handle_drop(module);
    sim_wait_device(unloaded->device);
    release_module(unloaded);
    return KIND_SUCCESS;
}

static struct function *function_of(const struct module *module, const char *name)
{
    struct function *found = module->functions;
    while (found && (found->is_copy || strcmp(found->name, name)))
        found = found->next;
    return found;
}

int sim_module_get_function(uint64_t module, const char *name, uint64_t *function)
{
    const struct module *asked = sim_handle_get(HANDLE_MODULE, module);
    if (!asked)
        return KIND_INVALID_HANDLE;
    struct function *found = function_of(asked, name);
    if (!found)
        return KIND_NOT_FOUND;
    if (!found->handle)
        found->handle = sim_handle_new(HANDLE_FUNCTION, found);
    *function = found->handle;
    return KIND_SUCCESS;
}

/* A kernel of the caller's own: it keeps the arguments that are set one by one. */
int sim_function_create(uint64_t module, const char *name, uint64_t *function)
{
    struct module *asked = sim_handle_get(HANDLE_MODULE, module);
    if (!asked)
        return KIND_INVALID_HANDLE;
    const struct function *found = function_of(asked, name);
    if (!found)
        return asked->fault ? KIND_NO_BINARY : KIND_NOT_FOUND;
    struct function *made = malloc(sizeof *made);
    *made = *found;
    made->is_copy = 1;
    made->handle = *function = sim_handle_new(HANDLE_FUNCTION, made);
    made->next = asked->functions;
    asked->functions = made;
    return KIND_SUCCESS;
}

int sim_function_release(uint64_t function)
{
    struct function *released = sim_handle_get(HANDLE_FUNCTION, function);
    if (!released)
        return KIND_INVALID_HANDLE;
    for (struct function **place = &released->module->functions; *place; place = &(*place)->next)
        if (*place == released) {
            *place = released->next;
            break;
        }
    release_function(released);
    return KIND_SUCCESS;
}

int sim_device_of_function(uint64_t function)
{
    const struct function *asked = sim_handle_get(HANDLE_FUNCTION, function);
    return asked ? asked->module->device : -1;
}

int sim_function_count(uint64_t function, unsigned *count)
{
    const struct function *asked = sim_handle_get(HANDLE_FUNCTION, function);
    if (!asked)
        return KIND_INVALID_HANDLE;
    *count = (unsigned)asked->count;
    return KIND_SUCCESS;
}

int sim_function_kind(uint64_t function, unsigned index, unsigned *kind)
{
    const struct function *asked = sim_handle_get(HANDLE_FUNCTION, function);
    if (!asked)
        return KIND_INVALID_HANDLE;
    if (index >= (unsigned)asked->count)
        return KIND_INVALID_VALUE;
    *kind = (unsigned)asked->kinds[index];
    return KIND_SUCCESS;
}

/* The first type of the argument's size; where a kernel takes an address, one that has no size. */
int sim_function_type(uint64_t function, unsigned index, struct sim_text *type_name)
{
    const struct function *asked = sim_handle_get(HANDLE_FUNCTION, function);
    const struct sim_type *type = sim_types;
    if (!asked)
        return KIND_INVALID_HANDLE;
    if (index >= (unsigned)asked->count)
        return KIND_INVALID_VALUE;
    while (type->nbytes && type->nbytes != asked->sizes[index])
        type++;
    int is_value = asked->kinds[index] == KIND_OF_VALUE && type->nbytes;
    snprintf(type_name->text, sizeof type_name->text, "%s", is_value ? type->name : "void*");
    return KIND_SUCCESS;
}

int sim_module_get_global(uint64_t module, const char *name, uint64_t *address, uint64_t *nbytes)
{
    const struct module *asked = sim_handle_get(HANDLE_MODULE, module);
    if (!asked)
        return KIND_INVALID_HANDLE;
    for (const struct global *found = asked->globals; found; found = found->next)
        if (!strcmp(found->name, name)) {
            *address = found->address;
            *nbytes = found->nbytes;
            return KIND_SUCCESS;
        }
    return KIND_NOT_FOUND;
}

int sim_function_get_attribute(int attribute, uint64_t function, int *value)
{
    const struct function *asked = sim_handle_get(HANDLE_FUNCTION, function);
    if (!asked)
        return KIND_INVALID_HANDLE;
    int is_dynamic = attribute == FUNCTION_ATTRIBUTE_MAX_DYNAMIC_SHARED_MEMORY;
    *value = is_dynamic ? asked->dynamic_shared : asked->attributes[attribute];
    return KIND_SUCCESS;
}

int sim_function_parameter(uint64_t function, size_t index, size_t *offset, size_t *size)
{
    const struct function *found = sim_handle_get(HANDLE_FUNCTION, function);
    if (!found)
        return KIND_INVALID_HANDLE;
    if (index >= (size_t)found->count)
        return KIND_INVALID_VALUE;
    *offset = 8 * index;
    *size = found->sizes[index];
    return KIND_SUCCESS;
}

int sim_function_set_attribute(uint64_t function, int attribute, int value)
{
    struct function *changed = sim_handle_get(HANDLE_FUNCTION, function);
    if (!changed)
        return KIND_INVALID_HANDLE;
    if (attribute == FUNCTION_ATTRIBUTE_PREFERRED_SHARED_MEMORY || attribute == FUNCTION_ATTRIBUTE_NON_PORTABLE_CLUSTERS) {
        changed->attributes[attribute] = value;
        return KIND_SUCCESS;
    }
    int most = sim_devices[changed->module->device].attributes[DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN];
    if (attribute != FUNCTION_ATTRIBUTE_MAX_DYNAMIC_SHARED_MEMORY || value < 0 || value > most)
        return KIND_INVALID_VALUE;
    changed->dynamic_shared = value;
    return KIND_SUCCESS;
}

/* A description of a tensor that shows what it was made of: address, ones, extents, strides, block, steps, words. */
int sim_tensor_map_encode(uint64_t room, int element, unsigned rank, uint64_t address, const void *extents,
                          size_t extents_nbytes, const void *strides, size_t strides_nbytes, const void *block,
                          size_t block_nbytes, const void *steps, size_t steps_nbytes, int swizzle, int fill)
{
    unsigned char *map = (unsigned char *)(uintptr_t)room;
    (void)extents_nbytes, (void)strides_nbytes, (void)block_nbytes, (void)steps_nbytes;
    if (room % 64 || address % 16 || !rank || rank > 5)
        return KIND_INVALID_VALUE;
    memset(map, 0, 128);
    memcpy(map, &address, 8);
    memset(map + 8, 255, 8);
    memcpy(map + 16, extents, 8 * rank);
    memcpy(map + 56, strides, 8 * (rank - 1));
    memcpy(map + 88, block, 4 * rank);
    for (unsigned i = 0; i < rank; i++)
        map[108 + i] = ((const unsigned char *)steps)[4 * i];
    map[113] = (unsigned char)element, map[114] = (unsigned char)rank;
    map[115] = (unsigned char)swizzle, map[116] = (unsigned char)fill;
    return KIND_SUCCESS;
}

/* Launches. */

static uint64_t volume(const unsigned *extents)
{
    return (uint64_t)extents[0] * extents[1] * extents[2];
}

static int is_launchable(const struct function *function, const unsigned *grid, const unsigned *block, unsigned shared)
{
    int threads = function->attributes[FUNCTION_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
    if (!volume(grid) || !volume(block) || volume(block) > (uint64_t)threads || block[2] > 64)
        return 0;
    return grid[0] <= INT32_MAX && grid[1] <= 65535 && grid[2] <= 65535 && shared <= (unsigned)function->dynamic_shared;
}

static struct launch *new_launch(const struct function *function, const unsigned *grid, const unsigned *block,
                                 unsigned shared, void **arguments)
{
    struct launch *launch = calloc(1, sizeof *launch);
    launch->references = 1;
    launch->function = function->handle;
    launch->device = function->module->device;
    memcpy(launch->name, function->name, sizeof launch->name);
    memcpy(launch->body, function->body, sizeof launch->body);
    memcpy(launch->grid, grid, sizeof launch->grid);
    memcpy(launch->block, block, sizeof launch->block);
    launch->shared = shared;
    launch->count = function->count;
    for (int i = 0; i < launch->count; i++) {
        launch->sizes[i] = function->sizes[i];
        launch->values[i] = malloc(function->sizes[i] + 1);
        memcpy(launch->values[i], arguments[i], function->sizes[i]);
    }
    return launch;
}

void sim_launch_drop(struct launch *launch)
{
    if (--launch->references)
        return;
    for (int i = 0; i < launch->count; i++)
        free(launch->values[i]);
    free(launch);
}

static void add_attributes(struct launch *launch, const char *attributes, unsigned count, const size_t *layout)
{
    launch->attribute_count = count;
    for (unsigned i = 0; i < count; i++) {
        struct launch_attribute *added = &launch->attributes[i];
        memcpy(&added->id, attributes + i * layout[0] + layout[1], sizeof added->id);
        memcpy(added->value, attributes + i * layout[0] + layout[2], sizeof added->value);
    }
}

int sim_launch_kernel(uint64_t function, const unsigned *grid, const unsigned *block, unsigned shared_memory,
                      uint64_t stream, void **arguments)
{
    return sim_launch_with(function, grid, block, shared_memory, stream, arguments, NULL, 0, NULL);
}

int sim_launch_with(uint64_t function, const unsigned *grid, const unsigned *block, unsigned shared_memory,
                    uint64_t stream, void **arguments, const void *attributes, unsigned count, const size_t *layout)
{
    if (count > MOST_LAUNCH_ATTRIBUTES || (count && !attributes))
        return KIND_INVALID_VALUE;
    const struct function *launched = sim_handle_get(HANDLE_FUNCTION, function);
    struct stream *on = sim_stream(stream);
    if (!launched || !on || launched->module->device != sim_current() || on->device != sim_current())
        return KIND_INVALID_HANDLE;
    if (!is_launchable(launched, grid, block, shared_memory) || (launched->count && !arguments))
        return KIND_INVALID_VALUE;
    for (int i = 0; i < launched->count; i++)
        if (!arguments[i])
            return KIND_INVALID_VALUE;
    struct item *item = sim_item(WORK_LAUNCH);
    item->launch = new_launch(launched, grid, block, shared_memory, arguments);
    add_attributes(item->launch, attributes, count, layout);
    return sim_enqueue(on, item);
}

/* Launches whose arguments were set one by one. */

int sim_function_set_argument(uint64_t function, unsigned index, uint64_t nbytes, const void *at, size_t at_nbytes)
{
    struct function *changed = sim_handle_get(HANDLE_FUNCTION, function);
    (void)at_nbytes;
    if (!changed)
        return KIND_INVALID_HANDLE;
    if (index >= (unsigned)changed->count || nbytes != changed->sizes[index])
        return KIND_INVALID_VALUE;
    if (!changed->given[index])
        changed->given[index] = malloc(changed->sizes[index] + 1);
    memcpy(changed->given[index], at, changed->sizes[index]);
    return KIND_SUCCESS;
}

int sim_function_set_pointer(uint64_t function, unsigned index, uint64_t address)
{
    if (address && !sim_block_at(address))
        return KIND_INVALID_VALUE;
    return sim_function_set_argument(function, index, sizeof address, &address, sizeof address);
}

/* A value of a handle's size comes in the same way as a buffer. */
int sim_function_set_buffer(uint64_t function, unsigned index, uint64_t buffer)
{
    const struct function *changed = sim_handle_get(HANDLE_FUNCTION, function);
    int is_pointer = changed && index < (unsigned)changed->count && changed->kinds[index] == KIND_OF_POINTER;
    uint64_t address = is_pointer ? sim_address_behind(buffer, 0, 0) : buffer;
    if (is_pointer && buffer && !address)
        return KIND_INVALID_VALUE;
    return sim_function_set_argument(function, index, sizeof address, &address, sizeof address);
}

int sim_function_set_local(uint64_t function, unsigned index, uint64_t nbytes)
{
    struct function *changed = sim_handle_get(HANDLE_FUNCTION, function);
    if (!changed)
        return KIND_INVALID_HANDLE;
    if (index >= (unsigned)changed->count || changed->kinds[index] != KIND_OF_LOCAL || !nbytes || nbytes > UINT32_MAX)
        return KIND_INVALID_VALUE;
    changed->local[index] = (unsigned)nbytes;
    return sim_function_set_argument(function, index, 0, "", 0);
}

int sim_function_set_block(uint64_t function, unsigned x, unsigned y, unsigned z)
{
    struct function *changed = sim_handle_get(HANDLE_FUNCTION, function);
    if (!changed)
        return KIND_INVALID_HANDLE;
    memcpy(changed->block, (unsigned[]){x, y, z}, sizeof changed->block);
    return volume(changed->block) ? KIND_SUCCESS : KIND_INVALID_VALUE;
}

/* The block is given with the launch, or was set before; the threads of all, where the groups are not given. */
int sim_function_run(uint64_t function, uint64_t stream, unsigned groups_x, unsigned groups_y, unsigned groups_z,
                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned threads_x, unsigned threads_y,
                     unsigned threads_z)
{
    const struct function *run = sim_handle_get(HANDLE_FUNCTION, function);
    if (!run)
        return KIND_INVALID_HANDLE;
    unsigned grid[3] = {groups_x, groups_y, groups_z}, block[3] = {block_x, block_y, block_z};
    const unsigned threads[3] = {threads_x, threads_y, threads_z};
    for (int axis = 0; axis < 3; axis++) {
        block[axis] = block[axis] ? block[axis] : run->block[axis];
        grid[axis] = grid[axis] ? grid[axis] : block[axis] ? threads[axis] / block[axis] : 0;
    }
    unsigned shared = 0;
    for (int i = 0; i < run->count; i++)
        shared += run->local[i];
    return sim_launch_kernel(function, grid, block, shared, stream, (void **)run->given);
}

/* The body `store`: what a kernel that writes where it may not does to its context is seen here. */
static void store(const struct launch *launch, struct stream *stream)
{
    uint64_t address, threads = volume(launch->grid) * volume(launch->block);
    if (launch->count < 2 || launch->sizes[0] != sizeof address)
        return;
    memcpy(&address, launch->values[0], sizeof address);
    size_t size = launch->sizes[1];
    if (sim_range(address, threads * size, SIDE_DEVICE, stream->device, 1)) {
        sim_lose(stream->device, KIND_ILLEGAL_ADDRESS);
        return;
    }
    for (uint64_t i = 0; i < threads; i++)
        memcpy((char *)(uintptr_t)address + i * size, launch->values[1], size);
}

/* The body `add`: what the conformance suite asks of a module. */
static void add(const struct launch *launch, struct stream *stream)
{
    uint64_t at[3], threads = volume(launch->grid) * volume(launch->block);
    uint32_t count;
    if (launch->count != 4 || launch->sizes[3] != sizeof count)
        return;
    memcpy(&count, launch->values[3], sizeof count);
    uint64_t elements = count < threads ? count : threads;
    for (int i = 0; i < 3; i++) {
        if (launch->sizes[i] != sizeof at[i])
            return;
        memcpy(&at[i], launch->values[i], sizeof at[i]);
        if (elements && sim_range(at[i], 4 * elements, SIDE_DEVICE, stream->device, i == 2)) {
            sim_lose(stream->device, KIND_ILLEGAL_ADDRESS);
            return;
        }
    }
    const uint32_t *left = (const uint32_t *)(uintptr_t)at[0], *right = (const uint32_t *)(uintptr_t)at[1];
    for (uint64_t i = 0; i < elements; i++)
        ((uint32_t *)(uintptr_t)at[2])[i] = left[i] + right[i];
}

void sim_launch_run(struct launch *launch, struct stream *stream)
{
    struct launch_log *entry = calloc(1, sizeof *entry);
    entry->stream = stream->handle;
    entry->launch = launch;
    launch->references++;
    *done_end = entry;
    done_end = &entry->next;
    if (!strcmp(launch->body, "store"))
        store(launch, stream);
    if (!strcmp(launch->body, "add"))
        add(launch, stream);
    if (!on_launch)
        return;
    pthread_mutex_unlock(&sim_lock);    /* it may need another lock, which a waiting thread holds */
    sim_thread()->in_callback = 1;
    on_launch(launch->name, launch->grid, launch->block, (void *const *)launch->values, on_launch_data);
    sim_thread()->in_callback = 0;
    pthread_mutex_lock(&sim_lock);
}

void sim_on_launch(void *function, void *data)
{
    memcpy(&on_launch, &function, sizeof on_launch);
    on_launch_data = data;
}

void sim_launches_forget(void)
{
    while (done) {
        struct launch_log *entry = done;
        done = entry->next;
        sim_launch_drop(entry->launch);
        free(entry);
    }
    done_end = &done;
}

static size_t say(char *buffer, size_t size, size_t used, const char *text)
{
    size_t left = used < size ? size - used : 0;
    return used + (size_t)snprintf(left ? buffer + used : NULL, left, "%s", text);
}

/* NAME device stream grid block shared argument… attribute…, arguments in hexadecimal, an attribute as ID:X:Y:Z. */
size_t sim_launches_text(char *buffer, size_t size)
{
    size_t used = 0;
    char text[384];
    for (const struct launch_log *entry = done; entry; entry = entry->next) {
        const struct launch *launch = entry->launch;
        snprintf(text, sizeof text, "%s\t%d\t%llu\t%u,%u,%u\t%u,%u,%u\t%u\t", launch->name, sim_ordinal(launch->device),
                 (unsigned long long)entry->stream, launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0],
                 launch->block[1], launch->block[2], launch->shared);
        used = say(buffer, size, used, text);
        for (int i = 0; i < launch->count; i++) {
            for (size_t byte = 0; byte < launch->sizes[i]; byte++) {
                snprintf(text, sizeof text, "%02x", launch->values[i][byte]);
                used = say(buffer, size, used, text);
            }
            used = say(buffer, size, used, i + 1 < launch->count ? "," : "");
        }
        used = say(buffer, size, used, "\t");
        for (unsigned i = 0; i < launch->attribute_count; i++) {
            const struct launch_attribute *said = &launch->attributes[i];
            snprintf(text, sizeof text, "%s%d:%u:%u:%u", i ? "," : "", said->id, said->value[0], said->value[1],
                     said->value[2]);
            used = say(buffer, size, used, text);
        }
        used = say(buffer, size, used, "\n");
    }
    return used;
}
