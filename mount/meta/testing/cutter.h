/* A proxy before a server of this machine that cuts connections. */
#pragma once

#include "mount/meta/testing/server.h"

enum cutter_mode {
    CUTTER_PASS,
    CUTTER_REQUEST, /* the next request of a commit does not arrive; the connection is cut */
    CUTTER_REPLY,   /* it arrives, and its reply does not */
};

/* One at a time.  Returns its port. */
unsigned cutter_start(const struct server *server);
void cutter_set(enum cutter_mode mode); /* for one request; then it passes all again */
void cutter_stop(void);
