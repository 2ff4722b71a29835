/* GET /metrics of any daemon: what the registry has, and what every process says of itself. */
#pragma once

#include "net/http/server.h"

void daemon_metrics_begin(void);   /* once, when the process starts */
void daemon_metrics_measure(void); /* CPU time and memory of this process, now */
/* Answers the call.  The daemon's own gauges are brought up to date before. */
void daemon_metrics_reply(struct http_request *req);
/* The same text. */
void daemon_metrics_text(struct buf *out);
