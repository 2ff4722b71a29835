/* A node's audit log: one line for each request that ends and that `--audit` asks for.  Servers
 * tell of the end (struct http_witness), the guard of the caller, audit.h writes.
 *
 *   --audit    lines
 *   none       none
 *   denied     answered with 401 or 403
 *   changes    and calls that change or delete something: users, buckets, nodes, settings, jobs,
 *              objects that are deleted or renamed; not the redirects of such calls
 *   all        every call of the public listener
 *
 * On listeners between nodes only administration counts.  A line has the path of its call without
 * the query, and no header: proofs, tokens and secrets stay out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

struct audit_line;
struct http_witness;
struct witness;

struct witness_config {
    const char *node;
    const char *file;  /* "-": standard output; "": there is no audit log */
    const char *level; /* word of --audit */
    size_t buffer_bytes;
    bool must;
};

/* *out is NULL where there is none.  E_INVALID: the level; E_IO: the file. */
int witness_new(const struct witness_config *config, struct witness **out, struct error *err);
void witness_free(struct witness *w); /* after the servers; NULL is fine */
/* For http_server_config.witness; NULL for NULL. */
const struct http_witness *witness_hook(const struct witness *w);
/* A change that the node makes without a call, such as a new key of root, if --audit asks for it.
 * NULL is fine. */
void witness_tell(struct witness *w, const struct audit_line *line);
/* The file was renamed (SIGHUP): the lines that follow go to a new one.  Nothing for NULL; after an
 * error, which the log has, they go where they went. */
void witness_reopen(struct witness *w);
