/* The request of POST /v1/sort, parsed and checked: pure.  Field names are AIStore's, so that
 * specifications written for its dSort are accepted; see docs/reference/sort-spec.md for each
 * field.
 *
 * What this release does: every format of sort/shard/format.h, all algorithms, external key maps;
 * the rest of the fields is understood and refused by name with E_UNSUPPORTED, never ignored. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "common/template.h"

enum sort_algorithm {
    SORT_ALPHANUMERIC,
    SORT_SHUFFLE,
    SORT_NONE,
    SORT_MD5,
    SORT_NATURAL,
    SORT_CONTENT,
};
enum sort_content_type { SORT_CONTENT_INT, SORT_CONTENT_FLOAT, SORT_CONTENT_STRING };
enum sort_policy { SORT_ABORT, SORT_WARN, SORT_IGNORE };
enum sort_key_rule { SORT_KEY_FIRST_DOT, SORT_KEY_LAST_DOT };
enum sort_ekm_keys { SORT_EKM_AUTO, SORT_EKM_EXACT, SORT_EKM_REGEX };
enum sort_input_kind { SORT_INPUT_TEMPLATE, SORT_INPUT_LIST, SORT_INPUT_PREFIX };

struct shard_format_ops;

struct sort_spec {
    char *input_bucket;
    char *output_bucket; /* = input_bucket where the request has none */
    enum sort_input_kind input_kind;
    struct name_template *input_template; /* with SORT_INPUT_TEMPLATE; the extension appended */
    char **input_names;                   /* with SORT_INPUT_LIST */
    size_t input_name_count;
    char *input_prefix;    /* with SORT_INPUT_PREFIX: objects that begin with it
                              and end with the extension, in the order of names */
    bool input_internal;   /* … also those that begin with ".dfc-", whatever the prefix */
    char *input_extension; /* ".tar" */
    char *output_extension;
    const struct shard_format_ops *input_shards; /* what those extensions say */
    const struct shard_format_ops *output_shards;
    char *wids_index;  /* name of the output's index for wids (wids.h), or NULL */
    bool dali_indexes; /* one for DALI beside each output shard (dali.h) */
    struct name_template *output_template; /* NULL with an external key map, which has them */
    char *ekm_file;   /* where the external key map is: a URL of HTTP, or an object's; or NULL */
    char *ekm_bucket; /* of an object: else NULL */
    char *ekm_object;
    char *ekm_separator; /* "\t" */
    enum sort_ekm_keys ekm_keys;
    uint64_t output_shard_size; /* bytes of tar; 0: total divided by the template's count */
    enum sort_algorithm algorithm;
    bool decreasing;
    uint64_t seed; /* shuffle; drawn by the primary where the request has none */
    bool seed_given;
    char *content_extension; /* content: of the member that holds the key, with its dot; or NULL */
    enum sort_content_type content_type;
    enum sort_key_rule key_rule;
    uint64_t max_mem_bytes;       /* of a target's tables; 0: the target's parameter */
    unsigned max_mem_percent;     /* the same, of the machine's memory; 0: not given */
    unsigned extract_concurrency; /* 0: the target decides */
    unsigned create_concurrency;
    bool dry_run;
    bool allow_empty; /* an input without records is no failure */
    char *description;
    enum sort_policy missing_shards;            /* default abort */
    enum sort_policy unreadable_shards;         /* damaged ones, or not understood: abort */
    enum sort_policy missing_keys;              /* content: records without a key: abort */
    enum sort_policy ekm_malformed_line;        /* lines that are none: abort */
    enum sort_policy ekm_missing_key;           /* records that the map says nothing of: abort */
    enum sort_policy duplicated_records;        /* a member name twice in one input shard: abort */
    enum sort_policy duplicated_output_records; /* a record name twice in one output shard: warn */
    /* The inputs are no archives: each is one record of one member (sort/shard/object_record.h).
     * Of the job `archive` alone, as what follows; no request of POST /v1/sort has it. */
    bool plain_objects;
    char *member_strip;   /* what all names begin with, and members do not; or NULL */
    char *member_prepend; /* text before the names of members; or NULL */
    bool member_bare;     /* members have no directories of their objects */
    bool makes_empty;     /* without any record there is an output of the first name all the same */
};

#define SORT_SHARDS_MAX (1U << 24) /* input shards of one job */
#define SORT_DESCRIPTION_MAX 4096  /* bytes */
#define SORT_CONCURRENCY_MAX 1024

/* E_SPEC for what is wrong, E_UNSUPPORTED for what this release does not do; both name the field.
 */
int sort_spec_parse(json_t *doc, struct sort_spec **out, struct error *err);
/* What was found by the input of the request: 0, or E_NOTHING_MATCHED where that is no record, and
 * the request does not allow it. */
int sort_spec_check_found(const struct sort_spec *s, uint64_t shards, uint64_t records,
                          struct error *err);
json_t *sort_spec_json(const struct sort_spec *s); /* parses to an equal spec */
void sort_spec_free(struct sort_spec *s);
DEFINE_CLEANUP(struct sort_spec, sort_spec_free);
