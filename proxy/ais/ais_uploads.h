/* Uploads in parts: what the SDK asks for becomes native calls (proxy/http/uploads.h).
 *
 *   POST   …/{object}  {"action": "mpt-upload"}                   begins one; the reply is its id
 *   PUT    …/{object}?uploadId=&partNumber=                       a part, streamed as any PUT is
 *   POST   …/{object}?uploadId=  {"action": "mpt-complete", …}
 *   DELETE …/{object}?uploadId=  {"action": "mpt-abort"} */
#pragma once

#include "net/http/handler.h"

void ais_object_post_begin(struct http_request *req);
void ais_part_begin(struct http_request *req);
void ais_upload_post_begin(struct http_request *req);
void ais_upload_delete_begin(struct http_request *req);
