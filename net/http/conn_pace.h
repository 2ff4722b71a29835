/* A connection whose request has used up its caller's rate rests: no byte of the request's body is
 * read, and none of the reply's is written.  It holds no thread meanwhile, and TCP makes the peer
 * wait.  Its reactor asks again every REACTOR_REST_MS. */
#pragma once

#include <stdbool.h>

#include "net/http/conn_types.h"

/* Asked before each turn.  True: it rests, and runs again later.  A request with a rate gets short
 * turns, so that it rests often and not for long. */
bool conn_rests(struct conn *c);
