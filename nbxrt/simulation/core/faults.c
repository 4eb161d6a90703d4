/* Faults and delays that a test asks for, by the environment or by control functions. */
#include <time.h>

#include "state.h"

enum { MOST_FAULTS = 64 };

/* The first-th call of what `name` names, and with `onward` every later one, answers `kind`. */
struct fault { char name[160]; int device; unsigned long first, seen; int onward, kind; };
static struct fault faults[MOST_FAULTS];
static int fault_count;

struct delay { char name[160]; unsigned long microseconds; };
static struct delay delays[MOST_FAULTS];
static int delay_count;
static unsigned long mended;                            /* how often all of this was forgotten */
enum { LOOK_US = 1000 };

enum { NOT_UNDERSTOOD = -1, CANNOT_FAIL = -2 };

void sim_complain(const char *what, const char *text, int why)
{
    const char *said = why == CANNOT_FAIL ? "nothing here fails by that name" : "not understood";
    fprintf(stderr, "nbxrt simulation: %s: %s: %s\n", what, text, said);
}

void sim_each_part(const char *name, int (*use)(const char *))
{
    const char *value = getenv(name);
    char text[1024];
    if (!value)
        return;
    snprintf(text, sizeof text, "%s", value);
    for (char *next = NULL, *part = strtok_r(text, ",", &next); part; part = strtok_r(NULL, ",", &next)) {
        int why = use(part);
        if (why)
            sim_complain(name, part, why);
    }
}

void sim_faults_from_environment(void)
{
    sim_each_part("NBXRT_SIM_FAIL", sim_add_fault);
    sim_each_part("NBXRT_SIM_SLEEP_US", sim_add_delay);
}

static int kind_of(const char *word)
{
    for (int kind = 1; kind < KIND_COUNT; kind++)
        if (!strcmp(word, kind_names[kind]))
            return kind;
    return -1;
}

/* What follows the last colon, which ends the text before it: a selector has colons of its own. */
static char *after_last_colon(char *text)
{
    char *colon = strrchr(text, ':');
    if (!colon || colon == text)
        return NULL;
    *colon = 0;
    return colon + 1;
}

/* Calls of a role are ROLE.CALL, as every simulation has them. */
static int can_fail(const char *name)
{
    static const char *const beside[] = {"*", "context", "work", NULL};
    for (const char *const *known = beside; *known; known++)
        if (!strcmp(*known, name))
            return 1;
    for (const char *const *known = sim_names; *known; known++)
        if (!strcmp(*known, name))
            return 1;
    return strchr(name, '.') != NULL;
}

/* OPERATION[@DEVICE]:N[+]:KIND */
int sim_add_fault(const char *text)
{
    struct fault fault = {.device = -1};
    char *number, *word, *end;
    text += strspn(text, " ");
    if (fault_count == MOST_FAULTS || strlen(text) >= sizeof fault.name)
        return NOT_UNDERSTOOD;
    strcpy(fault.name, text);
    if (!(word = after_last_colon(fault.name)) || !(number = after_last_colon(fault.name)))
        return NOT_UNDERSTOOD;
    word[strcspn(word, " \t")] = 0;
    char *at = strchr(fault.name, '@');
    if (at) {
        *at = 0;
        fault.device = atoi(at + 1);
    }
    fault.first = strtoul(number, &end, 10);
    fault.onward = *end == '+';
    fault.kind = kind_of(word);
    if (end == number || fault.first < 1 || fault.kind < 0)
        return NOT_UNDERSTOOD;
    if (!can_fail(fault.name))
        return CANNOT_FAIL;
    faults[fault_count++] = fault;
    return 0;
}

void sim_forget_faults(void)
{
    fault_count = delay_count = 0;
    mended++;
}

int sim_fault(const char *name, const char *symbol, int device)
{
    int kind = KIND_SUCCESS;
    for (int i = 0; i < fault_count; i++) {
        struct fault *fault = &faults[i];
        int is_named = symbol && (!strcmp(fault->name, symbol) || !strcmp(fault->name, "*"));
        if (!is_named && strcmp(fault->name, name))
            continue;
        if (fault->device >= 0 && fault->device != device)
            continue;
        fault->seen++;
        if (!kind && (fault->seen == fault->first || (fault->onward && fault->seen > fault->first)))
            kind = fault->kind;
    }
    return kind;
}

/* OPERATION:MICROSECONDS */
int sim_add_delay(const char *text)
{
    struct delay delay;
    char *number, *end;
    text += strspn(text, " ");
    if (delay_count == MOST_FAULTS || strlen(text) >= sizeof delay.name)
        return NOT_UNDERSTOOD;
    strcpy(delay.name, text);
    if (!(number = after_last_colon(delay.name)))
        return NOT_UNDERSTOOD;
    delay.microseconds = strtoul(number, &end, 10);
    if (end == number || *end)
        return NOT_UNDERSTOOD;
    delays[delay_count++] = delay;
    return 0;
}

/* The lock is given back while the call sleeps; it goes on at once when its delay is forgotten. */
void sim_sleep_before(const char *name, const char *symbol)
{
    unsigned long microseconds = 0;
    for (int i = 0; i < delay_count; i++)
        if (!strcmp(delays[i].name, name) || !strcmp(delays[i].name, symbol))
            microseconds += delays[i].microseconds;
    uint64_t now = sim_now(), end = now + (uint64_t)microseconds * 1000, before = mended;
    for (; now < end && mended == before; now = sim_now()) {
        uint64_t left = (end - now + 999) / 1000;
        pthread_mutex_unlock(&sim_lock);
        usleep(left < LOOK_US ? (useconds_t)left : LOOK_US);
        pthread_mutex_lock(&sim_lock);
    }
}

EXPORTED int nbxrt_sim_fail(const char *text)
{
    pthread_mutex_lock(&sim_lock);
    sim_settle();
    int kind = sim_add_fault(text);
    pthread_mutex_unlock(&sim_lock);
    return kind;
}

EXPORTED int nbxrt_sim_sleep(const char *text)
{
    pthread_mutex_lock(&sim_lock);
    sim_settle();
    int kind = sim_add_delay(text);
    pthread_mutex_unlock(&sim_lock);
    return kind;
}
