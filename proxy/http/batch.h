/* Batches: a target assembles them (target/archive/batch.h), any of them; the proxy chooses one. */
#pragma once

#include "net/http/handler.h"

struct buf;

extern const struct http_route batch_routes[];

/* A batch of AIStore's SDK: its document, as POST takes it, streamed through. */
void batch_send(struct http_request *req, const struct buf *document);
