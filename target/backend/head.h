/* The head of a reply from a backend. */
#pragma once

#include "target/backend/backend.h"

/* All of *out: what the heads of all backends have in common, user metadata (meta.h), and what only
 * this kind of backend has. */
void backend_read_head(const struct backend_ops *ops, const struct http_head *head,
                       struct backend_facts *out);
