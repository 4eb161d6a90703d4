/* Handles: numbers that look like pointers, tell their type, and are never given out twice. */
#include "state.h"

const char *const sim_handle_names[HANDLE_TYPE_COUNT] = {
    "", "stream", "event", "graph", "graph_exec", "allocation", "module", "function", "communicator", "object",
    "buffer"};
static struct { enum handle_type type; void *object; } *table;
static size_t table_count, table_room;

static uint64_t handle_number(enum handle_type type, size_t place)
{
    return 0x510000000000 + ((uint64_t)type << 36) + 16 * (uint64_t)(place + 1);
}

uint64_t sim_handle_new(enum handle_type type, void *object)
{
    if (table_count == table_room) {
        table_room = table_room ? 2 * table_room : 256;
        table = realloc(table, table_room * sizeof *table);
    }
    table[table_count].type = type;
    table[table_count].object = object;
    return handle_number(type, table_count++);
}

static size_t place_of(uint64_t handle)
{
    return (size_t)((handle & 0xfffffffff) / 16) - 1;
}

void *sim_handle_get(enum handle_type type, uint64_t handle)
{
    size_t place = place_of(handle);
    if (place >= table_count || table[place].type != type || handle_number(type, place) != handle)
        return NULL;
    return table[place].object;
}

void sim_handle_drop(uint64_t handle)
{
    size_t place = place_of(handle);
    table[place].type = HANDLE_NONE;
    table[place].object = NULL;
}

void sim_handle_each(void (*visit)(enum handle_type type, uint64_t handle, void *object, void *data), void *data)
{
    for (size_t place = 0; place < table_count; place++)
        if (table[place].type)
            visit(table[place].type, handle_number(table[place].type, place), table[place].object, data);
}
