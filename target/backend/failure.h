/* What a backend's failure means: to the client, and whether the request is worth repeating.  Pure.
 *
 *   404                         object_not_found           401, 403   backend_denied
 *   416, 412                    as they are                429, 503   backend_unavailable, again
 *   500, 502, 504, 408          backend_error or _timeout, again
 *   no connection, a cut one    backend_error, again       silence    backend_timeout, again
 *
 * A wait before the next try doubles each time and is cut by a random half, so that clients that
 * failed together do not come back together; what Retry-After asks for is waited for at least. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct failure_rules {
    unsigned retries;        /* tries after the first */
    uint64_t backoff_ms;     /* before the second try */
    uint64_t backoff_max_ms; /* a Retry-After beyond it is not waited for: the error is passed on */
};

/* Of an HTTP status that is not 2xx.  `words`: what the service said, "" for nothing; `region`:
 * where the bucket is, by a service that redirects, or NULL. */
int failure_of_status(int status, const char *words, const char *region, struct error *err);
/* Of a transport error of the HTTP client. */
int failure_of_transport(int code, const char *why, struct error *err);
bool failure_is_passing(int status, int transport_code);
/* Did S3 refuse it because the keys of a session have ended?  A HEAD is refused without words: then
 * any 400 may be that, but for one that says that the bucket is elsewhere. */
bool failure_is_of_ended_keys(int status, const char *words, bool is_elsewhere);

/* Seconds, or a date; 0 where there is none. */
uint64_t failure_retry_after_ms(const char *header, int64_t now_ms);
/* Before try number `done` + 1 (1 is the second try); false: give up.  `luck` is any number. */
bool failure_wait(const struct failure_rules *rules, unsigned done, uint64_t retry_after_ms,
                  uint64_t luck, uint64_t *wait_ms);
