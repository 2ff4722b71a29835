/* The public addresses of a cluster's nodes. */
#pragma once

#include <stdbool.h>

#include "api/dfc.h"

struct hosts;

int hosts_load(struct dfc_client *c, struct hosts **hosts, struct dfc_error *err);
bool hosts_have(const struct hosts *h, const char *host); /* "HOST:PORT" */
void hosts_free(struct hosts *h);
