/* A member of a cache group: it answers readers from its disk cache.
 *
 *     reader ─▶ HTTP thread ─▶ pool ─▶ memory buffer ─▶ disk cache ─▶ earlier owner ─▶ cluster
 *
 * What it lacks it fetches once however many ask, a whole piece for a part, and keeps it.  Readers
 * prove that they have the group's key; without a key the listener is on loopback only.  If more
 * requests wait than `queue`, others are refused at once. */
#pragma once

#include <stdint.h>

#include "cache/cache.h"
#include "common/cleanup.h"
#include "common/error.h"

struct auth;
struct dfc_client;
struct group_service;

struct group_service_options { /* texts are borrowed */
    struct dfc_client *client; /* borrowed; cancelled at the end */
    const char *group, *id;
    const char *key_file;  /* or "" */
    const char *address;   /* of the listener */
    const char *advertise; /* host for readers; "": address */
    uint16_t port;         /* 0: any */
    uint32_t weight;
    uint64_t interval_ms;         /* of reports */
    uint64_t connect_ms, wait_ms; /* for other members */
    struct cache_options cache;
    uint64_t buffer_bytes;
    unsigned fetchers; /* requests to the store at once */
    unsigned workers;  /* requests of readers that are answered at once */
    uint64_t queue;    /* that wait besides */
    uint64_t connections_max;
};

int group_service_open(const struct group_service_options *options, struct group_service **out,
                       struct error *err);
/* Says that it leaves, answers what it has been asked, and ends.  NULL is fine. */
void group_service_close(struct group_service *s);
DEFINE_CLEANUP(struct group_service, group_service_close);

const char *group_service_url(const struct group_service *s);
struct auth *group_service_auth(struct group_service *s); /* for a new key */
