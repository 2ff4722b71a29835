/* The nodes that this primary has refused because they know what it does not: those of another
 * cluster, and those that have seen later states than its own.  That is how a primary whose
 * directory was lost hears of the cluster that it had (proxy/primary/recovery.h).  Any thread;
 * bounded: the one heard least lately makes room. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { STRANGERS_MAX = 256 };

struct stranger {
    char id[64];
    char cluster[64];
    char control_url[256];
    uint64_t term, version;
    uint64_t heard_ms;
};

struct refused_nodes;

struct refused_nodes *refused_nodes_new(void);
void refused_nodes_free(struct refused_nodes *s);
/* A text that is longer than its field makes it no stranger. */
void refused_nodes_note(struct refused_nodes *s, const char *id, const char *control_url,
                        const char *cluster, uint64_t term, uint64_t version, uint64_t now_ms);
/* Those heard within the last age_ms, in the order of their ids; how many.  The caller frees the
 * array. */
size_t refused_nodes_list(struct refused_nodes *s, uint64_t now_ms, uint64_t age_ms,
                          struct stranger **out);
void refused_nodes_forget(struct refused_nodes *s); /* all */
