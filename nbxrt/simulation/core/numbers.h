/* Elements of collectives. */
#ifndef NBXRT_SIM_NUMBERS_H
#define NBXRT_SIM_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

enum { SIM_MOST_RANKS = 64 };

size_t sim_element_size(int datatype);
/* Element by element over the rows; `to` may be one of them only when it begins where that row does. */
void sim_reduce_rows(int datatype, int reduction, const char *const *rows, int count, uint64_t elements, char *to);

#endif
