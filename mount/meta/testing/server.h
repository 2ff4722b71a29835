/* A server of metadata that a test runs, in a directory of its own: the table of them.
 *
 * What it acknowledges outlives its kill. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct server {
    const char *name;
    const char *url;    /* a format for its port */
    const char *commit; /* what the request of a commit has, on the wire: so many bytes */
    size_t commit_size;
    /* Shell; $0 is the directory, $1 the port.  Empty: nothing to be done. */
    const char *is_installed;
    const char *prepare; /* an empty directory, for the first start */
    const char *start;   /* becomes the server, by exec */
    const char *answers; /* 0: it is there */

    char directory[64];
    unsigned port;
    pid_t pid;
};

extern struct server redis_server, postgres_server;

struct server *server_named(const char *name); /* NULL: there is none of this name */
bool server_is_installed(const struct server *s);
/* On a free port; keeps the port and the directory from one start to the next.  Ends the test
 * program if it cannot start. */
void server_start(struct server *s);
void server_kill(struct server *s); /* kill -9 */
void server_remove(
    struct server *s); /* kills, removes the directory; the next start is a new one */
void server_save_files(struct server *s); /* a copy of its files, aside; it must be dead */
void server_back_to_them(struct server *s);
const char *server_url(const struct server *s); /* until the next call */
/* A shell command with $0 and $1, which must succeed. */
void server_shell(const struct server *s, const char *command);
