#include "proxy/ais/provider.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *scheme, *provider;
} rows[] = {
    {"s3://", "aws"},
    {"gs://", "gcp"},
    {"http://", "ht"},
    {"https://", "ht"},
};

bool provider_fits(const struct bucket *b, const char *provider)
{
    const char *backend = b->props.backend;
    if (provider[0] == '\0' || strcmp(provider, "ais") == 0)
        return true;
    for (size_t i = 0; backend != NULL && i < sizeof rows / sizeof *rows; i++) {
        if (strncmp(backend, rows[i].scheme, strlen(rows[i].scheme)) == 0)
            return strcmp(provider, rows[i].provider) == 0;
    }
    return false;
}
