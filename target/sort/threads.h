/* How many threads of a target extract and create shards: pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sort_threads_phase {
    unsigned least, of_each_disk;
};

/* One that extracts reads one disk; one that creates waits for records of other targets, and then
 * for its disk, which the others have meanwhile. */
extern const struct sort_threads_phase sort_threads_extracting, sort_threads_creating;

/* What the request asks for of each disk; 0: it leaves it to the target. */
unsigned sort_threads_of(const struct sort_threads_phase *p, unsigned asked, unsigned disks,
                         long cpus);

/* Each that creates reads from every other target at once, all targets do so, and a target refuses
 * more than so many connections (connections_max), which would end the job: half of them are for
 * this.  At least one, at most `wanted`. */
unsigned sort_threads_create(unsigned wanted, size_t targets, uint64_t connections_max);
