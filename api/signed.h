/* Exchanges with control listeners: signed with the cluster's key, as a node signs them
 * (net/auth.h has the protocol).
 *
 *     exchange --> a session with that listener? --no--> greet, take the answer
 *        |                                                    |
 *        +----------- Dfc-Auth, the exchange itself <---------+
 *                       401 session: the node began anew: once more from the top
 *
 * The node that answers must be the one that the exchange is for (exchange.node), and proves that
 * it is.
 *
 * A node without a cluster key takes unsigned calls; it says so when it is greeted.  Where no key
 * file is known the call goes unsigned as well, and a 401 becomes a sentence that says what is
 * missing. */
#pragma once

#include "api/exchange.h"

/* As exchange_run(), of a body (or none) that can be read again. */
enum exchange_end signed_exchange_run(struct dfc_client *c, struct handle *h,
                                      const struct exchange *x, struct reply *reply,
                                      struct dfc_error *err);
