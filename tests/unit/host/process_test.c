/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "fake_proc.h"
#include "test.h"

static struct fake_proc fake;
static struct kiln_processes *processes;
static uint32_t voided;
static uint32_t files;
static int64_t blocks;

static void on_void(void *context, struct kiln_process *process)
{
    (void)context;
    process->installed_version = 0;
    voided++;
}

static void begin(uint32_t processes_max)
{
    struct kiln_processes_opts opts = {.proc = fake.dir, .processes_max = processes_max};

    files = open_files();
    blocks = kiln_mem_live();
    fake_proc_init(&fake);
    CHECK_OK(kiln_processes_new(&opts, &processes));
    kiln_processes_on_void(processes, on_void, NULL);
    voided = 0;
}

static void end(void)
{
    kiln_processes_free(processes);
    fake_proc_done(&fake);
    CHECK_EQ(open_files(), files);
    CHECK_EQ(kiln_mem_live(), blocks);
}

TEST(process, an_exec_and_its_mappings_are_known_without_proc)
{
    struct kiln_process *p;

    begin(0);
    drawn_fork(processes, 1, 7);
    drawn_exec(processes, 7, "sqlite3");
    drawn_map(processes, 7, 0x400000, 0x500000, 0x1000, "/usr/bin/sqlite3");
    drawn_map(processes, 7, 0x7f0000, 0x7f8000, 0, "/lib/ld.so");
    p = drawn_sample(processes, 7, 1000, 5);
    CHECK_TEXT(drawn_maps(p), "400000-500000 /usr/bin/sqlite3+1000, 7f0000-7f8000 /lib/ld.so");
    CHECK_EQ(p->era, 5);
    CHECK_TEXT(kiln_process_identity(processes, p)->name, "sqlite3");
    CHECK_TEXT(p->identity->path, "/usr/bin/sqlite3");
    CHECK_TEXT(p->identity->command, "sqlite3");
    CHECK_EQ(p->identity->parent_pid, 1);
    end();
}

TEST(process, a_child_has_the_mappings_of_its_parent_until_one_of_them_changes_them)
{
    struct kiln_process *p;

    begin(0);
    drawn_exec(processes, 7, "a");
    drawn_map(processes, 7, 0x1000, 0x2000, 0, "/a");
    drawn_fork(processes, 7, 8);
    p = drawn_sample(processes, 8, 2000, 1);
    CHECK_TEXT(drawn_maps(p), "1000-2000 /a");
    drawn_map(processes, 8, 0x3000, 0x4000, 0, "/b");
    drawn_map(processes, 7, 0x5000, 0x6000, 0, "/c");
    CHECK_TEXT(drawn_maps(drawn_sample(processes, 7, 1000, 1)), "1000-2000 /a, 5000-6000 /c");
    CHECK_TEXT(drawn_maps(drawn_sample(processes, 8, 2000, 1)), "1000-2000 /a, 3000-4000 /b");
    CHECK_TEXT(kiln_process_identity(processes, drawn_sample(processes, 8, 2000, 1))->name, "a");
    end();
}

TEST(process, an_exec_drops_the_mappings_the_identity_and_the_tables)
{
    struct kiln_process *p;

    begin(0);
    drawn_exec(processes, 7, "a");
    drawn_map(processes, 7, 0x1000, 0x2000, 0, "/a");
    p = drawn_sample(processes, 7, 1000, 1);
    CHECK_TEXT(kiln_process_identity(processes, p)->name, "a");
    p->installed_version = p->version;
    drawn_exec(processes, 7, "b");
    CHECK_EQ(voided, 1);
    drawn_map(processes, 7, 0x1000, 0x9000, 0, "/b");
    p = drawn_sample(processes, 7, 1000, 2);
    CHECK_TEXT(drawn_maps(p), "1000-9000 /b");
    CHECK_TEXT(kiln_process_identity(processes, p)->name, "b");
    CHECK_EQ(voided, 1);
    end();
}

TEST(process, another_era_without_an_event_is_another_program_and_proc_is_read)
{
    struct kiln_process *p;

    begin(0);
    fake_proc_add(&fake, 7, 1, 5000000000);
    fake_proc_text(&fake, 7, "maps", "1000-2000 r-xp 00000000 08:01 5 /new\n");
    drawn_exec(processes, 7, "a");
    drawn_map(processes, 7, 0x1000, 0x2000, 0, "/old");
    p = drawn_sample(processes, 7, 5000000000, 1);
    CHECK_TEXT(drawn_maps(p), "1000-2000 /old");
    p->installed_version = p->version;
    p = drawn_sample(processes, 7, 5000000000, 2);
    CHECK_TEXT(drawn_maps(p), "1000-2000 /new");
    CHECK_EQ(voided, 1);
    end();
}

