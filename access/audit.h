/* The audit log: who was denied what, and who changed what; one JSON object a line.
 *
 *   audit_put() ─▶ lines that wait (buffer_bytes at most) ─▶ one writer thread ─▶ the file
 *
 * A line that finds no room is dropped and counted (`audit_dropped_total`), or with `must` its
 * thread waits until there is room.  A file that refuses a write is told in the node's log once.
 * Lines that it has not whole count as dropped, with `must`, too.  A line that was cut, by a full
 * disk or a crash, spoils no other: the next begins on a line of its own.  Secrets, tokens and
 * proofs are in no field. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* What is written. */
enum audit_level {
    AUDIT_NONE,
    AUDIT_DENIED,
    AUDIT_CHANGES, /* and what alters users, buckets, nodes, settings, jobs */
    AUDIT_ALL,
};

int audit_level_from_name(const char *name, enum audit_level *out, struct error *err);

/* Text that is NULL is left out. */
struct audit_line {
    const char *request_id;
    const char *peer;
    const char *user; /* name */
    const char *key;  /* id of the token or signed URL; of a login the access key or user */
    const char *via;  /* "token", "proof", "anonymous"; between nodes "node", "cluster key";
                         * "start": the node by itself */
    const char *op;   /* name of the route */
    const char *path; /* as received, without the query */
    const char *bucket;
    const char *object;
    const char *code; /* of a refusal */
    const char *rule; /* which rule decided */
    unsigned status;
    bool changes; /* the call alters users, buckets, nodes, settings or jobs */
    bool denied;
    uint64_t bytes_in, bytes_out, ms;
};

struct audit_config {
    const char *path; /* "-": standard output */
    const char *node;
    enum audit_level level;
    size_t buffer_bytes;
    bool must;
};

struct audit;

/* Texts are copied.  E_IO: the file cannot be opened. */
int audit_new(const struct audit_config *config, struct audit **out, struct error *err);
void audit_free(struct audit *a); /* writes what waits; NULL is fine */
/* Is there a line for what is denied, or changes something, as the line says?  Any thread. */
bool audit_wants(const struct audit *a, const struct audit_line *line);
/* Any thread. */
void audit_put(struct audit *a, const struct audit_line *line);
/* The file was renamed: lines that follow go to a new one.  After an error they go where they
 * went. */
int audit_reopen(struct audit *a, struct error *err);
