/* The dialect of AIStore's SDK: the same paths as ours with other queries, bodies and replies.
 *
 *   speaks it                                    where
 *   User-Agent: ais/…                            every node: the SDK sends it with each request
 *   …?provider=…                                 proxies: every call of the dialect has it
 *   …?dfcd=ais                                   targets: a proxy's redirect adds it
 *
 * The SDK finds the kind of an error by its status and by the first "ais://BUCKET" or
 * "ais://BUCKET/OBJECT" of its text: a message here begins with the one that it is about. */
#pragma once

#include "net/http/handler.h"

#define AIS_PREFIX "/ais"       /* of the dialect's routes in a proxy's tables */
#define AIS_UPLOADS "/uploads"  /* … behind it: calls about an upload, ?uploadId=… */
#define AIS_COPIES "/copies"    /* … a copy of an object, ?object_to=… */
#define AIS_REDIRECT "dfcd=ais" /* in the query of a target's call */

/* Does the request speak it, at a target? */
bool ais_speaks(const struct http_request *req);
/* {"status", "code", "message", "node", "request_id"}; the message names bucket and object. */
extern const struct http_error_form ais_error_form;
/* For http_server_config.dialect of a proxy's public listener. */
extern const struct http_dialect ais_dialect;