TEST(process, a_sample_of_the_program_before_is_nobodys)
{
    struct kiln_record late = {.size = sizeof(late), .pid = 7, .tid = 7, .start_ns = 9, .era = 1};

    begin(0);
    drawn_exec(processes, 7, "a");
    CHECK(drawn_sample(processes, 7, 9, 1));
    drawn_exec(processes, 7, "b");
    CHECK(drawn_sample(processes, 7, 9, 2));
    CHECK(!kiln_processes_of(processes, &late));
    CHECK_EQ(drawn_sample(processes, 7, 9, 2)->era, 2);
    end();
}

TEST(process, a_sample_amid_an_exec_does_not_cost_the_new_mappings)
{
    begin(0);
    drawn_exec(processes, 7, "a");
    CHECK(drawn_sample(processes, 7, 9, 1));
    drawn_exec(processes, 7, "b");
    CHECK(drawn_sample(processes, 7, 9, 1));
    drawn_map(processes, 7, 0x1000, 0x2000, 0, "/b");
    CHECK_TEXT(drawn_maps(drawn_sample(processes, 7, 9, 2)), "1000-2000 /b");
    end();
}

TEST(process, a_pid_used_again_is_another_process)
{
    struct kiln_process *old, *new;

    begin(0);
    drawn_exec(processes, 7, "a");
    drawn_map(processes, 7, 0x1000, 0x2000, 0, "/a");
    old = drawn_sample(processes, 7, 1000, 1);
    new = drawn_sample(processes, 7, 2000, 1);
    CHECK(old != new && old->gone && !new->gone);
    CHECK_EQ(new->n_maps, 0);
    CHECK(drawn_sample(processes, 7, 1000, 1) == old);
    CHECK_EQ(old->n_maps, 1);
    end();
}

TEST(process, a_fork_with_a_known_pid_is_another_process)
{
    begin(0);
    drawn_exec(processes, 7, "a");
    drawn_map(processes, 7, 0x1000, 0x2000, 0, "/a");
    CHECK_EQ(drawn_sample(processes, 7, 1000, 1)->n_maps, 1);
    drawn_exec(processes, 1, "init");
    drawn_fork(processes, 1, 7);
    CHECK_EQ(drawn_sample(processes, 7, 2000, 1)->n_maps, 0);
    end();
}

TEST(process, proc_is_read_for_a_process_that_no_event_told_of)
{
    struct kiln_process *p;

    begin(0);
    fake_proc_add(&fake, 7, 3, 5000000000);
    fake_proc_text(&fake, 7, "maps",
                   "1000-2000 r--p 00000000 08:01 5 /bin/a\n"
                   "2000-3000 r-xp 00001000 08:01 5                          /bin/a b (deleted)\n"
                   "4000-5000 rwxp 00000000 00:00 0 \n"
                   "5000-6000 rwxp 00000000 00:00 0 [heap]\n"
                   "7000-8000 r-xp 00000000 00:00 0                          [vdso]\n"
                   "garbage\n"
                   "9000-9000 r-xp 00000000 00:00 0 /empty\n"
                   "a000-b000 r-xp 00000000 00:01 9 /memfd:jit (deleted)\n");
    CHECK_OK(kiln_processes_scan(processes));
    p = drawn_sample(processes, 7, 5000000000, 1);
    CHECK_TEXT(drawn_maps(p), "2000-3000 /bin/a b+1000, 4000-6000 //anon, 7000-8000 [vdso], "
                              "a000-b000 /memfd:jit");
    end();
}

TEST(process, a_process_that_began_at_another_time_is_not_read)
{
    begin(0);
    fake_proc_add(&fake, 7, 3, 5000000000);
    fake_proc_text(&fake, 7, "maps", "1000-2000 r-xp 00000000 08:01 5 /bin/a\n");
    CHECK_EQ(drawn_sample(processes, 7, 4000000000, 1)->n_maps, 0);
    CHECK_EQ(drawn_sample(processes, 7, 5004000000, 1)->n_maps, 1);
    end();
}

