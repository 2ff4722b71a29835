/* What of the dialect there is not: 501 with a sentence. */
#pragma once

#include <jansson.h>

#include "common/error.h"
#include "net/http/handler.h"

/* A handler: the call is none of ours. */
void ais_refused_begin(struct http_request *req);

/* Do the parameters that all calls have say what can be done?  `provider` is ais, empty or what the
 * bucket's backend is (provider.h); there is no namespace. */
int ais_check_common(const struct http_request *req, struct error *err);
/* The body {"action", …}: *out is the document, *action borrows from it.  E_JSON. */
int ais_read_action(const char *data, size_t len, json_t **out, const char **action,
                    struct error *err);
/* E_UNSUPPORTED, with the sentence. */
int ais_refuse_action(const char *action, struct error *err);
/* The first of these parameters that the request has with a value is refused, as `what`.  Ends with
 * a NULL name. */
struct ais_refusal {
    const char *parameter;
    const char *unless; /* this value is taken; NULL: none but the empty one */
    const char *what;   /* "appending to an object" */
};
int ais_check_refused(const struct http_request *req, const struct ais_refusal *table,
                      struct error *err);
