#include "mount/program/options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/parse.h"

#define MIB (1ull << 20)

enum kind { TEXT, COUNT, SIZE, DURATION, MODE, BOOL };

struct row {
    const char *name;
    enum kind kind;
    size_t at; /* in struct options */
    uint64_t least, most;
};

#define AT(field) offsetof(struct options, field)

static const struct row rows[] = {
    {"endpoint", TEXT, AT(endpoint), 0, 0},
    {"profile", TEXT, AT(profile), 0, 0},
    {"ca-file", TEXT, AT(ca_file), 0, 0},
    {"insecure", BOOL, AT(insecure), 0, 0},
    {"retries", COUNT, AT(retries), 0, 1000},
    {"idle-timeout", DURATION, AT(idle_timeout_ms), 1, UINT32_MAX},
    {"buffer-size", SIZE, AT(buffer_bytes), 8 * MIB, 1ull << 50},
    {"max-readahead", SIZE, AT(readahead_bytes), 0, 1ull << 40},
    {"parallel", COUNT, AT(parallel), 1, 256},
    {"attr-ttl", DURATION, AT(ttl_ms), 0, 365ull * 24 * 3600 * 1000},
    {"uid", COUNT, AT(uid), 0, UINT32_MAX - 1},
    {"gid", COUNT, AT(gid), 0, UINT32_MAX - 1},
    {"file-mode", MODE, AT(file_mode), 0, 0777},
    {"dir-mode", MODE, AT(directory_mode), 0, 0777},
    {"allow-other", BOOL, AT(allow_other), 0, 0},
    {"foreground", BOOL, AT(foreground), 0, 0},
    {"log-file", TEXT, AT(log_file), 0, 0},
    {"timeout", DURATION, AT(timeout_ms), 0, 365ull * 24 * 3600 * 1000},
    {"help", BOOL, AT(help), 0, 0},
};

static int mode_parse(const char *text, uint64_t *out, struct error *err)
{
    char *end;
    *out = strtoull(text, &end, 8);
    if (text[0] >= '0' && text[0] <= '7' && *end == '\0')
        return 0;
    return error_set(err, E_INVALID, "'%s' is not a mode, such as 0444", text);
}

static int value_parse(const struct row *row, const char *text, uint64_t *out, struct error *err)
{
    int rc = 0;
    if (row->kind == COUNT)
        rc = parse_u64(text, out, err);
    else if (row->kind == SIZE)
        rc = parse_size(text, out, err);
    else if (row->kind == DURATION)
        rc = parse_duration_ms(text, out, err);
    else
        rc = mode_parse(text, out, err);
    if (rc == 0 && (*out < row->least || *out > row->most))
        rc = error_set(err, E_INVALID, "%s is out of range: from %llu to %llu", text,
                       (unsigned long long)row->least, (unsigned long long)row->most);
    return rc == 0 ? 0 : error_wrap(err, "--%s", row->name);
}

static int row_take(const struct row *row, struct options *o, const char *value, struct error *err)
{
    char *at = (char *)o + row->at;
    if (row->kind == BOOL) {
        *(bool *)at = true;
        return value == NULL ? 0 : error_set(err, E_INVALID, "--%s takes no value", row->name);
    }
    if (value == NULL)
        return error_set(err, E_INVALID, "--%s needs a value", row->name);
    if (row->kind == TEXT) {
        *(const char **)at = value;
        return 0;
    }
    return value_parse(row, value, (uint64_t *)at, err);
}

/* --name=VALUE or --name VALUE; *used arguments. */
static int flag_take(struct options *o, const char *text, const char *next, int *used,
                     struct error *err)
{
    size_t len = strcspn(text, "=");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        if (strlen(row->name) != len || strncmp(row->name, text, len) != 0)
            continue;
        const char *value = text[len] == '=' ? text + len + 1 : NULL;
        *used = 1;
        if (value == NULL && row->kind != BOOL) {
            value = next;
            *used = 2;
        }
        return row_take(row, o, value, err);
    }
    return error_set(err, E_INVALID, "there is no flag --%s", text);
}

static int words_check(struct options *o, const char *const *words, size_t count, struct error *err)
{
    if (o->help)
        return 0;
    if (count == 3 && strcmp(words[0], "mount") == 0)
        o->url = words[1];
    else if (count != 2 || strcmp(words[0], "umount") != 0)
        return error_set(err, E_INVALID,
                         "expected 'mount dfc://BUCKET[/PREFIX] DIR' or 'umount DIR'");
    o->verb = words[0];
    o->directory = words[count - 1];
    return 0;
}

int options_parse(struct options *o, int argc, char *const *argv, uint64_t uid, uint64_t gid,
                  struct error *err)
{
    const char *words[3] = {NULL};
    size_t count = 0;
    *o = (struct options){
        .retries = 20,
        .buffer_bytes = 300 * MIB,
        .readahead_bytes = 32 * MIB,
        .parallel = 16,
        .ttl_ms = 1000,
        .uid = uid,
        .gid = gid,
        .file_mode = 0444,
        .directory_mode = 0555,
        .timeout_ms = 60000,
    };
    for (int i = 1, used = 1; i < argc; i += used) {
        used = 1;
        if (strncmp(argv[i], "--", 2) == 0) {
            int rc = flag_take(o, argv[i] + 2, i + 1 < argc ? argv[i + 1] : NULL, &used, err);
            if (rc != 0)
                return rc;
        } else if (count < sizeof words / sizeof *words) {
            words[count++] = argv[i];
        } else {
            return error_set(err, E_INVALID, "'%s' is one word too many", argv[i]);
        }
    }
    return words_check(o, words, count, err);
}
