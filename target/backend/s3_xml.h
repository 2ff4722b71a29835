/* What S3 says in XML, and what is said to it.  Parsed by expat, without entities or DTDs of the
 * document's own. */
#pragma once

#include <stddef.h>

#include "common/buf.h"
#include "target/backend/backend.h"

/* "NoSuchKey: The specified key does not exist." of an <Error>; nothing where the body is none.
 * What is no printable text is left out. */
void s3_xml_error(const char *body, size_t len, struct buf *out);

/* <InitiateMultipartUploadResult>: the upload's id.  E_BACKEND. */
int s3_xml_upload_id(const char *body, size_t len, struct buf *out, struct error *err);
/* <CompleteMultipartUpload>, the arena's. */
const char *s3_xml_parts(const struct backend_write *write, struct arena *a);
/* <CompleteMultipartUploadResult>: the entity tag, "" for none.  E_BACKEND, with its words where it
 * is an <Error>: the service begins its answer before it knows. */
int s3_xml_parts_etag(const char *body, size_t len, struct buf *out, struct error *err);
/* The same of <CopyObjectResult> and <CopyPartResult>. */
int s3_xml_copy_etag(const char *body, size_t len, struct buf *out, struct error *err);
/* <ListBucketResult>, asked for with encoding-type=url.  E_BACKEND where it is not one, whole. */
int s3_xml_page(const struct backend_spec *spec, const char *body, size_t len,
                struct backend_page *out, struct error *err);
