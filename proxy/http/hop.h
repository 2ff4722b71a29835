/* Which headers go through a relay: all but those that belong to one connection (RFC 9110 section
 * 7.6.1), those that each side makes itself, and those that are meant for the proxy.  Pure. */
#pragma once

#include <stdbool.h>

/* `connection` is the value of that message's Connection header, which may name more; or NULL. */
bool hop_request_header_passes(const char *name, const char *connection);
bool hop_reply_header_passes(const char *name, const char *connection);
