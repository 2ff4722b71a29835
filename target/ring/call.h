/* A call of a ring on its way, from its first bytes to the reply. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/documents/state.h"
#include "net/http/server.h"
#include "ring/keeper.h"
#include "target/ring/waits.h"

/* A call on its way; of the request's arena. */
struct ring_call {
    struct http_request *req;
    const struct cluster_state *state;
    const struct bucket *bucket; /* the state's */
    struct ring *ring;
    void (*serve)(struct ring_call *c);
    char *frames;
    size_t len;
    uint64_t producer, sequence, from;
    enum ring_wish wish;
    struct ring_group_call group; /* of RING_GROUP */
    bool has_policy, drops;       /* a push that says its policy, or else the ring's: drop */
    struct ring_wait wait;        /* a status with `after`, a push with `wait` or policy=drop */
    atomic_bool waits;            /* it has no reply yet */
};

/* serve(c) once the ring is known: ring_call_known(). */
struct ring_call *ring_call_new(struct http_request *req, void (*serve)(struct ring_call *c));
/* Replies with the error. */
void ring_call_fail(const struct ring_call *c, struct error *err);
/* For upload_begin_as_known(): finds the ring, and serves or fails. */
void ring_call_known(struct http_request *req, void *arg);
/* A number of the query; *value stays without one.  E_INVALID. */
int ring_call_number(const struct http_request *req, const char *name, uint64_t *value,
                     struct error *err);
/* `wait` of the query: until when the call may wait; at most ring_wait_max.  E_INVALID. */
int ring_call_read_wait(struct ring_call *c, struct error *err);
/* c->wait, but for its value and time. */
void ring_call_prepare_wait(struct ring_call *c, bool (*is_due)(const struct ring_wait *wait),
                            void (*reply)(void *arg));
/* For http_be_patient(). */
bool ring_call_is_waiting(void *arg);
