#include "mount/group/rest.h"

bool rest_may_ask(struct rest *r, uint64_t now_ms)
{
    if (r->failures == 0)
        return true;
    if (now_ms < r->until_ms)
        return false;
    r->until_ms = now_ms + REST_FIRST_MS; /* others wait for this try */
    return true;
}

void rest_note(struct rest *r, bool good, uint64_t now_ms)
{
    uint64_t pause = REST_FIRST_MS;
    if (good) {
        r->failures = 0;
        return;
    }
    for (unsigned i = 0; i < r->failures && pause < REST_MOST_MS; i++)
        pause *= 2;
    if (r->failures < UINT32_MAX)
        r->failures++;
    r->until_ms = now_ms + (pause < REST_MOST_MS ? pause : REST_MOST_MS);
}
