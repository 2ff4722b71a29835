/* The cluster's documents as keys of etcd, below a prefix that is the cluster's own.  Pure.
 *
 *   P/primary        who is primary: written by the election, under its lease
 *   P/head           {"format", "cluster", "term", "version", …, "election", "layout": {…},
 *                    "parts": {"smap": 4}}
 *   P/smap/<node>    each item of a document by itself, as it stands in the state document; so
 *                    P/bmd/<bucket>, P/config/<name>, P/users/<user> and P/roles/<role>
 *   P/jobs/<job>     in the order in which the keys were created
 *
 * A change is one transaction: it holds while P/primary has the revision that this primary created
 * it with, and P/head the one that it read or wrote last.  So nobody writes but the primary that
 * etcd knows, whatever another believes of itself; and a transaction that is sent again does
 * nothing again.  Its size is that of what changes: etcd's limit of a request (--max-request-bytes,
 * 1.5 MiB) is a limit of one change, not of the documents. */
#pragma once

#include "cluster/documents/state.h"
#include "proxy/metastore/etcd_wire.h"

struct etcd_fence {
    const char *prefix;
    uint64_t election; /* revision with which P/primary was created */
    uint64_t head;     /* that P/head has; 0: it is not there */
};

char *etcd_key(const char *prefix, const char *name); /* "P/name"; malloc'ed */

/* From `from` (NULL: nothing is there) to `to`.  E_TOO_LARGE where it would exceed `bytes_max`; a
 * new item may take half of that, so that it can still be changed. */
int etcd_change(const struct etcd_fence *fence, const struct cluster_state *from,
                const struct cluster_state *to, uint64_t bytes_max, json_t **out,
                struct error *err);

enum etcd_verdict {
    ETCD_MADE,      /* the change is durable: now, or when it was sent before */
    ETCD_DEPOSED,   /* not made, and never will be: another election has been */
    ETCD_OVERTAKEN, /* the same of this attempt; whether an earlier one was made before others wrote
                       is not to be seen any more */
    ETCD_FOREIGN,   /* not made: somebody else has written the documents under this election */
};
/* Of the answer to etcd_change(); *head: the new fence.head where it was made. */
int etcd_change_verdict(json_t *reply, const struct etcd_fence *fence,
                        const struct cluster_state *to, enum etcd_verdict *verdict, uint64_t *head,
                        struct error *err);

/* --- reading ---------------------------------------------------------------------------------- */

enum { ETCD_PARTS = 6 }; /* lists of items: the documents', of which `access` has two */

/* Gathers what pages of the range P/ have.  `head` is 0 while P/head has not come. */
struct etcd_gather {
    const char *prefix;
    uint64_t head;
    json_t *head_doc;
    json_t *items[ETCD_PARTS];
    size_t job_count;
    struct gathered_job *jobs;
};

void etcd_gather_done(struct etcd_gather *g);
int etcd_gather_take(struct etcd_gather *g, const struct etcd_kvs *page, struct error *err);
/* NULL where there is no P/head: then nothing was ever committed. */
int etcd_gather_state(struct etcd_gather *g, struct cluster_state **out, struct error *err);
