/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that say where they keep a variable of one of their threads, held against what is found
 * in their files and memory, and read by the code that runs in the kernel.
 */
#include "host/thread_context.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiled.h"
#include "fake_proc.h"
#include "host/contexts.h"
#include "host/process_int.h"
#include "test.h"

/* ---- what host/bpf/context.h asks for ---- */

struct kiln_walk_env {
    const struct kiln_peek *peek;
};

static int kiln_walk_read(struct kiln_walk_env *env, __u64 address, void *to, __u32 size)
{
    return kiln_peek(env->peek, address, to, size);
}

#include "host/bpf/context.h"

/* ---- programs ---- */

static const char library[] =
    "__thread char other[40];\n"
    "__attribute__((visibility(\"default\"))) __thread void *otel_thread_ctx_v1;\n"
    "void set(void *p) { otel_thread_ctx_v1 = p; other[1] = 1; }\n"
    "void *where(void) { return &otel_thread_ctx_v1; }\n";

/*
 * A thread tells its thread pointer and where it has the variable, then the program waits.  With
 * LOADED the library comes at run time, behind another that has variables too.
 */
static const char program[] =
    "#include <dlfcn.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\n"
    "static struct { unsigned char ids[24], valid, flags, size[2]; } record = "
    "{\"0123456789abcdefspan of\", 1, 0, {0, 0}};\n"
    "#ifdef LOADED\nstatic void (*set)(void *); static void *(*where)(void);\n"
    "#else\nvoid set(void *); void *where(void);\n#endif\n"
    "static void *thread(void *unused) {\n"
    "  void *pointer; char c; __asm__(\"mov %%fs:0, %0\" : \"=r\"(pointer));\n"
    "  set(&record); record.ids[23] = '!';\n"
    "  printf(\"%lx %lx\\n\", (long)pointer, (long)where()); fflush(stdout);\n"
    "  read(0, &c, 1); return unused; }\n"
    "int main(void) { pthread_t t;\n"
    "#ifdef LOADED\n  void *l = dlopen(LOADED, RTLD_NOW); if (!l) return 1;\n"
    "  *(void **)&set = dlsym(l, \"set\"); *(void **)&where = dlsym(l, \"where\");\n#endif\n"
    "  pthread_create(&t, 0, thread, 0); pthread_join(t, 0); return 0; }\n";

struct running {
    struct compiled compiled;
    pid_t pid;
    int input;
    uint64_t thread, variable; /* as it tells */
};

static bool compile(struct running *running, const char *command)
{
    *running = (struct running){.input = -1};
    compiled_init(&running->compiled);
    compiled_write(&running->compiled, "library.c", library);
    compiled_write(&running->compiled, "program.c", program);
    return compiled_run(&running->compiled, command);
}