TEST(process, a_child_that_is_gone_has_what_its_unread_parent_has)
{
    struct kiln_process *p;

    begin(0);
    fake_proc_add(&fake, 7, 3, 5000000000);
    fake_proc_text(&fake, 7, "maps", "1000-2000 r-xp 00000000 08:01 5 /bin/bash\n");
    fake_proc_link(&fake, 7, "exe", "/bin/bash");
    CHECK_OK(kiln_processes_scan(processes));
    drawn_fork(processes, 7, 8);
    drawn_fork(processes, 8, 9);
    drawn_exit(processes, 8, 8);
    p = drawn_sample(processes, 9, 6000000000, 1);
    CHECK_TEXT(drawn_maps(p), "1000-2000 /bin/bash");
    CHECK_TEXT(kiln_process_identity(processes, p)->name, "bash");
    end();
}

TEST(process, a_child_that_runs_another_program_by_now_was_sampled_in_its_parents)
{
    struct kiln_process *p;

    begin(0);
    fake_proc_add(&fake, 7, 3, 5000000000);
    fake_proc_text(&fake, 7, "maps", "1000-2000 r-xp 00000000 08:01 5 /bin/bash\n");
    fake_proc_link(&fake, 7, "exe", "/bin/bash");
    CHECK_OK(kiln_processes_scan(processes));
    drawn_fork(processes, 7, 8);
    drawn_map(processes, 8, 0x5000, 0x6000, 0, "/lib/late.so");
    fake_proc_add(&fake, 8, 7, 6000000000);
    fake_proc_text(&fake, 8, "maps", "1000-2000 r-xp 00000000 08:01 5 /bin/ls\n");
    fake_proc_link(&fake, 8, "exe", "/bin/ls");
    p = drawn_sample(processes, 8, 6000000000, 1);
    CHECK_TEXT(drawn_maps(p), "1000-2000 /bin/bash, 5000-6000 /lib/late.so");
    CHECK_TEXT(kiln_process_identity(processes, p)->name, "bash");
    drawn_exec(processes, 8, "ls");
    drawn_map(processes, 8, 0x1000, 0x2000, 0, "/bin/ls");
    p = drawn_sample(processes, 8, 6000000000, 2);
    CHECK_TEXT(drawn_maps(p), "1000-2000 /bin/ls");
    CHECK_TEXT(kiln_process_identity(processes, p)->name, "ls");
    end();
}

TEST(process, one_that_is_gone_without_a_trace_is_called_by_its_thread)
{
    struct kiln_process *p;

    begin(0);
    p = drawn_sample(processes, 7, 1000, 1);
    CHECK_EQ(p->n_maps, 0);
    CHECK(!kiln_process_map(processes, p, 0x1000));
    CHECK_TEXT(kiln_process_identity(processes, p)->name, "thread");
    CHECK_TEXT(p->identity->path, "");
    CHECK_EQ(p->identity->uid, UINT32_MAX);
    end();
}

TEST(process, after_lost_events_proc_is_read_again)
{
    begin(0);
    fake_proc_add(&fake, 7, 3, 5000000000);
    fake_proc_text(&fake, 7, "maps", "1000-2000 r-xp 00000000 08:01 5 /a\n");
    drawn_exec(processes, 7, "a");
    CHECK_EQ(drawn_sample(processes, 7, 5000000000, 1)->n_maps, 0);
    drawn_lost(processes);
    CHECK_TEXT(drawn_maps(drawn_sample(processes, 7, 5000000000, 1)), "1000-2000 /a");
    end();
}

TEST(process, one_that_is_gone_stays_until_the_sweep)
{
    struct kiln_process *p;

    begin(0);
    drawn_fork(processes, 1, 7);
    drawn_exec(processes, 7, "a");
    drawn_map(processes, 7, 0x1000, 0x2000, 0, "/a");
    p = drawn_sample(processes, 7, 1000, 1);
    p->installed_version = p->version;
    drawn_exit(processes, 7, 7);
    CHECK(drawn_sample(processes, 7, 1000, 1) == p && p->gone);
    kiln_processes_sweep(processes);
    CHECK(drawn_sample(processes, 7, 1000, 1) == p && p->n_maps == 1);
    CHECK_EQ(voided, 0);
    kiln_processes_sweep(processes);
    CHECK_EQ(voided, 1);
    CHECK_EQ(drawn_sample(processes, 7, 1000, 1)->n_maps, 0);
    end();
}

