/* How far the start of a target is, for the service manager: the files that indexes being built
 * have looked at, and the bytes that they have compared with checksums.  Each message asks for
 * EXTEND_MS more, so that a start which gets on is not ended by TimeoutStartSec, and one that hangs
 * is. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct notify;

enum { START_PROGRESS_EVERY_MS = 5000, START_PROGRESS_EXTEND_MS = 900000 };

struct start_progress {
    struct notify *notify; /* or NULL */
    atomic_ullong files, bytes;
    atomic_ullong said_ms; /* when the last message was sent */
};

void start_progress_begin(struct start_progress *p, struct notify *notify);
/* So many more: for mountpaths_config's on_progress.  Any thread; cheap. */
void start_progress_add(void *progress, unsigned files, size_t bytes);