static void start(struct running *running)
{
    char path[FOLDER_NAME + 16], line[64] = "";
    int in[2], out[2];
    FILE *told;

    snprintf(path, sizeof(path), "%s/made", running->compiled.folder);
    CHECK_OK(pipe2(in, O_CLOEXEC));
    CHECK_OK(pipe2(out, O_CLOEXEC));
    running->pid = fork();
    if (running->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        if (chdir(running->compiled.folder) == 0)
            execl(path, path, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    running->input = in[1];
    told = fdopen(out[0], "re");
    CHECK(fgets(line, sizeof(line), told));
    CHECK_EQ(sscanf(line, "%lx %lx", &running->thread, &running->variable), 2);
    fclose(told);
}

static void stop(struct running *running)
{
    if (running->input >= 0) {
        close(running->input);
        CHECK_EQ(waitpid(running->pid, NULL, 0), running->pid);
    }
    compiled_done(&running->compiled);
}

/* ---- finding ---- */

static void check_place(struct kiln_processes *processes, struct kiln_process *process,
                        const struct running *running, struct kiln_context_place *ret_place)
{
    struct kiln_record record = {0};
    struct kiln_peek peek;
    struct kiln_walk_env env = {&peek};
    __u64 address;
    int dir;

    CHECK(kiln_process_identity(processes, process));
    CHECK_OK(kiln_thread_context_find(processes, process, ret_place));
    CHECK_EQ(ret_place->era, 7);
    CHECK_OK(kiln_proc_open(processes, kiln_proc_of(process), &dir));
    CHECK_OK(kiln_peek_open(dir, &peek));
    CHECK_OK(kiln_context_locate(&env, ret_place, running->thread, &address));
    CHECK_EQ(address, running->variable);
    CHECK_OK(kiln_context_read(&env, ret_place, running->thread, &record));
    CHECK_EQ(memcmp(record.trace_id, "0123456789abcdef", 16), 0);
    CHECK_EQ(memcmp(record.span_id, "span of!", 8), 0);
    kiln_peek_close(&peek);
}

/* That what a command makes has it where it says; skips where it cannot be made here. */
static void check_found(const char *command, struct kiln_context_place *ret_place)
{
    struct kiln_processes *processes;
    struct kiln_process *process;
    struct running running;

    if (!compile(&running, command)) {
        stop(&running);
        SKIP("a compiler is not here");
    }
    start(&running);
    CHECK_OK(kiln_processes_new(&(struct kiln_processes_opts){0}, &processes));
    process = drawn_sample(processes, (uint32_t)running.pid, 0, 7);
    CHECK(process);
    check_place(processes, process, &running, ret_place);
    kiln_processes_free(processes);
    stop(&running);
}

#define LINKED(cc, how)                                                                            \
    cc " -shared -fPIC " how " -o libx.so library.c && " cc                                        \
       " -o made program.c -pthread -L. -lx -Wl,-rpath,'$ORIGIN'"
#define LOADED(cc, how)                                                                            \
    cc " -shared -fPIC " how " -o libx.so library.c && " cc                                        \
       " -o made program.c -DLOADED='\"./libx.so\"' -pthread -ldl"

TEST(thread_context, of_a_linked_library_is_found)
{
    struct kiln_context_place place;

    check_found(LINKED("gcc", "-mtls-dialect=gnu2"), &place);
    CHECK_EQ(place.module, 0);
    check_found(LINKED("gcc", "-ftls-model=global-dynamic"), &place);
    CHECK(place.module > 0);
    check_found(LINKED("gcc", "-ftls-model=initial-exec"), &place);
    CHECK_EQ(place.module, 0);
    check_found(LINKED("gcc", "-Wl,-Bsymbolic -ftls-model=global-dynamic"), &place);
}

TEST(thread_context, of_a_loaded_library_is_found)
{
    struct kiln_context_place place;

    check_found(LOADED("gcc", "-mtls-dialect=gnu2"), &place);
    check_found(LOADED("gcc", "-ftls-model=global-dynamic"), &place);
    CHECK(place.module > 0);
    CHECK_EQ(place.entry_bytes, KILN_CONTEXT_GLIBC);
    check_found(LOADED("gcc", "-s -Wl,-Bsymbolic -ftls-model=global-dynamic"), &place);
}

/* Too large for the room that glibc keeps for such: it goes into a block of its own. */
TEST(thread_context, of_a_loaded_library_with_much_is_found)
{
    struct kiln_context_place place;

    check_found(
        "sed -i 's/other.40./other[100000]/' library.c && " LOADED("gcc", "-mtls-dialect=gnu2"),
        &place);
    CHECK(place.module > 0);
    CHECK(place.generation > 0);
}

TEST(thread_context, of_a_program_is_found)
{
    struct kiln_context_place place;

    check_found("gcc -rdynamic -o made program.c library.c -pthread", &place);
    CHECK_EQ(place.module, 0);
    check_found("gcc -s -rdynamic -o made program.c library.c -pthread", &place);
    check_found("gcc -static -o made program.c library.c -pthread", &place);
    check_found("gcc -static-pie -fPIE -o made program.c library.c -pthread", &place);
}

TEST(thread_context, of_musl_is_found)
{
    struct kiln_context_place place;

    check_found("musl-gcc -static -o made program.c library.c", &place);
    check_found(LINKED("musl-gcc", "-mtls-dialect=gnu2"), &place);
    check_found(LOADED("musl-gcc", "-mtls-dialect=gnu2"), &place);
    CHECK_EQ(place.entry_bytes, KILN_CONTEXT_MUSL);
    check_found(LOADED("musl-gcc", "-ftls-model=global-dynamic"), &place);
}

TEST(thread_context, is_not_found_where_there_is_none)
{
    struct kiln_processes *processes;
    struct kiln_context_place place;
    struct kiln_process *process;

    CHECK_OK(kiln_processes_new(&(struct kiln_processes_opts){0}, &processes));
    process = drawn_sample(processes, (uint32_t)getpid(), 0, 7);
    CHECK(process);
    CHECK_EQ(kiln_thread_context_find(processes, process, &place), -ENOENT);
    kiln_processes_free(processes);
}

/* ---- words that no linker writes ---- */

static uint64_t words[4];

static int place_of(uint32_t kind, uint64_t first, uint64_t second,
                    struct kiln_context_place *place)
{
    struct kiln_tls_variable variable = {.kind = kind, .word = 8};
    int dir = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC), r;
    struct kiln_peek peek;

    words[0] = first;
    words[1] = second;
    CHECK_OK(kiln_peek_open(dir, &peek));
    r = kiln_thread_context_place(&variable, (uint64_t)(uintptr_t)words - 8, &peek, place);
    kiln_peek_close(&peek);
    close(dir);
    return r;
}

TEST(thread_context, words_that_are_not_filled_in_yet_are_no_place)
{
    struct kiln_context_place place;

    CHECK_EQ(place_of(KILN_TLS_OFFSET, 0, 0, &place), -EAGAIN);
    CHECK_EQ(place_of(KILN_TLS_PAIR, 0, 16, &place), -EAGAIN);
    CHECK_EQ(place_of(KILN_TLS_MODULE, 1 << 20, 0, &place), -EAGAIN);
    CHECK_EQ(place_of(KILN_TLS_DESCRIPTOR, 1, 0, &place), -EAGAIN);
    CHECK_EQ(place_of(KILN_TLS_DESCRIPTOR, 1, 0x1000, &place), -EAGAIN);
    CHECK_EQ(place_of(KILN_TLS_PAIR, 1, UINT64_MAX, &place), -EAGAIN);
    CHECK_OK(place_of(KILN_TLS_PAIR, 3, 16, &place));
    CHECK_EQ(place.module, 3);
    CHECK_EQ(place.offset, 16);
    CHECK_OK(place_of(KILN_TLS_DESCRIPTOR, 1, (uint64_t)-64, &place));
    CHECK_EQ(place.module, 0);
    CHECK_EQ(place.offset, -64);
}

/* ---- vectors and records that nobody should write ---- */

/* A thread pointer whose vector has two entries, the second of which has the variable at 8. */
struct made_thread {
    uint64_t self, vector_at;
    uint64_t head[2], vector[6]; /* glibc's */
    uint64_t block[2];
    uint8_t record[28];
};

static struct made_thread made;

static int read_made(struct kiln_context_place place, struct kiln_record *ret_record)
{
    int dir = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC), r;
    struct kiln_peek peek;
    struct kiln_walk_env env = {&peek};

    CHECK_OK(kiln_peek_open(dir, &peek));
    r = kiln_context_read(&env, &place, (uint64_t)(uintptr_t)&made, ret_record);
    kiln_peek_close(&peek);
    close(dir);
    return r;
}

