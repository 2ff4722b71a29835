/* Who has to know of a change before its client is told that it is made. */
#pragma once

enum settle_scope {
    SETTLE_PROXIES, /* active proxies: what a client reads at another one is not older */
    SETTLE_NODES,   /* and active targets: a bucket of a new name is known wherever it is used */
};
