/* For the tests: a gateway of etcd that keeps keys with their revisions and answers as etcd does,
 * but for what a test tells it to do wrong.  One member; leases end when the test says so. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "net/testing/peer.h"

struct fake_etcd;

enum fake_request {
    FAKE_COMMIT,   /* a transaction that changes documents */
    FAKE_CAMPAIGN, /* one that creates P/primary */
    FAKE_RENEWAL,
    FAKE_PAGE, /* a range as of a revision: the second page, and those that follow */
    FAKE_REQUESTS,
};

enum fake_fault {
    FAKE_NONE,
    FAKE_LOSES_ANSWER, /* does it, and hangs up */
    FAKE_LOSES_IT,     /* hangs up */
    FAKE_KEEPS_IT,     /* hangs up, and does it later: fake_etcd_do_kept() */
    FAKE_UNAVAILABLE,  /* 503, "etcdserver: leader changed" */
    FAKE_FULL,         /* "mvcc: database space exceeded" */
    FAKE_COMPACTED,
    FAKE_DEPOSES, /* does it, hangs up, and lets another proxy win */
};

struct fake_etcd *fake_etcd_new(void);
void fake_etcd_free(struct fake_etcd *f);
uint16_t fake_etcd_port(const struct fake_etcd *f);
/* The next `count` requests of this kind. */
void fake_etcd_fault(struct fake_etcd *f, enum fake_request request, enum fake_fault fault,
                     unsigned count);
void fake_etcd_do_kept(struct fake_etcd *f);
void fake_etcd_put(struct fake_etcd *f, const char *key, const char *value);
/* The value (malloc'ed), or NULL. */
char *fake_etcd_get(struct fake_etcd *f, const char *key);
/* All leases are over, and their keys with them. */
void fake_etcd_expire(struct fake_etcd *f);
/* All keys. */
void fake_etcd_forget(struct fake_etcd *f);
unsigned fake_etcd_seen(struct fake_etcd *f, enum fake_request request);