TEST(process, the_first_thread_may_end_before_the_others)
{
    struct kiln_process *p;

    begin(0);
    drawn_fork(processes, 1, 7);
    drawn_thread(processes, 7, 8);
    drawn_thread(processes, 7, 9);
    p = drawn_sample(processes, 7, 1000, 1);
    drawn_exit(processes, 7, 7);
    drawn_exit(processes, 7, 8);
    CHECK(!p->gone);
    drawn_exit(processes, 7, 9);
    CHECK(p->gone);
    end();
}

TEST(process, an_exec_of_a_thread_when_the_first_one_has_ended_goes_on)
{
    struct kiln_process *p;

    begin(0);
    drawn_fork(processes, 1, 7);
    p = drawn_sample(processes, 7, 1000, 1);
    drawn_exit(processes, 7, 7);
    CHECK(p->gone);
    drawn_exec(processes, 7, "b");
    drawn_map(processes, 7, 0x1000, 0x2000, 0, "/b");
    CHECK(drawn_sample(processes, 7, 1000, 2) == p && !p->gone);
    CHECK_TEXT(drawn_maps(p), "1000-2000 /b");
    end();
}

TEST(process, proc_says_whether_one_whose_threads_were_not_counted_is_over)
{
    struct kiln_process *p;

    begin(0);
    fake_proc_add(&fake, 7, 1, 1000);
    fake_proc_text(&fake, 7, "stat", "7 (a) Z 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 0 31 376\n");
    CHECK_OK(kiln_processes_scan(processes));
    p = drawn_sample(processes, 7, 1000, 1);
    drawn_exit(processes, 7, 7);
    CHECK(!p->gone);
    drawn_exit(processes, 7, 8);
    CHECK(!p->gone);
    fake_proc_remove(&fake, 7);
    drawn_exit(processes, 7, 9);
    CHECK(p->gone);
    end();
}

TEST(process, what_is_gone_though_its_exit_was_lost_is_found_out)
{
    struct kiln_process *p;

    begin(0);
    fake_proc_add(&fake, 8, 1, 1000);
    drawn_exec(processes, 7, "a");
    drawn_exec(processes, 8, "b");
    p = drawn_sample(processes, 7, 1000, 1);
    p->installed_version = 1;
    kiln_processes_sweep(processes);
    kiln_processes_sweep(processes);
    CHECK_EQ(voided, 0);
    drawn_lost(processes);
    kiln_processes_sweep(processes); /* it is gone, */
    kiln_processes_sweep(processes); /* and may still be sampled; */
    kiln_processes_sweep(processes);
    CHECK_EQ(voided, 1);
    end();
}

TEST(process, all_kernel_threads_are_one_process)
{
    struct kiln_record a = {.pid = 3, .tid = 3, .flags = KILN_RECORD_KERNEL_THREAD};
    struct kiln_record b = {.pid = 4, .tid = 4, .flags = KILN_RECORD_KERNEL_THREAD};
    struct kiln_process *p;

    begin(0);
    p = kiln_processes_of(processes, &a);
    CHECK(p == kiln_processes_of(processes, &b));
    CHECK(kiln_process_identity(processes, p)->is_kernel);
    CHECK_TEXT(p->identity->name, "kernel");
    CHECK(!kiln_process_map(processes, p, 0x1000));
    end();
}

TEST(process, beyond_the_limit_those_longest_not_sampled_are_forgotten)
{
    struct kiln_process *p;

    begin(3);
    for (uint32_t pid = 10; pid < 13; pid++) {
        drawn_exec(processes, pid, "a");
        drawn_map(processes, pid, 0x1000, 0x2000, 0, "/a");
        p = drawn_sample(processes, pid, pid, 1);
        p->installed_version = p->version;
    }
    CHECK_EQ(drawn_sample(processes, 10, 10, 1)->n_maps, 1);
    drawn_exec(processes, 20, "b");
    CHECK_EQ(voided, 1);
    CHECK_EQ(drawn_sample(processes, 10, 10, 1)->n_maps, 1);
    CHECK_EQ(drawn_sample(processes, 12, 12, 1)->n_maps, 1);
    CHECK_EQ(drawn_sample(processes, 11, 11, 1)->n_maps, 0);
    end();
}

TEST(process, events_of_other_pid_namespaces_are_nobodys)
{
    begin(0);
    drawn_exec(processes, 0, "idle");
    drawn_exec(processes, UINT32_MAX, "stranger");
    drawn_fork(processes, UINT32_MAX, UINT32_MAX - 1);
    drawn_exit(processes, UINT32_MAX, UINT32_MAX);
    end();
}
