/* SPDX-License-Identifier: Apache-2.0 */
/* Texts lie one behind the other, those of the last frame at the end: so it can be replaced. */
#include <string.h>

#include "symbol/clean.h"
#include "symbol/names_int.h"
#include "symbol/v8_name.h"

enum { TEXTS_MOST = 3 * KILN_SYMTAB_NAME_MAX }; /* of one frame */

void kiln_frames_clear(struct kiln_frames *frames)
{
    frames->n = frames->n_text = frames->last = 0;
}

static struct kiln_str add_text(struct kiln_frames *frames, struct kiln_str text,
                                struct kiln_str suffix)
{
    char *to = frames->text + frames->n_text;
    size_t n = kiln_name_clean(text, to, KILN_SYMTAB_NAME_MAX - suffix.len);

    if (n == 0)
        return KILN_STR_NONE;
    memcpy(to + n, suffix.ptr ? suffix.ptr : "", suffix.len);
    n += suffix.len;
    frames->n_text += (uint32_t)n;
    return (struct kiln_str){to, n};
}

static void drop_text(struct kiln_frames *frames, struct kiln_str *text)
{
    frames->n_text -= (uint32_t)text->len;
    *text = KILN_STR_NONE;
}

void kiln_frames_add(struct kiln_frames *frames, const struct kiln_name_frame *frame,
                     struct kiln_str suffix)
{
    struct kiln_name_frame *to;

    if (frame->function.len == 0)
        return;
    if (frames->n == KILN_NAME_FRAMES_MAX ||
        (frames->n > 0 && KILN_FRAMES_TEXT - frames->n_text < TEXTS_MOST)) {
        frames->n--;
        frames->n_text = frames->last;
    }
    frames->last = frames->n_text;
    to = frames->frames + frames->n++;
    *to = *frame;
    to->function = add_text(frames, frame->function, suffix);
    to->system_name = add_text(frames, frame->system_name, suffix);
    if (kiln_str_eq(to->function, to->system_name))
        drop_text(frames, &to->system_name);
    to->file = add_text(frames, frame->file, KILN_STR_NONE);
}

void kiln_frame_read_v8(struct kiln_name_frame *frame, char *buffer)
{
    frame->system_name = frame->function;
    frame->function = kiln_v8_name(frame->function, buffer, KILN_SYMTAB_NAME_MAX);
    (void)kiln_v8_name_place(frame->function, &frame->file, &frame->start_line);
}
