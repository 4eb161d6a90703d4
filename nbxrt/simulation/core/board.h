/* What all ranks of a communicator see of each other, in whatever process they are. */
#ifndef NBXRT_SIM_BOARD_H
#define NBXRT_SIM_BOARD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "numbers.h"

enum { SIM_BOARD_ROOM = 16 };           /* calls that a rank may be ahead of the slowest */

/* A call that a rank's stream has come to, and where its elements are. */
struct post {
    _Atomic uint64_t order;             /* of the call among its kind, from 1; written last */
    int32_t operation, datatype, reduction, root;
    uint64_t count, offset, nbytes;
};

struct board {
    _Atomic int count, joined, broken;
    _Atomic int devices[SIM_MOST_RANKS];                    /* physical number and 1; 0: not joined */
    _Atomic int64_t owners[SIM_MOST_RANKS];                 /* process of each rank */
    _Atomic int leaving[SIM_MOST_RANKS];
    _Atomic uint64_t end;                                   /* of the elements behind the board */
    _Atomic uint64_t taken[SIM_MOST_RANKS];                 /* calls whose elements the rank has */
    _Atomic uint64_t messages_taken[SIM_MOST_RANKS][SIM_MOST_RANKS];
    struct post posts[SIM_MOST_RANKS][SIM_BOARD_ROOM];
    struct post messages[SIM_MOST_RANKS][SIM_MOST_RANKS][SIM_BOARD_ROOM];
};

int sim_board_make(void);               /* a file for one, -1 where processes cannot share */
struct board *sim_board_open(int64_t process, int file, int *own_file);
void sim_board_close(int own_file);
void sim_board_hold(int own_file, int rank);                /* for as long as this process lives */
int sim_board_is_held(int own_file, int rank);
/* Elements behind the board: room for them, writing, reading (0: all came), giving up. */
uint64_t sim_board_put(struct board *board, int own_file, const void *data, uint64_t nbytes);
int sim_board_get(int own_file, uint64_t offset, void *data, uint64_t nbytes);
void sim_board_forget(int own_file, uint64_t offset, uint64_t nbytes);

#endif
