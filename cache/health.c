#include "cache/health.h"

#include <errno.h>
#include <stddef.h>

bool health_may(struct health *h, uint64_t now_ms)
{
    if (h->state == HEALTH_GOOD)
        return true;
    if (h->state == HEALTH_OUT || now_ms - h->tried_ms < HEALTH_TRY_MS)
        return false;
    h->tried_ms = now_ms;
    return true;
}

static void note_good(struct health *h, bool failed, uint64_t now_ms)
{
    if (!failed)
        return;
    if (h->errors > 0 && now_ms - h->error_ms >= HEALTH_CLEAN_MS)
        h->errors = 0;
    if (h->errors++ == 0)
        h->error_ms = now_ms; /* the minute begins */
    if (h->errors < HEALTH_ERRORS)
        return;
    *h = (struct health){
        .state = HEALTH_SICK, .error_ms = now_ms, .sick_ms = now_ms, .tried_ms = now_ms};
}

static void note_sick(struct health *h, bool failed, uint64_t now_ms)
{
    if (failed)
        h->error_ms = now_ms;
    else if (now_ms - h->error_ms >= HEALTH_CLEAN_MS)
        *h = (struct health){.state = HEALTH_GOOD};
    if (h->state == HEALTH_SICK && now_ms - h->sick_ms >= HEALTH_OUT_MS)
        h->state = HEALTH_OUT;
}

bool health_note(struct health *h, bool failed, uint64_t now_ms)
{
    enum health_state before = h->state;
    if (before == HEALTH_GOOD)
        note_good(h, failed, now_ms);
    else if (before == HEALTH_SICK)
        note_sick(h, failed, now_ms);
    return h->state != before;
}

bool health_is_of_disk(int rc)
{
    static const int others[] = {0,      -ENOENT, -EBADMSG, -EMFILE, -ENFILE, -ENOMEM,
                                 -EINTR, -EAGAIN, -EACCES,  -EPERM,  -ENOSPC, -EDQUOT};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (rc == others[i])
            return false;
    }
    return true;
}

const char *health_name(enum health_state state)
{
    static const char *const names[] = {"good", "sick", "out"};
    return names[state];
}
