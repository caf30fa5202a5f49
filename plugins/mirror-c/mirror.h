// What the files of this plugin share.

#ifndef MIRROR_H
#define MIRROR_H

#include "oarlock.h"

#define MIRROR_TO "/metadata/annotations/oarlock.dev~1mirror-to"
#define MIRRORED_FROM "/metadata/annotations/oarlock.dev~1mirrored-from"

// A kind of object that mirror copies.
typedef struct {
    // The `kind` of an object.
    const char *name;
    oarlock_gvr target;
    // The name of the lister.
    const char *lister;
    // The name of the subscription to sources, and of their index by annotation.
    const char *sources;
    // The name of the subscription to copies, and of their index by source.
    const char *copies;
    // The fields of a source that a copy has, beside `type`.
    const char *const *content;
} kind_t;

enum { N_KINDS = 2 };
extern const kind_t KINDS[N_KINDS];

// A list of texts.
typedef struct {
    const char **items;
    size_t len;
    size_t capacity;
} texts_t;

void texts_add(texts_t *texts, const char *text);
bool texts_contain(const texts_t *texts, const char *text);

// === source.c: the namespaces that a source asks to be copied to ===

// Reads the namespaces that `*` does not include from the configuration.
oarlock_error excluded_namespaces(texts_t *excluded);

// Adds the existing namespaces that a source asks for, except its own: none if it is not annotated, is being
// deleted, or is a copy.
oarlock_error targets_of(const char *source, const char *own_namespace, texts_t *targets);

// Parses the `namespace/name` in the annotation of a copy. Returns false for any other text.
bool parse_source(const char *text, oarlock_key *source);

// === copy.c: the content of a copy ===

// Returns the value of the annotation of a copy.
const char *annotation_of(oarlock_key source);

// Returns the copy of a source for a namespace.
const char *copy_of(const kind_t *kind, const char *source, oarlock_key key, const char *ns);

// Returns whether an object is annotated as a copy of this source.
bool belongs_to(const char *object, oarlock_key source);

// Returns whether the type of a Secret differs. The API server does not allow to change it, so the copy must
// be created again.
bool is_of_another_type(const char *copy, const char *source);

// Returns the merge patch that makes a copy equal to its source; NULL if it is equal already.
const char *difference(const kind_t *kind, const char *copy, const char *source);

// === reconcile.c: the writes ===

// Makes the copies of one source match its annotation. A source that does not exist has no copies.
oarlock_error reconcile_source(const kind_t *kind, oarlock_key source);

#endif
