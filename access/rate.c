#include "access/rate.h"

#include <math.h>

static double given_back(double used, uint64_t per_second, uint64_t passed_ms)
{
    double back = (double)passed_ms * (double)per_second / 1000;
    return per_second != 0 && used > back ? used - back : 0;
}

static void advance(struct rate *r, const struct access_rate *limit, uint64_t now_ms)
{
    uint64_t passed_ms = now_ms > r->at_ms ? now_ms - r->at_ms : 0;
    r->used_requests = given_back(r->used_requests, limit->requests, passed_ms);
    r->used_bytes = given_back(r->used_bytes, limit->bytes, passed_ms);
    r->at_ms += passed_ms;
}

/* Until no more than a second's share, less `more`, is used. */
static uint64_t wait_ms(double used, uint64_t per_second, double more)
{
    double over = used + more - (double)per_second;
    return per_second != 0 && over > 0 ? (uint64_t)ceil(over * 1000 / (double)per_second) : 0;
}

uint64_t rate_take_request(struct rate *r, const struct access_rate *limit, uint64_t now_ms)
{
    advance(r, limit, now_ms);
    uint64_t requests_ms = wait_ms(r->used_requests, limit->requests, 1);
    uint64_t bytes_ms = wait_ms(r->used_bytes, limit->bytes, 0);
    if (requests_ms == 0 && bytes_ms == 0)
        r->used_requests += limit->requests != 0;
    return requests_ms > bytes_ms ? requests_ms : bytes_ms;
}

uint64_t rate_take_bytes(struct rate *r, const struct access_rate *limit, uint64_t bytes,
                         uint64_t now_ms)
{
    advance(r, limit, now_ms);
    r->used_bytes += limit->bytes != 0 ? (double)bytes : 0;
    return wait_ms(r->used_bytes, limit->bytes, 0);
}
