/* For the tests: what etcd keeps, keys with their revisions and leases, and what it answers to the
 * calls of its gateway.  No socket, no clock: leases end when the test says so. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { FAKE_LEASES_MAX = 10000 };

struct fake_key;

struct fake_keys {
    uint64_t revision; /* 1 at first */
    struct fake_key *first;
    uint64_t last_lease;
    uint64_t ttl_s[FAKE_LEASES_MAX]; /* by number; 0: it does not live */
};

void fake_keys_done(struct fake_keys *f); /* as new, but for the revision and the leases */
/* The answer to a call: 200; or 404 where a key was to be put under a lease that does not live. */
json_t *fake_keys_serve(struct fake_keys *f, const char *path, json_t *body, int *status);
/* The lease (0: all) has ended: its keys go with it. */
void fake_keys_expire(struct fake_keys *f, uint64_t lease);
void fake_keys_put(struct fake_keys *f, const char *key, const char *value);
const char *fake_keys_get(struct fake_keys *f, const char *key);  /* or NULL */
uint64_t fake_keys_created(struct fake_keys *f, const char *key); /* the revision, or 0 */
