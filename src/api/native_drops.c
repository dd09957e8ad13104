/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever Kiln counts that it dropped, refused, cut short or failed at, as people want to read it:
 * what happened, and what to do.  A row adds up all series of its metric whose labels have its
 * words; rows stand in the order in which they are told.
 */
#include "api/native_int.h"
#include "base/metric.h"

struct drop {
    const char *metric, *label; /* of the labels as they are shown; "": any */
    const char *where, *reason;
    const char *text, *remedy;
};

/* Texts are sentences for people, without a full stop where there is one alone. */
static const struct drop drops[] = {
    {"kiln_receiver_requests_total", "outcome=\"rejected\"", "receive", "rejected",
     "Requests with profiles were refused because they could not be read",
     "The answer to each says what is wrong with it: look into the log of the sender. kiln check "
     "FILE says the same of a file"},
    {"kiln_receiver_requests_total", "outcome=\"too_large\"", "receive", "too_large",
     "Requests were refused because their profiles are larger than a request may be",
     "Let the sender send smaller batches, or raise server.limits.body"},
    {"kiln_receiver_requests_total", "outcome=\"busy\"", "receive", "busy",
     "Requests came faster than they could be kept, and their senders were told to try again",
     "Where it goes on: more memory (--memory-limit), a faster disk, or a lower rate at the "
     "senders"},
    {"kiln_admission_refused_total", "reason=\"timeout\"", "receive", "waited",
     "Requests found no memory for as long as they may wait, and were refused",
     "Raise --memory-limit, or let the senders send less at once"},
    {"kiln_admission_refused_total", "reason=\"full\"", "receive", "too_many_wait",
     "Requests found no memory, and too many others that waited for it, and were refused",
     "Raise --memory-limit, or let the senders send less at once"},
    {"kiln_receiver_requests_total", "outcome=\"storage\"", "receive", "storage",
     "Requests could not be written to the disk, and their senders were told to try again",
     "Look at the space and the health of the disk that has the data folder"},
    {"kiln_receiver_requests_total", "outcome=\"stopping\"", "receive", "stopping",
     "Requests came while the server was shutting down", "Nothing: senders try again"},
    {"kiln_receiver_silent_samples_total", "", "receive", "silent_samples",
     "Samples had neither a value nor a timestamp, and count for nothing",
     "The sender speaks a revision of OTLP that cannot be told apart: bring it up to date"},
    {"kiln_redaction_refused_total", "", "receive", "redaction",
     "Requests were refused because what must not be kept could not be taken out of them",
     "Look at the rules of redaction and at the answer that the sender got"},
    {"kiln_scrape_total", "outcome=\"failed\"", "scrape", "failed",
     "Profiles could not be fetched from their targets",
     "The log names target and reason; kiln_scrape_up in /metrics says which are down"},
    {"kiln_scrape_late_total", "", "scrape", "late",
     "Fetches were left out because too many were under way",
     "Fetch less often, or have fewer targets in a job"},
    {"kiln_refused_total", "reason=\"unauthenticated\"", "access", "unauthenticated",
     "Requests came without a token, or with one that is not known",
     "Give the sender a token of the file that --tokens names"},
    {"kiln_refused_total", "reason=\"throttled\"", "access", "throttled",
     "Requests with a token after too many wrong ones from the same address",
     "An attacker guesses tokens, or clients have old ones: the audit records name the address"},
    {"kiln_refused_total", "reason=\"forbidden\"", "access", "forbidden",
     "Requests came with a token that may not do what they asked for",
     "Widen the token's access or tenant in the file of tokens, if that is meant"},
    {"kiln_refused_total", "reason=\"host\"", "access", "host",
     "Requests named a host that this server does not go by; that is how pages of other sites "
     "reach a local server (DNS rebinding)",
     "If the name is yours, add it to server.host_names, or use tokens"},
    {"kiln_refused_total", "reason=\"cross_site\"", "access", "cross_site",
     "Pages of other sites sent requests through the browser of a user",
     "Nothing, they were refused. If it is your own proxy, let it pass the header Host on as it "
     "is"},
    {"kiln_refused_total", "reason=\"tenant\"", "access", "tenant",
     "Requests named no tenant, or one that cannot be", "Let the sender set X-Scope-OrgID"},
    {"kiln_refused_total", "reason=\"body\"", "limits", "body",
     "Requests were larger than a tenant may send",
     "Let the sender send smaller batches, or raise server.limits.body"},
    {"kiln_refused_total", "reason=\"rate\"", "limits", "rate",
     "A tenant sent more bytes a second than it may, and was told to wait",
     "Raise server.limits.bytes_per_second, or let it profile less often"},
    {"kiln_tokens_reloads_total", "result=\"failed\"", "access", "tokens_not_read",
     "The file of tokens changed, but could not be read: the old tokens stay",
     "The log names the line; put it right"},
    {"kiln_http_refused_total", "reason=\"not_found\"", "http", "not_found",
     "Requests were for a path that there is not",
     "Look at the address that the sender was given: OTLP over HTTP goes to "
     "/v1development/profiles"},
    {"kiln_http_refused_total", "reason=\"method\"", "http", "method",
     "Requests had a method that their path does not take", "Look at the sender"},
    {"kiln_http_refused_total", "reason=\"encoding\"", "http", "encoding",
     "Requests were compressed in a way that Kiln does not read",
     "Let the sender use gzip or zstd"},
    {"kiln_http_refused_total", "reason=\"head_too_large\"", "http", "head_too_large",
     "Requests had more bytes of headers than are taken", "Look at the sender, and at its cookies"},
    {"kiln_http_refused_total", "reason=\"too_large\"", "http", "too_large",
     "Requests were larger than the server takes",
     "Let the sender send smaller batches, or raise server.limits.body"},
    {"kiln_http_refused_total", "reason=\"malformed\"", "http", "malformed",
     "Connections spoke something that is not HTTP",
     "Does a sender use TLS where the server does not, or speak to the wrong port?"},
    {"kiln_http_refused_total", "reason=\"handshake\"", "http", "handshake",
     "TLS connections could not be made",
     "Does the sender trust the server's certificate, and show its own where one is asked for?"},
    {"kiln_http_refused_total", "reason=\"timeout\"", "http", "timeout",
     "Requests came too slowly, and were given up",
     "Look at the network between the sender and the server"},
    {"kiln_http_refused_total", "reason=\"flood\"", "http", "flood",
     "Connections were ended because they sent frames without end", "Look at who sends them"},
    {"kiln_http_refused_total", "reason=\"connections\"", "http", "connections",
     "Connections were refused because there were too many",
     "Raise the limit of open files (LimitNOFILE), or let senders keep their connections"},
    {"kiln_http_refused_total", "reason=\"evicted\"", "http", "evicted",
     "Connections at rest were ended to make room for others",
     "Raise the limit of open files (LimitNOFILE) if senders complain"},
    {"kiln_http_refused_total", "reason=\"queue\"", "http", "queue",
     "Requests found the queue for workers full, and were told to try again",
     "The machine is too slow for what comes in: more processors, or a lower rate"},
    {"kiln_http_refused_total", "reason=\"long_queue\"", "query", "queue",
     "Questions found their queue full, and were told to try again",
     "Ask less at once, or for shorter times"},
    {"kiln_http_refused_total", "reason=\"memory\"", "http", "memory",
     "Requests came when there was no memory for their bodies, and were told to try again",
     "Raise --memory-limit, or let the senders send less at once"},
    {"kiln_store_rejected_total", "reason=\"too_old\"", "store", "too_old",
     "Profiles were older than the store keeps, and not taken",
     "Look at the clock of the sender, or raise --retention"},
    {"kiln_store_rejected_total", "reason=\"memory\"", "store", "memory",
     "Batches were refused for want of memory, and their senders were told to try again",
     "Raise --memory-limit"},
    {"kiln_store_rejected_total", "reason=\"lag\"", "store", "lag",
     "Batches came faster than the store could sort them in, and were to be sent again",
     "More processors, a faster disk, or a lower rate at the senders"},
    {"kiln_store_rejected_total", "reason=\"space\"", "store", "space",
     "Batches were refused because the disk is full", "Free some space, or lower --retention-size"},
    {"kiln_store_rejected_total", "reason=\"io\"", "store", "io", "Batches could not be written",
     "Look at the log, and at the health of the disk"},
    {"kiln_store_duplicates_total", "", "store", "duplicates",
     "Profiles came a second time, and were kept once",
     "Nothing: it is what senders do that try again"},
    {"kiln_store_clamped_timestamps_total", "", "store", "clamped_timestamps",
     "Timestamps lay outside the range of their profile, and count at its nearer end",
     "Look at the clock of the sender, and at the durations that it sends"},
    {"kiln_store_series_overflow_total", "", "store", "series_overflow",
     "Profiles had more different sets of labels than are kept apart, and went into one series",
     "Take labels away that change all the time (ids, addresses), or raise server.limits.series"},
    {"kiln_store_unapplied_total", "", "store", "unapplied",
     "Records of the log could not be read again, and what they held is missing",
     "kiln store check says what is damaged"},
    {"kiln_store_set_aside_total", "", "store", "set_aside",
     "Damaged files were set aside: what they held is missing from answers",
     "They lie in aside/ of the data folder. kiln store check says what is damaged; look at the "
     "disk"},
    {"kiln_store_damaged_total", "", "store", "damaged", "Damaged parts of files were passed over",
     "kiln store check says what is damaged; look at the disk"},
    {"kiln_store_cut_failures_total", "", "store", "cut_failed",
     "Blocks could not be written, and are tried again", "Look at the log, and at the disk"},
    {"kiln_store_compaction_failures_total", "", "store", "merge_failed",
     "Blocks could not be merged, and are tried again", "Look at the log, and at the disk"},
    {"kiln_wal_failures_total", "reason=\"no_space\"", "store", "log_no_space",
     "The log could not be written because the disk is full", "Free some space"},
    {"kiln_wal_failures_total", "reason=\"io\"", "store", "log_io", "The log could not be written",
     "Look at the health of the disk"},
    {"kiln_wal_failures_total", "reason=\"sync\"", "store", "log_sync",
     "The disk did not confirm what was written to the log", "Look at the health of the disk"},
    {"kiln_wal_failures_total", "reason=\"limit\"", "store", "log_limit",
     "Batches were larger than a record of the log may be", "Let the sender send smaller batches"},
    {"kiln_queries_total", "outcome=\"limited\"", "query", "limited",
     "Questions took more memory, or would have read more bytes, than one may",
     "Ask for a shorter time or fewer services, or raise --query-memory"},
    {"kiln_queries_total", "outcome=\"timeout\"", "query", "timeout",
     "Questions took longer than one may", "Ask for a shorter time, or raise --query-timeout"},
    {"kiln_queries_total", "outcome=\"failed\"", "query", "failed", "Questions failed",
     "The log says why"},
    {"kiln_pool_refused_total", "", "memory", "pool",
     "Memory was asked for that was not there, and whoever wanted it had to wait or was refused",
     "Now and then is ordinary; where it grows all the time, raise --memory-limit"},
    {"kiln_host_lost_samples_total", "", "host", "lost",
     "Samples of this host found no room, or their process was gone",
     "Sample less often (--frequency), or give the profiler more memory (--agent-memory-limit)"},
    {"kiln_host_dropped_samples_total", "", "host", "not_published",
     "Samples of this host were gathered, but could not be handed on in time",
     "The machine or its disk is too busy: sample less often (--frequency)"},
    {"kiln_host_failed_batches_total", "", "host", "batches_failed",
     "Batches of the host profiler were not taken", "The log says why"},
    {"kiln_host_raw_held_total", "", "host", "raw_held",
     "Samples of code that was new came so fast that their stacks are cut short",
     "It passes when programs have been running for some seconds; else give --unwind-memory more"},
    {"kiln_host_foreign_samples_total", "", "host", "foreign",
     "Samples were of processes that this container cannot see",
     "Run the profiler in the PID namespace of the host (hostPID, --pid=host)"},
    {"kiln_host_early_total", "", "host", "early",
     "Samples were handled before their turn, for want of room: some may have the wrong mapping",
     "Give the profiler more memory (--agent-memory-limit), or sample less often"},
    {"kiln_host_late_total", "", "host", "late",
     "Samples came after later ones were handled: some may have the wrong mapping",
     "The machine is too busy to read samples in time: sample less often (--frequency)"},
    {"kiln_host_processes_forgotten_total", "", "host", "processes_forgotten",
     "Processes were forgotten because there were too many",
     "Profile fewer of them (--cgroup, --comm, --exclude-...)"},
    {"kiln_host_objects_unopened_total", "", "host", "files_unopened",
     "Files with code could not be opened: functions of them have no names, or stacks end there",
     "They may have been deleted or replaced: restart the programs that still run them"},
    {"kiln_host_files_late_total", "", "host", "files_late",
     "Files of another machine or of a program (NFS, FUSE) were not waited for any longer: "
     "functions of them have no names, or stacks end there",
     "Look at who serves the mounts that the programs were started from"},
    {"kiln_host_unwind_bad_files_total", "", "host", "bad_files",
     "Files had unwind tables that could not be read: stacks through them end there",
     "Look for programs that are packed or damaged"},
    {"kiln_names_set_aside_total", "", "host", "names_set_aside",
     "Files took too long to read names from, and are left alone for an hour",
     "Nothing: their functions are shown by their addresses meanwhile"},
    {"kiln_names_debug_set_aside_total", "", "host", "debug_set_aside",
     "Files took too long to read debug information from: they go without lines for an hour",
     "Nothing: their functions keep their names"},
    {"kiln_names_disk_failures_total", "", "host", "symbol_cache",
     "Names of functions could not be kept on disk, or were damaged there: they are found anew",
     "Look whether the disk is full, and whether --symbol-cache may be written to"},
    {"kiln_names_child_restarts_total", "", "host", "names_restarted",
     "The process that finds names of functions ended, and was started again",
     "The log says on which file; where it is always the same one, that file is damaged or "
     "hostile"},
    {"kiln_naming_failed_total", "", "naming", "unreadable",
     "Debug files were there but could not be read: what they are of has no names",
     "kiln symbols missing says which, and why"},
    {"kiln_symbols_removed_total", "reason=\"quota\"", "naming", "quota",
     "Debug files made room for others", "Raise --symbols-quota if they are still wanted"},
    {"kiln_symbols_refused_total", "", "naming", "refused",
     "Debug files were uploaded, and not kept", "Who uploaded them was told why"},
    {"kiln_debuginfod_requests_total", "outcome=\"failed\"", "naming", "debuginfod",
     "A debuginfod server failed, and is asked again later", "The log says how"},
    {"kiln_export_dropped_requests_total", "", "export", "dropped",
     "Requests to another receiver were given up",
     "Look at the receiver, and give the spool more room"},
    {"kiln_export_rejected_profiles_total", "", "export", "rejected",
     "Another receiver left profiles out of what it took", "Look at the receiver's log"},
    {"kiln_export_spool_errors_total", "", "export", "spool",
     "Requests to another receiver could not be written to the spool, and wait in memory",
     "Look at the space and the rights of the spool's folder"},
    {"kiln_metrics_overflow_total", "", "server", "metrics",
     "There are more metrics than are shown", "Scrape fewer jobs, or name them alike"},
};

