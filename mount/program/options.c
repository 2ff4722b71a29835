#include "mount/program/options.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/parse.h"
#include "mount/program/restarts.h"
#include "mount/volume/format.h"
#include "mount/write/writer.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

enum kind { TEXT, COUNT, SIZE, DURATION, MODE, BOOL };

struct row {
    const char *name;
    enum kind kind;
    size_t at; /* in struct options */
    uint64_t least, most;
    bool no_volume; /* mounts of volumes do not have it */
};

#define MODE_DEFAULT UINT64_MAX /* as `writable` says */

#define AT(field) offsetof(struct options, field)

static const struct row rows[] = {
    {"bucket", TEXT, AT(bucket), 0, 0, false},
    {"list", TEXT, AT(list), 0, 0, false},
    {"endpoint", TEXT, AT(endpoint), 0, 0, false},
    {"profile", TEXT, AT(profile), 0, 0, false},
    {"ca-file", TEXT, AT(ca_file), 0, 0, false},
    {"insecure", BOOL, AT(insecure), 0, 0, false},
    {"mode", TEXT, AT(mode), 0, 0, true},
    {"retries", COUNT, AT(retries), 0, 1000, false},
    {"idle-timeout", DURATION, AT(idle_timeout_ms), 1, UINT32_MAX, false},
    {"buffer-size", SIZE, AT(buffer_bytes), 8 * MIB, 1ull << 50, false},
    {"max-readahead", SIZE, AT(readahead_bytes), 0, 1ull << 40, false},
    {"cache-dir", TEXT, AT(cache_directories), 0, 0, false},
    {"cache-size", SIZE, AT(cache_bytes), 16 * MIB, 1ull << 60, false},
    {"cache-free", COUNT, AT(cache_free_percent), 0, 99, false},
    {"cache-idle", DURATION, AT(cache_idle_ms), 1, 365ull * 24 * 3600 * 1000, false},
    {"cache-group", TEXT, AT(cache_group), 0, 0, false},
    {"group-key-file", TEXT, AT(group_key_file), 0, 0, false},
    {"group-refresh", DURATION, AT(group_refresh_ms), 100, 3600ull * 1000, false},
    {"group-connect", DURATION, AT(group_connect_ms), 1, 60000, false},
    {"group-wait", DURATION, AT(group_wait_ms), 1, 600000, false},
    {"no-sharing", BOOL, AT(no_sharing), 0, 0, false},
    {"no-passthrough", BOOL, AT(no_passthrough), 0, 0, true},
    {"writable", BOOL, AT(writable), 0, 0, false},
    {"read-only", BOOL, AT(read_only), 0, 0, false},
    {"write-buffer", SIZE, AT(write_bytes), WRITER_PART_MIN, 1ull << 50, false},
    {"part-size", SIZE, AT(part_bytes), WRITER_PART_MIN, 1ull << 30, true},
    {"segment-size", SIZE, AT(segment_bytes), 64 * 1024, GIB, true},
    {"refresh", DURATION, AT(refresh_ms), 100, 3600ull * 1000, true},
    {"write-wait", DURATION, AT(write_wait_ms), 0, 24ull * 3600 * 1000, true},
    {"parallel", COUNT, AT(parallel), 1, 256, false},
    {"uploads", COUNT, AT(uploads), 1, 256, false},
    {"attr-ttl", DURATION, AT(attr_ttl_ms), 0, 365ull * 24 * 3600 * 1000, false},
    {"entry-ttl", DURATION, AT(entry_ttl_ms), 0, 365ull * 24 * 3600 * 1000, false},
    {"uid", COUNT, AT(uid), 0, UINT32_MAX - 1, true},
    {"gid", COUNT, AT(gid), 0, UINT32_MAX - 1, true},
    {"file-mode", MODE, AT(file_mode), 0, 0777, true},
    {"dir-mode", MODE, AT(directory_mode), 0, 0777, true},
    {"allow-other", BOOL, AT(allow_other), 0, 0, false},
    {"foreground", BOOL, AT(foreground), 0, 0, false},
    {"log-file", TEXT, AT(log_file), 0, 0, false},
    {"restarts", COUNT, AT(restarts), 0, RESTARTS_MAX, false},
    {"timeout", DURATION, AT(timeout_ms), 0, 365ull * 24 * 3600 * 1000, false},
    {"grace", DURATION, AT(grace_ms), 0, 365ull * 24 * 3600 * 1000, false},
    {"delete", BOOL, AT(delete_found), 0, 0, false},
    {"read", BOOL, AT(read_all), 0, 0, false},
    {"repair", BOOL, AT(repair), 0, 0, false},
    {"check", BOOL, AT(check), 0, 0, false},
    {"trash-days", COUNT, AT(trash_days), 0, VOLUME_TRASH_DAYS_MAX, true},
    {"capacity", SIZE, AT(capacity_bytes), 0, INT64_MAX / 2, true},
    {"inodes", COUNT, AT(inodes), 0, INT64_MAX / 2, true},
    {"skip-trash", BOOL, AT(skip_trash), 0, 0, true},
    {"dump-every", DURATION, AT(dump_every_ms), 0, 365ull * 24 * 3600 * 1000, false},
    {"dump-keep", COUNT, AT(dump_keep), 1, 100000, false},
    {"help", BOOL, AT(help), 0, 0, false},
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
        o->given |= 1ull << i;
        return row_take(row, o, value, err);
    }
    return error_set(err, E_INVALID, "there is no flag --%s", text);
}

