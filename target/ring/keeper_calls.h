/* The calls that the keeper of a ring answers. */
#pragma once

#include "target/ring/call.h"

/* GET …/status: its query, and the reply, at once or when there is a later generation. */
int ring_status_read(struct ring_call *c, struct error *err);
void ring_status_serve(struct ring_call *c);
/* PUT of …/generation, …/pause, …/resume, …/groups, DELETE of …/samples. */
void ring_wish_begin(struct http_request *req);
/* DELETE of …/groups. */
void ring_leave_begin(struct http_request *req);
/* Reports of other targets. */
void ring_counts_begin(struct http_request *req);
