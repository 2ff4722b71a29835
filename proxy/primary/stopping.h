/* A proxy that is told to stop, while others go on: the primary is told first, so that nobody is
 * sent here any more, and clients that have this proxy's address are served for stop_linger more;
 * each reply closes its connection.
 */
#pragma once

struct proxy;

/* In the main thread, before proxy_free().  Another signal ends it. */
void proxy_leave(struct proxy *p, int signals_fd);