static const struct {
    const char *verb;
    size_t least, most; /* words behind it */
    const char *words;
} verbs[] = {
    {"mount", 2, 2, "URL DIR"},
    {"mount-image", 2, 2, "dfc://BUCKET/NAME.vdsc DIR"},
    {"mount-plogs", 2, 2, "dfc://BUCKET[/PREFIX] DIR"},
    {"umount", 1, 1, "DIR"},
    {"info", 1, 1, "PATH"},
    {"format", 2, 2, "META-URL NAME"},
    {"warmup", 0, OPTIONS_PATHS_MOST - 1, "PATH…"},
    {"stats", 1, 1, "DIR"},
    {"cache", 2, 3, "ls|drain GROUP [MEMBER]"},
    {"gc", 1, 1, "META-URL"},
    {"fsck", 1, 1, "META-URL"},
    {"dump", 2, 2, "META-URL FILE"},
    {"load", 2, 2, "META-URL FILE|URL"},
    {"rmr", 1, OPTIONS_PATHS_MOST - 1, "PATH…"},
    {"clone", 2, 2, "SRC DST"},
    {"trash", 2, OPTIONS_PATHS_MOST - 1, "ls|restore DIR [NAME…]"},
    {"config", 1, 1, "META-URL"},
    {"quota", 2, 3, "set|get|rm|ls|check META-URL [PATH]"},
};

/* "'mount', 'umount'": as many as there is room for. */
static const char *verbs_shown(char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs && used < size; i++)
        used +=
            (size_t)snprintf(out + used, size - used, "%s'%s'", i > 0 ? ", " : "", verbs[i].verb);
    return out;
}

static int format_words(struct options *o, struct error *err)
{
    o->name = o->paths[1];
    o->directory = NULL;
    return o->bucket != NULL ? 0 : error_set(err, E_INVALID, "format needs --bucket dfc://BUCKET");
}

/* o->paths has all words, of which the first is the verb. */
static int words_check(struct options *o, struct error *err)
{
    char shown[512];
    if (o->help)
        return 0;
    if (o->path_count == 0)
        return error_set(err, E_INVALID, "a command is missing: %s",
                         verbs_shown(shown, sizeof shown));
    size_t count = --o->path_count;
    o->verb = o->paths[0];
    memmove(o->paths, o->paths + 1, (count + 1) * sizeof *o->paths);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(verbs[i].verb, o->verb) != 0)
            continue;
        if (count > verbs[i].most)
            return error_set(err, E_INVALID, "'%s' is one word too many", o->paths[verbs[i].most]);
        if (count < verbs[i].least)
            return error_set(err, E_INVALID, "expected '%s %s'", o->verb, verbs[i].words);
        o->url = count == 2 ? o->paths[0] : NULL;
        o->directory = count > 0 ? o->paths[count - 1] : NULL;
        if (count == 0 && o->list == NULL)
            return error_set(err, E_INVALID, "expected '%s %s' or --list FILE", o->verb,
                             verbs[i].words);
        return strcmp(o->verb, "format") == 0 ? format_words(o, err) : 0;
    }
    return error_set(err, E_INVALID, "there is no command '%s': expected %s", o->verb,
                     verbs_shown(shown, sizeof shown));
}

bool options_given(const struct options *o, const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, name) == 0)
            return (o->given >> i & 1) != 0;
    }
    assert(false); /* a row has this name */
    return false;
}

bool options_of_volume(const struct options *o)
{
    return o->url != NULL && strcmp(o->verb, "mount") == 0 && strstr(o->url, "://") != NULL &&
           strncmp(o->url, "dfc://", 6) != 0;
}

bool options_by_tcmu(const struct options *o)
{
    return o->mode != NULL && strcmp(o->mode, "tcmu") == 0;
}

