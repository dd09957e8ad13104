/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object_int - the table of objects, as the sources of host/process.h use it.
 */
#ifndef KILN_HOST_OBJECT_INT_H
#define KILN_HOST_OBJECT_INT_H

#include <sys/stat.h>

#include "host/object.h"

struct kiln_objects;
struct kiln_metrics;

/*
 * `max`: files open at once; 0: 2,048, or half of what this process may open.  `weight_max`: bytes
 * of their headers and unwind tables in memory.
 */
KILN_CHECK int kiln_objects_new(uint32_t max, uint64_t weight_max, struct kiln_metrics *metrics,
                                struct kiln_objects **ret_objects);
/* Objects that somebody else still holds live on, without a file. */
void kiln_objects_free(struct kiln_objects *objects);
void kiln_objects_on_gone(struct kiln_objects *objects,
                          void (*on_gone)(void *context, struct kiln_object *object),
                          void *context);

/*
 * The object of an open regular file, made if it is not known, held for the caller.  Takes the
 * file, also on failure.
 */
KILN_CHECK int kiln_objects_take(struct kiln_objects *objects, int fd, const char *path,
                                 struct kiln_object **ret_object);

/*
 * The same of a file of this state that is read aside.  -ETIMEDOUT: it did not answer in time, and
 * nothing is known of it.
 */
KILN_CHECK int kiln_objects_take_aside(struct kiln_objects *objects, struct kiln_aside *aside,
                                       int fd, const char *path, const struct stat *st,
                                       struct kiln_object **ret_object);

/* The object of the file that has this state, if it is known and open, held; NULL. */
struct kiln_object *kiln_objects_get(struct kiln_objects *objects, const struct stat *st);

/* What is known of a mapped file that cannot be opened. */
struct kiln_object_hint {
    const char *path;
    const uint8_t *build_id;
    uint8_t build_id_len;
    uint64_t inode; /* where there is no build id; 0: not known */
};
bool kiln_object_agrees(const struct kiln_object *object, const struct kiln_object_hint *hint);
/* A known object that has the path and agrees, held for the caller; NULL. */
struct kiln_object *kiln_objects_known(struct kiln_objects *objects,
                                       const struct kiln_object_hint *hint);
/* The same, if it has a build id, is open, and was found beneath this root (object->root). */
struct kiln_object *kiln_objects_beneath(struct kiln_objects *objects,
                                         const struct kiln_object_hint *hint, uint64_t root);

/* The kernel's own image in every process, held for the caller; NULL: there is none. */
struct kiln_object *kiln_objects_vdso(struct kiln_objects *objects);

/*
 * Says that it is used.  False: its file was closed; open it again and kiln_objects_take() it.  It
 * is not said more than once a second.
 */
bool kiln_objects_use(struct kiln_objects *objects, struct kiln_object *object);

/* Memory of their headers and tables. */
uint64_t kiln_objects_bytes(const struct kiln_objects *objects);
/* Forgets objects that nobody has used for long. */
void kiln_objects_sweep(struct kiln_objects *objects);

/* ELF image of the vDSO in a file of its own.  -ENOENT: there is none. */
KILN_CHECK int kiln_vdso_file(int *ret_fd);

#endif /* KILN_HOST_OBJECT_INT_H */
