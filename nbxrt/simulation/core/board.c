/* The board of a communicator: an unnamed file of the process that made the identity, which others open by its number.

   Nothing is left behind when the last process that has it open ends. A rank that lives holds a lock on its byte of it,
   which the system takes away from a process that dies, also before anybody has asked for its exit status. */
#include <fcntl.h>
#include <sys/mman.h>

#include "board.h"
#include "state.h"

static uint64_t header_bytes(void)
{
    return sim_whole_pages(sizeof(struct board));
}

int sim_board_make(void)
{
#if defined(__linux__)
    int file = memfd_create("nbxrt-simulated-communicator", MFD_CLOEXEC);
    if (file >= 0 && !ftruncate(file, (off_t)1 << 45))
        return file;
    if (file >= 0)
        close(file);
#endif
    return -1;
}

struct board *sim_board_open(int64_t process, int file, int *own_file)
{
    char path[64];
    *own_file = -1;
    if (file < 0)                       /* all ranks are of this process */
        return calloc(1, sizeof(struct board));
    snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)process, file);
    *own_file = open(path, O_RDWR | O_CLOEXEC);
    if (*own_file < 0)
        return NULL;
    void *place = mmap(NULL, header_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, *own_file, 0);
    return place == MAP_FAILED ? NULL : place;
}

void sim_board_close(int own_file)
{
    if (own_file >= 0)
        close(own_file);
}

#if defined(F_OFD_SETLK)
static int lock(int own_file, int command, int rank)
{
    struct flock wanted = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
    return fcntl(own_file, command, &wanted) ? -1 : wanted.l_type != F_UNLCK;
}
#endif

void sim_board_hold(int own_file, int rank)
{
#if defined(F_OFD_SETLK)
    if (own_file >= 0)
        lock(own_file, F_OFD_SETLK, rank);
#else
    (void)own_file, (void)rank;
#endif
}

/* Of a rank of another process: the locks of this one are its own. */
int sim_board_is_held(int own_file, int rank)
{
#if defined(F_OFD_SETLK)
    return own_file < 0 || lock(own_file, F_OFD_GETLK, rank) != 0;
#else
    (void)own_file, (void)rank;
    return 1;
#endif
}

uint64_t sim_board_put(struct board *board, int own_file, const void *data, uint64_t nbytes)
{
    uint64_t offset = header_bytes() + atomic_fetch_add(&board->end, sim_whole_pages(nbytes));
    for (uint64_t done = 0; done < nbytes;) {
        ssize_t written = pwrite(own_file, (const char *)data + done, nbytes - done, (off_t)(offset + done));
        if (written <= 0)
            break;
        done += (uint64_t)written;
    }
    return offset;
}

int sim_board_get(int own_file, uint64_t offset, void *data, uint64_t nbytes)
{
    for (uint64_t done = 0; done < nbytes;) {
        ssize_t came = pread(own_file, (char *)data + done, nbytes - done, (off_t)(offset + done));
        if (came <= 0)
            return -1;
        done += (uint64_t)came;
    }
    return 0;
}

void sim_board_forget(int own_file, uint64_t offset, uint64_t nbytes)
{
#if defined(FALLOC_FL_PUNCH_HOLE)
    if (nbytes)
        fallocate(own_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)sim_whole_pages(nbytes));
#else
    (void)own_file, (void)offset, (void)nbytes;
#endif
}
