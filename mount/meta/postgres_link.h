/* One connection to a PostgreSQL server.  It belongs to one thread at a time. */
#pragma once

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "mount/meta/postgres_sql.h"

struct postgres_link;

struct postgres_param {
    const void *data; /* in PostgreSQL's binary form */
    size_t size;
};

enum { POSTGRES_PARAMS = 6 };

struct postgres_ask {
    enum postgres_statement statement;
    const char *text; /* not NULL: this statement instead, without parameters */
    struct postgres_param params[POSTGRES_PARAMS];
    size_t count;
    PGresult *result; /* filled; to be freed by postgres_asks_done() */
};

/* Connects; prepares nothing.  timeout_ms: for the connection, and for each call.  E_NET. */
int postgres_link_open(const char *url, unsigned timeout_ms, struct postgres_link **out,
                       struct error *err);
void postgres_link_close(struct postgres_link *l);
DEFINE_CLEANUP(struct postgres_link, postgres_link_close);

/* False: the server has closed it, or has sent what nobody asked for. */
bool postgres_link_is_idle(const struct postgres_link *l);

/* Statements without replies, up to NULL; waits without a limit.  Before postgres_link_run(). */
int postgres_link_script(struct postgres_link *l, const char *const *script, struct error *err);
/* postgres_statements[], whose tables must be there. */
int postgres_link_prepare(struct postgres_link *l, struct error *err);

/* All of them in one round trip.  Without a BEGIN among them each is a transaction of its own.
 * E_IN_DOUBT: the server may have done them.  Another code: the server has done none that changes
 * anything, and E_NOT_READY: it may do them later.  After an error the connection is of no use. */
int postgres_link_run(struct postgres_link *l, struct postgres_ask *asks, size_t count,
                      struct error *err);
void postgres_asks_done(struct postgres_ask *asks, size_t count);

/* Numbers of a result's cell, in binary form. */
int64_t postgres_number(const PGresult *result, int row, int column);
