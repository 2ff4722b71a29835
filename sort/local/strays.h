/* Strays: shards beside a sort's output that have a name of its template, and are not of this sort.
 * A training that reads the template reads them, too.  Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/template.h"

struct strays;

struct strays *strays_new(void);
void strays_free(struct strays *s);
/* A template that the sort has used. */
int strays_add_template(struct strays *s, const struct name_template *t, struct error *err);
/* An output shard of the sort. */
void strays_add_output(struct strays *s, const char *name);
/* The i-th template's literal beginning, to list by; NULL behind the last. */
const char *strays_prefix(const struct strays *s, size_t i);
/* Has a name that was found by the i-th template's prefix this template's form, without being an
 * output? All outputs were added before the first call. */
bool strays_has(struct strays *s, size_t i, const char *name);
