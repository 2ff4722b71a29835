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

enum { LINK_POOL_RUN = 48 }; /* bytes of a run's name, with its NUL */

struct link_pool;

struct link_pool_ops {
    const char *server; /* in messages: "Redis" */
    unsigned away_ms;   /* how long calls wait */
    /* Connects, and says hello: link_pool_known(), and at its end link_pool_met().  first: of this
     * pool.  Nothing of a caller has been sent: E_IN_DOUBT becomes E_NET. */
    int (*open)(void *context, bool first, void **link, unsigned *run, struct error *err);
    void (*close)(void *link); /* NULL is fine */
    bool (*is_idle)(const void *link);
};

/* lost: what is said when the server has lost commits; it is borrowed, as ops and context. */
struct link_pool *link_pool_new(const struct link_pool_ops *ops, void *context, const char *lost,
                                unsigned most);
void link_pool_free(struct link_pool *p); /* no call may be running; NULL is fine */
/* The first connection.  Does not wait for a server that is away: the URL may be wrong. */
int link_pool_open(struct link_pool *p, struct error *err);

/* ---- hello ---- */

struct link_pool_run {
    char name[LINK_POOL_RUN]; /* "": none was met */
    int64_t number;
};
struct link_pool_run link_pool_known(struct link_pool *p);

struct link_pool_hello {
    bool kept; /* it has all that is known */
    const char *run;
    int64_t number;
    int refused; /* 0, or why the database is of no use, with its sentence in err */
};
/* What the server said.  *run: a number for link_pool_acknowledge(). */
int link_pool_met(struct link_pool *p, const struct link_pool_hello *hello, unsigned *run,
                  struct error *err);

/* ---- calls ---- */

/* *usable: the connection is, after this. */
typedef int link_pool_try(void *call, void *link, unsigned run, bool *usable, struct error *err);
/* Any thread.  Tries until the server is there (E_NET, E_NOT_READY; with `again` E_IN_DOUBT), as
 * long as patience.h says.  Calls without `again` are commits.  They count from the moment since
 * when none was accepted or met a conflict, though the server answers others. */
int link_pool_call(struct link_pool *p, link_pool_try *try, void *call, bool again,
                   struct error *err);
/* A commit was acknowledged with this number; 0: it has none.  E_IN_DOUBT: a process replied that
 * other connections have seen replaced. */
int link_pool_acknowledge(struct link_pool *p, unsigned run, int64_t number, struct error *err);
