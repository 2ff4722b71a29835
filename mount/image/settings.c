#include "mount/image/settings.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/parse.h"

#define SCHEME "dfc://"
#define BUFFER_LEAST (8u << 20)
#define CACHE_IDLE_MS (3600u * 1000)

const struct image_settings image_settings_default = {
    .retries = 20,
    .parallel = 16,
    .readahead_bytes = 32u << 20,
    .buffer_bytes = 300u << 20,
    .cache_bytes = 100ull << 30,
    .cache_free_percent = 10,
};

static int take_url(struct image_settings *s, const char *value, struct error *err)
{
    const size_t scheme = strlen(SCHEME);
    if (strncmp(value, SCHEME, scheme) != 0 || value[scheme] == '/' || value[scheme] == '\0')
        return error_set(err, E_INVALID, "url '%s' is not dfc://BUCKET/NAME.vdsc or dfc://BUCKET",
                         value);
    const char *bucket = value + scheme;
    const size_t len = strcspn(bucket, "/");
    free(s->bucket);
    free(s->key);
    s->bucket = xstrndup(bucket, len);
    s->key = bucket[len] == '/' && bucket[len + 1] != '\0' ? xstrdup(bucket + len + 1) : NULL;
    return 0;
}

/* False: no text has this key. */
static bool take_text(struct image_settings *s, const char *key, const char *value)
{
    const struct {
        const char *key;
        char **to;
    } texts[] = {
        {"endpoint", &s->endpoint},
        {"profile", &s->profile},
        {"ca-file", &s->ca_file},
        {"cache-dir", &s->cache_directories},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(key, texts[i].key) != 0)
            continue;
        free(*texts[i].to);
        *texts[i].to = xstrdup(value);
        return true;
    }
    return false;
}

enum form { NUMBER, SIZE, SWITCH };

static int parse(enum form form, const char *value, uint64_t *to, struct error *err)
{
    if (form == SWITCH && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)) {
        *to = value[0] == 't';
        return 0;
    }
    return form == SIZE ? parse_size(value, to, err) : parse_u64(value, to, err);
}

static int take_number(struct image_settings *s, const char *key, const char *value,
                       struct error *err)
{
    const struct {
        const char *key;
        uint64_t *to;
        enum form form;
        uint64_t least, most;
    } numbers[] = {
        {"insecure", &s->insecure, SWITCH, 0, 1},
        {"retries", &s->retries, NUMBER, 0, 1000},
        {"parallel", &s->parallel, NUMBER, 1, 256},
        {"cache-free", &s->cache_free_percent, NUMBER, 0, 99},
        {"buffer-size", &s->buffer_bytes, SIZE, BUFFER_LEAST, 1ull << 50},
        {"max-readahead", &s->readahead_bytes, SIZE, 0, 1ull << 40},
        {"cache-size", &s->cache_bytes, SIZE, 16u << 20, 1ull << 60},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t n;
        if (strcmp(key, numbers[i].key) != 0)
            continue;
        if (parse(numbers[i].form, value, &n, err) != 0)
            return error_wrap(err, "%s=%s", key, value);
        if (n < numbers[i].least || n > numbers[i].most)
            return error_set(err, E_INVALID, "%s=%s: it is out of range", key, value);
        *numbers[i].to = n;
        return 0;
    }
    return error_set(err, E_INVALID, "there is no parameter '%s'", key);
}

int image_settings_take(struct image_settings *s, const char *key, const char *value,
                        struct error *err)
{
    if (strcmp(key, "url") == 0)
        return take_url(s, value, err);
    return take_text(s, key, value) ? 0 : take_number(s, key, value, err);
}

int image_settings_client(const struct image_settings *s, const char *agent,
                          struct dfc_client **client, struct dfc_error *err)
{
    const struct dfc_client_options options = {
        .endpoints = s->endpoint,
        .attempts = (uint32_t)s->retries + 1,
        .idle_connections = (uint32_t)s->parallel + 4,
        .user_agent = agent,
        .cluster_key_file = "",
        .ca_file = s->ca_file,
        .profile = s->profile,
        .keep_token = true,
        .insecure = s->insecure != 0,
    };
    return dfc_client_open(&options, client, err);
}

struct objects_options image_settings_objects(const struct image_settings *s)
{
    return (struct objects_options){.buffer_bytes = s->buffer_bytes,
                                    .readahead_bytes = s->readahead_bytes,
                                    .fetchers = (unsigned)s->parallel,
                                    .cache_directories = s->cache_directories,
                                    .cache_bytes = s->cache_bytes,
                                    .cache_free_percent = s->cache_free_percent,
                                    .cache_idle_ms = CACHE_IDLE_MS};
}

void image_settings_done(struct image_settings *s)
{
    free(s->bucket);
    free(s->key);
    free(s->endpoint);
    free(s->profile);
    free(s->ca_file);
    free(s->cache_directories);
    *s = (struct image_settings){0};
}
