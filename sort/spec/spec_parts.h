/* What the files that parse a request share. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "common/error.h"
#include "sort/spec/spec.h"

#define SPEC_SIZE_MAX (UINT64_C(1) << 62) /* sizes stay below JSON's greatest integer */

extern const char *const spec_algorithm_names[]; /* by enum sort_algorithm */
extern const char *const spec_content_names[];   /* by enum sort_content_type */
extern const char *const spec_ekm_names[];       /* by enum sort_ekm_keys */
extern const char *const spec_policy_names[];    /* by enum sort_policy */

/* Null, "", false, 0, {}: what says the same as a field that is not there. */
bool spec_is_blank(const json_t *v);
/* Every field of obj is in `allowed` (E_JSON), and blank where it is in `refused` (E_UNSUPPORTED).
 */
int spec_check_fields(json_t *obj, const char *path, const char *const *allowed,
                      const char *const *refused, struct error *err);

int spec_parse_input(json_t *doc, struct sort_spec *s, struct error *err);
int spec_parse_ekm(json_t *doc, struct sort_spec *s, struct error *err);
int spec_parse_output(json_t *doc, struct sort_spec *s, struct error *err); /* after these two */

/* Names of output shards, the extension appended where it is not there. */
int spec_output_template(const char *field, const char *text, const char *extension,
                         struct name_template **out, struct error *err);
