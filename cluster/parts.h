/* The four sub-documents as command.c, delta.c and state.c see them: their JSON forms, and the one
 * way in which each changes, a new sub-document that differs from the old in one item.
 *
 * x_with() puts an item in (replacing the one of its name), x_without() leaves one out; both set
 * `next` to a new sub-document with version + 1, which the caller owns.
 *
 * Internal to cluster/. */
#pragma once

#include "cluster/job.h"
#include "cluster/state.h"

void smap_with(const struct smap *old, const struct node *n, struct smap *next);
void smap_without(const struct smap *old, const char *id, struct smap *next);
/* The same nodes, and no earlier owners. */
void smap_settled(const struct smap *old, struct smap *next);
bool node_equal(const struct node *a, const struct node *b);
json_t *smap_to_json(const struct smap *m);
int smap_from_json(json_t *doc, struct smap *out, struct error *err);

void bmd_with(const struct bmd *old, const struct bucket *b, struct bmd *next);
void bmd_without(const struct bmd *old, const char *name, struct bmd *next);
/* The bucket `name` with another name, and all else as it was. */
void bmd_renamed(const struct bmd *old, const char *name, const char *new_name, struct bmd *next);
bool bucket_props_equal(const struct bucket_props *a, const struct bucket_props *b);
int bucket_from_json(json_t *doc, const char *path, struct arena *a, struct bucket *out,
                     struct error *err);
json_t *bmd_to_json(const struct bmd *b);
int bmd_from_json(json_t *doc, struct bmd *out, struct error *err);

void config_with(const struct cluster_config *old, const char *name, const char *text,
                 struct cluster_config *next);
void config_without(const struct cluster_config *old, const char *name,
                    struct cluster_config *next);
json_t *config_to_json(const struct cluster_config *c);
int config_from_json(json_t *doc, struct cluster_config *out, struct error *err);

/* A job that is known keeps its place; a new one goes to the end. */
void jobs_with(const struct jobs *old, const struct job *j, struct jobs *next);
void jobs_without(const struct jobs *old, const char *id, struct jobs *next);
json_t *jobs_to_json(const struct jobs *j);
int jobs_from_json(json_t *doc, struct jobs *out, struct error *err);

/* What must hold across the sub-documents of any snapshot that comes from outside. */
int state_check(const struct cluster_state *s, struct error *err);
bool job_equal(const struct job *a, const struct job *b);

/* E_JSON "field 'path.field' is missing" where a getter has left `value` NULL. */
int json_present(const void *value, const char *path, const char *field, struct error *err);
/* The n-th element of the array at `path` as an object, and its own path for messages. */
int json_item(json_t *array, const char *path, size_t n, json_t **out, char item_path[static 64],
              struct error *err);
