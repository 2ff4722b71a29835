#include "target/node/start_progress.h"

#include <stdio.h>

#include "common/clock.h"
#include "net/notify.h"

void start_progress_begin(struct start_progress *p, struct notify *notify)
{
    p->notify = notify;
    atomic_init(&p->files, 0);
    atomic_init(&p->bytes, 0);
    atomic_init(&p->said_ms, clock_ms());
    notify_progress(notify, START_PROGRESS_EXTEND_MS, "opening the mountpaths");
}

/* By the thread that takes the turn, once in EVERY_MS. */
static void say(struct start_progress *p, unsigned long long files, unsigned long long bytes)
{
    char text[120];
    uint64_t now_ms = clock_ms();
    unsigned long long said_ms = atomic_load(&p->said_ms);
    if (now_ms < said_ms + START_PROGRESS_EVERY_MS ||
        !atomic_compare_exchange_strong(&p->said_ms, &said_ms, now_ms))
        return;
    int len = snprintf(text, sizeof text, "building the index: %llu files looked at", files);
    if (bytes > 0)
        snprintf(text + len, sizeof text - (size_t)len, ", %llu MiB compared with checksums",
                 bytes >> 20);
    notify_progress(p->notify, START_PROGRESS_EXTEND_MS, text);
}

void start_progress_add(void *progress, unsigned files, size_t bytes)
{
    struct start_progress *p = progress;
    unsigned long long all_files = atomic_fetch_add(&p->files, files) + files;
    unsigned long long all_bytes = atomic_fetch_add(&p->bytes, bytes) + bytes;
    if (p->notify != NULL)
        say(p, all_files, all_bytes);
}
