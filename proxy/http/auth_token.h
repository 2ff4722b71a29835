/* What calls of access control have in common: the first line, and the reply to a login. */
#pragma once

#include "net/http/server.h"

struct proxy;
struct user;

/* The first line of calls that mean nothing without access control: as proxy_enter_objects(), and
 * E_UNSUPPORTED. */
struct proxy *auth_enter(struct http_request *req);
/* A token of the user, got with this access key, or with the password of this tag. */
void auth_reply_token(struct http_request *req, const struct user *user, const char *access);
