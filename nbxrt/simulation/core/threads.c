/* Time, threads, and what a fork does to the simulator's lock. */
#include <time.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include "state.h"

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t sim_changed = PTHREAD_COND_INITIALIZER;

uint64_t sim_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static _Thread_local struct thread this_thread;

struct thread *sim_thread(void)
{
    if (!this_thread.id) {
#if defined(__linux__)
        this_thread.id = (long)syscall(SYS_gettid);
#else
        this_thread.id = (long)(uintptr_t)pthread_self();
#endif
    }
    return &this_thread;
}

void sim_wait_changed(unsigned milliseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&sim_changed, &sim_lock, &until);
}

/* A child must not inherit the lock from a thread that it does not have. */
static void before_fork(void) { pthread_mutex_lock(&sim_lock); }
static void after_fork_in_parent(void) { pthread_mutex_unlock(&sim_lock); }
static void after_fork_in_child(void)
{
    pthread_mutex_unlock(&sim_lock);
    this_thread.id = 0;
}

void sim_survive_forks(void)
{
    static int prepared;
    if (!prepared)
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    prepared = 1;
}