static void make_thread(void)
{
    made = (struct made_thread){.head = {2},
                                .vector = {5, 0, UINT64_MAX, 0, (uintptr_t)made.block, 0},
                                .vector_at = (uintptr_t)made.vector,
                                .block = {0, (uintptr_t)made.record},
                                .record = "0123456789abcdefspan of!\1"};
}

TEST(thread_context, a_thread_tells_its_span_or_none)
{
    struct kiln_context_place place = {
        .offset = 8, .module = 2, .entry_bytes = KILN_CONTEXT_GLIBC, .generation = 5};
    struct kiln_record record = {0};

    make_thread();
    CHECK_OK(read_made(place, &record));
    CHECK_EQ(memcmp(record.span_id, "span of!", 8), 0);
    place.generation = 6; /* the block came later than the vector */
    CHECK_EQ(read_made(place, &record), -1);
    place.generation = 0;
    place.module = 1; /* not needed yet */
    CHECK_EQ(read_made(place, &record), -1);
    place.module = 3; /* behind the end */
    CHECK_EQ(read_made(place, &record), -1);
    place.module = 2;
    made.record[24] = 2; /* being written */
    CHECK_EQ(read_made(place, &record), -1);
    make_thread();
    memset(made.record, 0, 16);
    CHECK_EQ(read_made(place, &record), -1);
    make_thread();
    made.block[1] = 0;
    CHECK_EQ(read_made(place, &record), -1);
    made.block[1] = 12; /* nothing is there */
    CHECK_EQ(read_made(place, &record), -1);
    made.vector_at = 0;
    CHECK_EQ(read_made(place, &record), -1);
}

