/* Uploads in parts: docs/design/uploads.md has the calls. */
#pragma once

#include <jansson.h>

#include "net/http/server.h"

extern const struct http_route upload_routes[];
extern const struct http_route upload_list_routes[]; /* upload_list.c */

struct part;
struct upload;

/* begin(req, arg), once this target knows the cluster state by which the sender chose it: a bucket
 * may have another name there.  Else E_NOT_READY.  It may come from another thread, which is too
 * late to take a body. */
void upload_begin_as_known(struct http_request *req,
                           void (*begin)(struct http_request *req, void *arg), void *arg);
/* Once it has asked for that state: E_NOT_READY where it has not got it. */
int upload_check_known(const struct http_request *req, struct error *err);
void upload_part_begin(struct http_request *req);
/* Errors of a call of AIStore's SDK are in its form. */
void upload_set_error_form(struct http_request *req);
/* The upload of a call's query, of the call's object: a reference.  E_INVALID, E_BUCKET_NOT_FOUND,
 * E_STALE_MAP, E_NOT_FOUND. */
int upload_of_request(const struct http_request *req, struct upload **out, struct error *err);
/* A number of the query within [least, most]; `value` without one. */
int upload_number(const struct http_request *req, const char *name, uint64_t least, uint64_t most,
                  uint64_t *value, struct error *err);
/* Adds "sum" where the part has a checksum. */
void upload_put_sum(json_t *doc, const struct part *part);
/* GET of an upload: its parts. */
void upload_parts_begin(struct http_request *req);
