/* Batches: a target assembles them (target/archive/batch.h), any of them; the proxy chooses one. */
#pragma once

#include "net/http/handler.h"

extern const struct http_route batch_routes[];
