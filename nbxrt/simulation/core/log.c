/* The log of calls, in memory and, where NBXRT_SIM_LOG names one, in a file that several processes may write to. */
#include <fcntl.h>

#include "state.h"

enum { LOG_ROOM = 1 << 16 };

struct entry { const char *name, *symbol; long process, thread; int device, kind, code; char text[320]; };
static struct entry *entries;
static size_t entry_count;              /* ever written; the last LOG_ROOM are kept */
static int log_file = -1;

void sim_log_to(const char *path)
{
    if (log_file < 0)
        log_file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
}

/* PROCESS thread operation symbol device kind status arguments, separated by tabs. */
static int line_of(const struct entry *entry, char *buffer, size_t size)
{
    return snprintf(buffer, size, "%ld\t%ld\t%s\t%s\t%d\t%s\t%d\t%s\n", entry->process, entry->thread, entry->name,
                    entry->symbol, entry->device, kind_names[entry->kind], entry->code, entry->text);
}

static void append_to_file(const struct entry *entry)
{
    char line[768];
    int length = line_of(entry, line, sizeof line);
    if (length > 0 && write(log_file, line, (size_t)length) < 0)
        log_file = -1;
}

void sim_log_call(const struct sim_call *call)
{
    if (!entries && !(entries = calloc(LOG_ROOM, sizeof *entries)))
        return;
    struct entry *entry = &entries[entry_count++ % LOG_ROOM];
    *entry = (struct entry){.name = call->name, .symbol = call->symbol, .process = getpid(), .thread = sim_thread()->id,
                            .device = call->device, .kind = call->kind, .code = call->code};
    memcpy(entry->text, call->text, call->length + 1);
    if (log_file >= 0)
        append_to_file(entry);
}

size_t sim_log_text(char *buffer, size_t size)
{
    size_t used = 0, first = entry_count > LOG_ROOM ? entry_count - LOG_ROOM : 0;
    for (size_t i = first; i < entry_count; i++) {
        size_t left = used < size ? size - used : 0;
        used += (size_t)line_of(&entries[i % LOG_ROOM], left ? buffer + used : NULL, left);
    }
    return used;
}

void sim_log_clear(void)
{
    entry_count = 0;
}

void sim_log_from_environment(void)
{
    const char *path = getenv("NBXRT_SIM_LOG");
    if (path && *path)
        sim_log_to(path);
}

EXPORTED size_t nbxrt_sim_log(char *buffer, size_t size)
{
    pthread_mutex_lock(&sim_lock);
    sim_settle();
    size_t length = sim_log_text(buffer, size);
    pthread_mutex_unlock(&sim_lock);
    return length;
}
