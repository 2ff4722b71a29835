/* Connections to the server of an engine: each call takes one, new ones say hello.
 *
 * A run is the life of one server process.  The server tells its run and a number, which each
 * commit raises.  The pool knows the run that was met last, and the number of the last acknowledged
 * commit.  So a hello finds out whether the server has lost commits; from then on each call fails.
 * A connection to an earlier run is not used again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

enum { POOL_RUN = 48 }; /* bytes of a run's name, with its NUL */

struct pool;

struct pool_ops {
    const char *server; /* in messages: "Redis" */
    /* Connects, and says hello: pool_known(), and at its end pool_met().  first: of this pool.  Nothing
     * of a caller has been sent: E_IN_DOUBT becomes E_NET. */
    int (*open)(void *context, bool first, void **link, unsigned *run, struct error *err);
    void (*close)(void *link); /* NULL is fine */
    bool (*is_idle)(const void *link);
};

/* lost: what is said when the server has lost commits; it is borrowed, as ops and context. */
struct pool *pool_new(const struct pool_ops *ops, void *context, const char *lost, unsigned most);
void pool_free(struct pool *p); /* no call may be running; NULL is fine */
/* The first connection.  Does not wait for a server that is away: the URL may be wrong. */
int pool_open(struct pool *p, struct error *err);

/* ---- hello ---- */

struct pool_run {
    char name[POOL_RUN]; /* "": none was met */
    int64_t number;
};
struct pool_run pool_known(struct pool *p);

struct pool_hello {
    bool kept; /* it has all that is known */
    const char *run;
    int64_t number;
    int refused; /* 0, or why the database is of no use, with its sentence in err */
};
/* What the server said.  *run: a number for pool_acknowledge(). */
int pool_met(struct pool *p, const struct pool_hello *hello, unsigned *run, struct error *err);

/* ---- calls ---- */

/* *usable: the connection is, after this. */
typedef int pool_try(void *call, void *link, unsigned run, bool *usable, struct error *err);
/* Any thread.  Tries until the server is there (E_NET, E_NOT_READY; with `again` E_IN_DOUBT), as
 * long as patience.h says. */
int pool_call(struct pool *p, pool_try *try, void *call, bool again, struct error *err);
/* A commit was acknowledged with this number; 0: it has none.  E_IN_DOUBT: a process replied that
 * other connections have seen replaced. */
int pool_acknowledge(struct pool *p, unsigned run, int64_t number, struct error *err);
