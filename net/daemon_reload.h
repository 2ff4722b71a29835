/* A daemon that serves until it is told to stop, and what signals do meanwhile:
 *
 *   SIGTERM, SIGINT   it returns
 *   SIGHUP            the log is opened anew (log_file), the cluster's key is read anew, and the
 *                     configuration file.  Parameters that can change while a daemon runs (and
 *                     log_level) take their new values; a line in the log names the others, which
 *                     need a restart.  Nothing is taken of values that the start would refuse.
 *                     What `dfcctl config set` has changed stays, unless the file
 *                     changes it.
 *                     The certificate and its key are loaded anew; this also happens by itself
 *                     within tls_reload_ms of a change of their files.
 *   SIGUSR1, SIGUSR2  a line in the log: they mean nothing here, and must not end a daemon */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/param.h"

struct auth;
struct daemon_sources;
struct notify;
struct tls;

struct daemon_reload {
    const struct param_row *rows;
    void *values; /* in force; of the type that `rows` describe, `size` bytes */
    size_t size;
    struct daemon_sources *sources; /* of these rows and values */
    int argc;                       /* of main(): the sources are read as at the start */
    char **argv;
    struct auth *auth;
    struct tls *tls; /* or NULL */
    uint64_t tls_reload_ms;
    const char *key_file;  /* or "" */
    const char *log_file;  /* or "" */
    struct notify *notify; /* hears of reloads (net/notify.h); or NULL */
    /* What the start refuses of such values, beside the bounds of each; or NULL. */
    int (*check)(const void *values, struct error *err);
    void (*hup)(void *ctx); /* what the daemon itself reads anew at SIGHUP; or NULL */
    int other_fd;           /* -1, or what other() is called for when it can be read */
    void (*other)(void *ctx);
    void *ctx;
};

/* In the main thread, after daemon_begin(), which has blocked the signals. */
void daemon_serve(int signals_fd, const struct daemon_reload *r);
