#include "s3/uploads/part_sizes.h"

#include <stdio.h>
#include <string.h>

#include "s3/uploads/complete_body.h"

#define PART_BYTES_MAX (5ULL << 30)

/* --- writing ---------------------------------------------------------------------------------- */

static size_t run_at(const uint64_t *sizes, size_t count, size_t at)
{
    size_t run = 1;
    while (at + run < count && sizes[at + run] == sizes[at])
        run++;
    return run;
}

bool part_sizes_print(const uint64_t *sizes, size_t count, char out[static PART_SIZES_MAX])
{
    size_t len = 0;
    if (count == 0 || count > S3_PARTS_MAX)
        return false;
    for (size_t at = 0, run; at < count; at += run) {
        run = run_at(sizes, count, at);
        int written = snprintf(out + len, PART_SIZES_MAX - len, "%s%zux%llu", at > 0 ? "," : "",
                               run, (unsigned long long)sizes[at]);
        if (written < 0 || (size_t)written >= PART_SIZES_MAX - len)
            return false;
        len += (size_t)written;
    }
    return true;
}

/* --- reading ---------------------------------------------------------------------------------- */

struct run {
    uint64_t count, size;
};

/* Digits without a zero before them. */
static bool read_number(const char **at, uint64_t max, uint64_t *out)
{
    const char *text = *at;
    size_t len = strspn(text, "0123456789");
    *out = 0;
    if (len == 0 || (len > 1 && text[0] == '0'))
        return false;
    for (size_t i = 0; i < len; i++) {
        *out = *out * 10 + (uint64_t)(text[i] - '0');
        if (*out > max)
            return false;
    }
    *at = text + len;
    return true;
}

/* *at: behind the run, and behind the comma that follows. */
static bool read_run(const char **at, struct run *out)
{
    if (!read_number(at, S3_PARTS_MAX, &out->count) || out->count == 0 || **at != 'x')
        return false;
    ++*at;
    if (!read_number(at, PART_BYTES_MAX, &out->size))
        return false;
    if (**at == ',' && (*at)[1] != '\0')
        ++*at;
    else if (**at != '\0')
        return false;
    return true;
}

bool part_sizes_parse(const char *text, struct part_sizes *out)
{
    struct run run, before = {.count = 0};
    *out = (struct part_sizes){.count = 0};
    if (*text == '\0' || strlen(text) >= PART_SIZES_MAX)
        return false;
    while (*text != '\0') {
        if (!read_run(&text, &run) || (before.count > 0 && run.size == before.size) ||
            run.count > S3_PARTS_MAX - out->count)
            return false;
        out->count += (unsigned)run.count;
        out->total += run.count * run.size;
        before = run;
    }
    return true;
}

bool part_sizes_find(const char *text, unsigned number, struct part_span *out)
{
    struct run run;
    uint64_t before = 0;
    *out = (struct part_span){.offset = 0};
    while (number > 0 && *text != '\0' && read_run(&text, &run)) {
        if (number - 1 < before + run.count) {
            out->offset += (number - 1 - before) * run.size;
            out->size = run.size;
            return true;
        }
        before += run.count;
        out->offset += run.count * run.size;
    }
    return false;
}
