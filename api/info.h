/* What replies say about an object. */
#pragma once

#include "api/dfc.h"
#include "api/headers.h"
#include "common/cleanup.h"

DEFINE_CLEANUP(struct dfc_object_info, dfc_object_info_free);

/* From the headers of GET and HEAD. */
struct dfc_object_info *info_from_headers(const struct headers *h);

/* From the reply to PUT: its JSON, and its headers where that lacks something. */
struct dfc_object_info *info_from_put(const struct headers *h, const char *json, size_t len);