/* A flag that does nothing without something else. */
static int needs_check(const struct options *o, struct error *err)
{
    const bool is_volume = options_of_volume(o);
    const bool in_bucket = strcmp(o->verb, "mount") == 0 && !is_volume;
    const bool caches = o->cache_directories != NULL, writes = o->writable || !in_bucket;
    const struct {
        const char *flag, *other;
        bool is_met;
    } needs[] = {
        {"cache-size", "--cache-dir", caches},
        {"cache-free", "--cache-dir", caches},
        {"cache-idle", "--cache-dir", caches},
        {"no-passthrough", "--cache-dir", caches},
        {"part-size", "--writable", writes},
        {"write-wait", "--writable", writes},
        {"write-buffer", "--writable", writes},
        {"group-key-file", "--cache-group", o->cache_group != NULL},
        {"dump-every", "a volume: its META-URL", is_volume},
        {"dump-keep", "a volume: its META-URL", is_volume},
    };
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        if (!needs[i].is_met && options_given(o, needs[i].flag))
            return error_set(err, E_INVALID, "--%s needs %s", needs[i].flag, needs[i].other);
    }
    return 0;
}

static int flags_check(const struct options *o, struct error *err)
{
    static_assert(sizeof rows / sizeof *rows <= 64, "one bit each");
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !o->help && options_of_volume(o); i++) {
        if (rows[i].no_volume && (o->given >> i & 1) != 0)
            return error_set(err, E_INVALID, "--%s is not for volumes: omit it", rows[i].name);
    }
    if (o->mode != NULL && strcmp(o->mode, "fuse") != 0 && !options_by_tcmu(o))
        return error_set(err, E_INVALID, "there is no --mode %s: expected fuse or tcmu", o->mode);
    if (options_by_tcmu(o) && strcmp(o->verb, "mount-image") != 0)
        return error_set(err, E_INVALID, "--mode tcmu is for images alone: omit it");
    if (o->cache_group != NULL && o->cache_group[0] == '\0')
        return error_set(err, E_INVALID, "--cache-group is empty: give the name of a group");
    if (o->writable && o->read_only)
        return error_set(err, E_INVALID, "--writable and --read-only exclude each other");
    return !o->help && strncmp(o->verb, "mount", 5) == 0 ? needs_check(o, err) : 0;
}

static bool is_of_plogs(const struct options *o)
{
    return o->verb != NULL && strcmp(o->verb, "mount-plogs") == 0;
}

static int writing_check(struct options *o, struct error *err)
{
    if (o->file_mode == MODE_DEFAULT)
        o->file_mode = o->writable ? 0644 : 0444;
    if (o->directory_mode == MODE_DEFAULT)
        o->directory_mode = o->writable || is_of_plogs(o) ? 0755 : 0555;
    if (!is_of_plogs(o) && o->part_bytes > o->write_bytes)
        return error_set(err, E_INVALID,
                         "--part-size is more than --write-buffer, which has "
                         "whole parts: raise the buffer");
    return 0;
}

int options_parse(struct options *o, int argc, char *const *argv, uint64_t uid, uint64_t gid,
                  struct error *err)
{
    *o = (struct options){
        .retries = 20,
        .buffer_bytes = 300 * MIB,
        .readahead_bytes = 32 * MIB,
        .cache_bytes = 100 * GIB,
        .cache_free_percent = 10,
        .cache_idle_ms = 3600ull * 1000,
        .group_refresh_ms = 5000,
        .group_connect_ms = 100,
        .group_wait_ms = 1000,
        .write_bytes = 512 * MIB,
        .part_bytes = 16 * MIB,
        .write_wait_ms = 30000,
        .segment_bytes = 16 * MIB,
        .refresh_ms = 20000,
        .parallel = 16,
        .uploads = 8,
        .attr_ttl_ms = 1000,
        .entry_ttl_ms = 1000,
        .uid = uid,
        .gid = gid,
        .file_mode = MODE_DEFAULT,
        .directory_mode = MODE_DEFAULT,
        .timeout_ms = 60000,
        .grace_ms = 3600ull * 1000,
        .restarts = 3,
        .dump_every_ms = 3600ull * 1000,
        .dump_keep = 48,
        .trash_days = OPTIONS_AS_IT_IS,
        .capacity_bytes = OPTIONS_AS_IT_IS,
        .inodes = OPTIONS_AS_IT_IS,
    };
    for (int i = 1, used = 1; i < argc; i += used) {
        used = 1;
        if (strncmp(argv[i], "--", 2) == 0) {
            int rc = flag_take(o, argv[i] + 2, i + 1 < argc ? argv[i + 1] : NULL, &used, err);
            if (rc != 0)
                return rc;
        } else if (o->path_count < OPTIONS_PATHS_MOST) {
            o->paths[o->path_count++] = argv[i];
        } else {
            return error_set(err, E_INVALID, "'%s' is one word too many", argv[i]);
        }
    }
    int rc = words_check(o, err);
    if (rc == 0)
        rc = flags_check(o, err);
    return rc == 0 ? writing_check(o, err) : rc;
}