/* ---- when the kernel is told ---- */

static uint32_t n_put, n_dropped;

static int count_put(void *self, uint32_t pid, const struct kiln_context_place *place)
{
    (void)self, (void)pid;
    n_put++;
    return place->era == 7 ? 0 : -EINVAL;
}

static void count_drop(void *self, uint32_t pid, uint64_t era)
{
    (void)self, (void)pid;
    n_dropped += era == 7;
}

/* A context that says where threads keep theirs, published at a time. */
static struct kiln_process_context *context_of(const char *schema, uint64_t published_ns)
{
    struct kiln_process_context *context;
    char payload[128];
    int n = snprintf(
        payload, sizeof(payload), "\x12%c\x0a\x1athreadlocal.schema_version\x12%c\x0a%c%s",
        (char)(32 + strlen(schema)), (char)(2 + strlen(schema)), (char)strlen(schema), schema);

    CHECK_OK(kiln_process_context_decode((struct kiln_str){payload, (size_t)n}, &context));
    context->published_ns = published_ns;
    return context;
}

static void publishes(struct kiln_process *process, struct kiln_process_context *context)
{
    kiln_process_context_unref(process->context);
    process->context = context;
}

static void check_following(struct kiln_contexts *contexts, struct kiln_process *process)
{
    uint64_t now = 1;

    kiln_contexts_follow(contexts, process, now); /* it says nothing yet */
    CHECK_EQ(n_put, 0);
    publishes(process, context_of("nodejs_v1", 5));
    kiln_contexts_follow(contexts, process, now);
    CHECK_EQ(n_put, 0);
    publishes(process, context_of("tlsdesc_v1_dev", 6));
    for (int i = 0; i < 3; i++)
        kiln_contexts_follow(contexts, process, ++now);
    CHECK_EQ(n_put, 1);
    CHECK_EQ(contexts->n_placed, 1);
    process->version++; /* more code; but it was looked at just now */
    kiln_contexts_follow(contexts, process, ++now);
    CHECK_EQ(n_put, 1);
    kiln_contexts_follow(contexts, process, now + UINT64_C(6000000000));
    CHECK_EQ(n_put, 2);
    publishes(process, context_of("tls_v1", 7));
    kiln_contexts_follow(contexts, process, now);
    CHECK_EQ(n_put, 3);
    CHECK_EQ(n_dropped, 0);
    publishes(process, NULL);
    kiln_contexts_follow(contexts, process, now);
    CHECK_EQ(n_dropped, 1);
    CHECK_EQ(contexts->n_placed, 0);
}

TEST(contexts, the_kernel_is_told_while_a_process_says_so)
{
    struct kiln_contexts contexts = {.sink = {count_put, count_drop, NULL}};
    struct kiln_process *process;
    struct running running;

    n_put = n_dropped = 0;
    CHECK(compile(&running, "gcc -rdynamic -o made program.c library.c -pthread"));
    start(&running);
    CHECK_OK(kiln_processes_new(&(struct kiln_processes_opts){0}, &contexts.processes));
    process = drawn_sample(contexts.processes, (uint32_t)running.pid, 0, 7);
    CHECK(process && kiln_process_identity(contexts.processes, process));
    check_following(&contexts, process);
    kiln_processes_free(contexts.processes);
    stop(&running);
}

TEST(contexts, who_says_so_and_has_none_is_asked_again_in_a_while)
{
    struct kiln_contexts contexts = {.sink = {count_put, count_drop, NULL}};
    struct kiln_process *process;

    n_put = n_dropped = 0;
    CHECK_OK(kiln_processes_new(&(struct kiln_processes_opts){0}, &contexts.processes));
    process = drawn_sample(contexts.processes, (uint32_t)getpid(), 0, 7);
    CHECK(process);
    publishes(process, context_of("tls_v1", 5));
    for (uint64_t now = 1; now < 100; now++)
        kiln_contexts_follow(&contexts, process, now);
    CHECK_EQ(contexts.n_failed, 1);
    kiln_contexts_follow(&contexts, process, UINT64_C(600000000));
    CHECK_EQ(contexts.n_failed, 2);
    for (uint64_t now = 1; now < 3600; now++)
        kiln_contexts_follow(&contexts, process, now * 1000000000);
    CHECK(contexts.n_failed < 30);
    CHECK_EQ(n_put, 0);
    kiln_processes_free(contexts.processes);
}
