#include "target/sort_threads.h"

unsigned sort_threads_create(unsigned wanted, size_t targets, uint64_t connections_max)
{
    uint64_t most = targets > 1 ? connections_max / 2 / (targets - 1) : wanted;
    if (most < 1)
        most = 1;
    return most < wanted ? (unsigned)most : wanted;
}
