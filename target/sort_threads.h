/* How many threads of a target create shards: pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Each reads from every other target at once, all targets do so, and a target refuses more than so many
 * connections (connections_max), which would end the job: half of them are for this.  At least one,
 * at most `wanted`. */
unsigned sort_threads_create(unsigned wanted, size_t targets, uint64_t connections_max);
