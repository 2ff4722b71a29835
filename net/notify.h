/* What the service manager hears of this process: the protocol of sd_notify(3), without its
 * library.  NOTIFY_SOCKET names a Unix socket ("/path", or "@name" in the abstract space); each
 * message is one datagram of lines NAME=VALUE.
 *
 *     struct notify *n = notify_open();  after daemon_begin(), before any thread is made
 *     notify_progress(n, 900000, "…");   while a start takes long
 *     notify_ready(n, "serving");        the unit is active from now on
 *     notify_reloading(n);               SIGHUP; notify_reloaded() follows
 *     notify_stopping(n, 14000);         SIGTERM; the daemon waits so long for others, and ends
 *     notify_close(n);
 *
 * Nothing here blocks, fails or ends a daemon.  What cannot be sent now is kept, the newest state
 * and the newest status alone, and is sent with the next message or by notify_flush():
 *
 *   the manager's queue is full          when notify_fd() can be written
 *   the socket cannot be reached         at notify_retry_ms(); the log says so once
 *
 * NULL, which notify_open() gives where no manager asks for messages, is fine everywhere.  Any
 * thread may call, but for open and close. */
#pragma once

#include <stdint.h>

struct notify;

/* Takes NOTIFY_SOCKET out of the environment: children are not the service. */
struct notify *notify_open(void);
void notify_close(struct notify *n);

/* READY=1, with a line for `systemctl status`; again: the line alone changes. */
void notify_ready(struct notify *n, const char *status);
/* RELOADING=1 and MONOTONIC_USEC, then READY=1.  Nothing before notify_ready(): a start that is
 * under way goes on. */
void notify_reloading(struct notify *n);
void notify_reloaded(struct notify *n);
/* STOPPING=1, and that the end may take wait_ms and the margin from now on: TimeoutStopSec does not
 * know the daemon's parameters. */
void notify_stopping(struct notify *n, uint64_t wait_ms);
/* A line for `systemctl status`: one sentence. */
void notify_status(struct notify *n, const char *status);
/* Likewise; and the start or stop that is under way may take so long from now on. */
void notify_progress(struct notify *n, uint64_t extend_ms, const char *status);

enum {
    NOTIFY_RETRY_MS = 2000,
    NOTIFY_STOP_MARGIN_MS = 120000 /* of an end after its waits; TimeoutStopSec of the units */
};

/* For poll(2), with POLLOUT: what the queue did not take waits; -1: nothing waits for room. */
int notify_fd(struct notify *n);
/* The time of clock_ms() at which to try again; UINT64_MAX: nothing waits for it. */
uint64_t notify_retry_ms(struct notify *n);
void notify_flush(struct notify *n);
