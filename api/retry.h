/* Whether a call that did not succeed is made again, and after which pause: pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum retry_outcome {
    RETRY_NEVER,   /* the answer is final */
    RETRY_UNSENT,  /* no connection: the other side saw nothing */
    RETRY_REFUSED, /* 429, 503, stale map: the other side did nothing, and says so */
    RETRY_BROKEN,  /* cut, silent or 502/504: it may have been done */
};

struct retry_policy {
    unsigned attempts;
    uint64_t budget_ms; /* no try begins later than this after the last progress */
    uint64_t base_ms;   /* the first pause is up to this; each further one up to twice as long */
    uint64_t cap_ms;
};

struct retry_state {
    unsigned failures; /* since the last progress */
    uint64_t since_ms; /* when that was */
};

struct retry_question {
    enum retry_outcome outcome;
    bool twice_is_harmless;  /* doing it twice is the same as doing it once */
    bool other_endpoint;     /* an endpoint not yet tried in this round stands ready */
    uint64_t retry_after_ms; /* what the server asked for, at least; 0: nothing */
    uint64_t now_ms;
    uint64_t random; /* any 64 random bits */
};

/* Counts the failure in *s.  True: try again after *wait_ms. */
bool retry_next(const struct retry_policy *p, struct retry_state *s, const struct retry_question *q,
                uint64_t *wait_ms);

/* Bytes moved since the last failure: the counting begins anew. */
void retry_progress(struct retry_state *s, uint64_t now_ms);
