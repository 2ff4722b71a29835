#include "proxy/primary/health_verdict.h"

#include <stddef.h>

bool health_verdict_holds(const struct health_verdict *v, uint64_t term, uint64_t version,
                          uint64_t now_ms)
{
    return v->colour != NULL && v->term == term && v->version == version &&
           now_ms >= v->judged_ms && now_ms - v->judged_ms < VERDICT_KEEP_MS;
}
