#include "target/sort/threads.h"

const struct sort_threads_phase sort_threads_extracting = {.least = 2, .of_each_disk = 1};
const struct sort_threads_phase sort_threads_creating = {.least = 4, .of_each_disk = 2};

unsigned sort_threads_of(const struct sort_threads_phase *p, unsigned asked, unsigned disks,
                         long cpus)
{
    unsigned n = p->of_each_disk * disks;
    if (asked > 0)
        return asked * disks;
    if (n < p->least)
        n = p->least;
    return cpus > (long)n ? (unsigned)cpus : n;
}

unsigned sort_threads_create(unsigned wanted, size_t targets, uint64_t connections_max)
{
    uint64_t most = targets > 1 ? connections_max / 2 / (targets - 1) : wanted;
    if (most < 1)
        most = 1;
    return most < wanted ? (unsigned)most : wanted;
}