struct counted {
    double counts[KILN_ARRAY_LEN(drops)];
};

/* Whether the labels have the words as a whole one of them. */
static bool has_label(struct kiln_str labels, const char *words)
{
    struct kiln_str word = kiln_str_of(words);

    if (!word.len)
        return true;
    while (labels.ptr) {
        if (kiln_str_eq(kiln_str_cut(&labels, ','), word))
            return true;
    }
    return false;
}

static void count(void *context, const struct kiln_metric_shown *metric)
{
    struct counted *counted = context;

    if (metric->kind != KILN_COUNTER || !(metric->value > 0))
        return;
    for (size_t i = 0; i < KILN_ARRAY_LEN(drops); i++) {
        if (kiln_str_eq(metric->name, kiln_str_of(drops[i].metric)) &&
            has_label(metric->labels, drops[i].label))
            counted->counts[i] += metric->value;
    }
}

void kiln_native_put_drops(struct kiln_native_call *call, bool none)
{
    struct counted counted = {0};

    if (!none) {
        kiln_metrics_collect(call->api->metrics);
        kiln_metrics_each(call->api->metrics, count, &counted);
    }
    kiln_json_put_name(&call->w, "drops");
    kiln_json_put_array(&call->w);
    for (size_t i = 0; i < KILN_ARRAY_LEN(drops); i++) {
        if (!(counted.counts[i] >= 1))
            continue;
        kiln_json_put_object(&call->w);
        kiln_native_put_text(call, "where", kiln_str_of(drops[i].where));
        kiln_native_put_text(call, "reason", kiln_str_of(drops[i].reason));
        kiln_native_put_u64(call, "count", (uint64_t)counted.counts[i]);
        kiln_native_put_text(call, "text", kiln_str_of(drops[i].text));
        kiln_native_put_text(call, "remedy", kiln_str_of(drops[i].remedy));
        kiln_json_end_object(&call->w);
    }
    kiln_json_end_array(&call->w);
}
