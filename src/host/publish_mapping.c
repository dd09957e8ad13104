/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings of batches: which file a location is in.
 *
 * One a file: its segment with code.  Its memory is where the file itself wants to be (p_vaddr),
 * its offset is the segment's, so that a location's address is the file's own, whatever process it
 * was found in, and address - memory_start + file_offset is the place in the file, as every reader
 * of OTLP and pprof reckons.  (A file may have more such segments; what is there has its address
 * without a range.)  core/code.h moves such a mapping to its offset and the addresses with it.
 *
 * OTLP wants a build id of every mapping: without one (a BPF program) there is no mapping.  The
 * kernel has its own in a note, its modules each have one (symbol/elf_note.c).
 */
#include <fcntl.h>
#include <stdio.h>

#include "base/bytetext.h"
#include "host/procfs.h"
#include "host/publish_int.h"

static uint32_t hex_attr(struct run *run, const uint8_t *id, size_t n)
{
    char text[2 * KILN_BUILD_ID_MAX];

    kiln_hex_encode(id, n, text);
    return publish_attr(run, KILN_STR("process.executable.build_id.gnu"),
                        (struct kiln_str){text, 2 * n});
}

/* ---- files ---- */

static uint32_t build_ids(struct run *run, const struct kiln_object *object)
{
    uint32_t attrs[3], n = 0;

    if (object->build_id_len)
        attrs[n++] = hex_attr(run, object->build_id, object->build_id_len);
    if (object->go_build_id[0])
        attrs[n++] = publish_attr(run, KILN_STR("process.executable.build_id.go"),
                                  kiln_str_of(object->go_build_id));
    if (object->file_hash[0])
        attrs[n++] = publish_attr(run, KILN_STR("process.executable.build_id.htlhash"),
                                  kiln_str_of(object->file_hash));
    return n ? kiln_builder_set(run->b, attrs, n, NULL) : 0;
}

uint32_t publish_mapping(struct run *run, const struct kiln_object *object, uint64_t address,
                         struct kiln_mapping *ret_mapping)
{
    struct kiln_mapping mapping = {.attrs = build_ids(run, object)};

    if (!mapping.attrs)
        return 0;
    mapping.filename = publish_text(run, kiln_str_of(object->path));
    if (address >= object->code_address && address - object->code_address < object->code_size) {
        mapping.start = object->code_address;
        mapping.limit = object->code_address + object->code_size;
        mapping.offset = object->code_offset;
    }
    *ret_mapping = mapping;
    return kiln_builder_mapping(run->b, &mapping);
}

/* ---- the kernel ---- */

/* The build id in a file of notes; 0: none. */
static uint8_t read_note(const char *path, uint8_t id[KILN_BUILD_ID_MAX])
{
    char notes[1024];
    int64_t n = kiln_procfs_read(AT_FDCWD, path, notes, sizeof(notes));
    uint8_t len;

    return n > 0 && kiln_notes_build_id(notes, (size_t)n, id, &len) == 0 ? len : 0;
}

static uint32_t make_kernel_mapping(struct run *run, struct kiln_str module)
{
    struct kiln_mapping mapping = {0};
    uint8_t id[KILN_BUILD_ID_MAX];
    char path[128], name[64];
    uint32_t attr;
    size_t n;

    if (module.len > sizeof(name) - 3 || memchr(module.ptr ? module.ptr : "", '/', module.len))
        return 0;
    snprintf(name, sizeof(name), module.len ? "[%.*s]" : "[kernel]%.*s", KILN_STR_ARG(module));
    snprintf(path, sizeof(path), "/sys/module/%.*s/notes/.note.gnu.build-id", KILN_STR_ARG(module));
    n = read_note(module.len ? path : "/sys/kernel/notes", id);
    if (!n)
        return 0;
    attr = hex_attr(run, id, n);
    mapping.attrs = kiln_builder_set(run->b, &attr, 1, NULL);
    mapping.filename = publish_text(run, kiln_str_of(name));
    return kiln_builder_mapping(run->b, &mapping);
}

uint32_t publish_kernel_mapping(struct run *run, struct kiln_str module)
{
    uint32_t name = publish_text(run, module), mapping;

    for (uint32_t i = 0; i < run->n_modules; i++)
        if (run->modules[i].name == name)
            return run->modules[i].mapping;
    mapping = make_kernel_mapping(run, module);
    if (run->n_modules < MODULES_MAX) {
        run->modules[run->n_modules].name = name;
        run->modules[run->n_modules++].mapping = mapping;
    }
    return mapping;
}
