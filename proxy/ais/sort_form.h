/* A sort in the forms that the SDK sends and reads.  Pure. */
#pragma once

#include <jansson.h>

#include "cluster/documents/job.h"
#include "common/error.h"

/* Makes the SDK's request, in place, what POST /v1/sort takes:
 *
 *   ekm_sep                 ekm_file_sep: the older release's name
 *   output_format ""        none: a key map has the names
 *   ekm_file of an object   dfc://BUCKET/OBJECT where its URL is of this cluster: its host is one
 *                           of `hosts` ("127.0.0.1:8080", …, NULL)
 *
 * The rest is dSort's own request, which the parser of sorts takes (sort/spec/spec.h).  E_INVALID:
 * the URL of the key map is none. */
int sort_form_request(json_t *request, const char *const *hosts, struct error *err);

/* What the SDK calls JobInfo, of one target.  `report`: as xactions_report() makes it; NULL: none.
 *
 *   {"id", "src-bck", "dst-bck", "started_time", "finish_time", "loc-objs", "loc-bytes", "aborted",
 *    "archived", "Metrics": {"local_extraction", "meta_sorting", "shard_creation", "aborted",
 *    "archived", "description", "warnings", "errors"}}
 *
 * A sort that has failed is aborted, too, as in dSort: the SDK waits for nothing else. */
json_t *sort_form_info(const struct job *job, const json_t *report);
