/* Calls that read an object and write one (object_pass.h).
 *
 *   PUT   …/{object}?object_to=ais/@#/BUCKET/OBJECT      a copy
 *   PATCH …/{object}  {"value": {"name": "text"}}        other user metadata */
#pragma once

#include "net/http/handler.h"

void ais_object_copy_begin(struct http_request *req);
void ais_object_patch_begin(struct http_request *req);
