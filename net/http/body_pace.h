/* Does a request's body come fast enough?  Pure.  Who announces bytes, or holds a connection, has
 * to send some: so many in each window of time.  A window begins with the first byte, ends with the
 * first one after its time, and begins anew where it was the server that did not take them; silence
 * is the idle timeout's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct body_rate {
    uint64_t bytes_per_s; /* 0: as slow as it likes */
    uint64_t window_ms;
};

struct body_pace {
    uint64_t began_ms, bytes;
    bool runs;
};

/* So many bytes have come; false: in this window too few. */
bool body_pace_keeps(struct body_pace *p, const struct body_rate *rate, uint64_t now_ms,
                     size_t bytes);
/* The server makes them wait: that time does not count. */
void body_pace_pause(struct body_pace *p);
