/* Pages of the kernel with bytes that a dead process has lost: they go, so that programs read what
 * is stored.  A thread does that, for a page may wait for a call that is served meanwhile. */
#pragma once

#include <fuse_lowlevel.h>

struct lost;
struct volfs;

/* Before calls are served.  Waits a moment for its end; then *out stays NULL, as where nothing was
 * lost.  0 or -errno. */
int lost_start(struct volfs *v, struct fuse_session *fuse, struct lost **out);
/* Before a program is told of the loss: it may read at once.  Bounded; not in a call that has pages
 * of its own, such as a write.  NULL is fine. */
void lost_wait(struct lost *l);
void lost_stop(struct lost *l); /* waits for its end; NULL is fine */
