/* SPDX-License-Identifier: Apache-2.0 */
#include "store/clock_watch.h"

#include "base/clock.h"

#define JUMP_NS ((int64_t)(3600 * KILN_NS_PER_S))
#define DAY_NS  ((int64_t)(24 * 3600 * KILN_NS_PER_S))

static void trust(struct kiln_clock_watch *watch, int64_t expected_ns, int64_t margin_ns)
{
    watch->expected_ns = expected_ns;
    watch->most_ns = expected_ns + margin_ns;
}

void kiln_clock_watch_start(struct kiln_clock_watch *watch, uint64_t unix_ns, uint64_t boot_ns,
                            uint64_t newest_ns)
{
    int64_t now = (int64_t)(unix_ns - boot_ns), newest = (int64_t)(newest_ns - boot_ns);

    watch->seen_ns = now;
    watch->since_ns = boot_ns;
    if (newest_ns == 0 || (now >= newest && now - newest <= DAY_NS))
        trust(watch, now, JUMP_NS);
    else /* ahead; or behind, as a machine without a battery is until it has the time */
        trust(watch, newest, DAY_NS);
}

uint64_t kiln_clock_watch_look(struct kiln_clock_watch *watch, uint64_t unix_ns, uint64_t boot_ns)
{
    int64_t now = (int64_t)(unix_ns - boot_ns);

    if (now > watch->seen_ns + JUMP_NS || now < watch->seen_ns - JUMP_NS) {
        watch->seen_ns = now;
        watch->since_ns = boot_ns;
    } else if (boot_ns - watch->since_ns >= (uint64_t)DAY_NS) {
        trust(watch, now, JUMP_NS);
        watch->seen_ns = now;
        watch->since_ns = boot_ns;
    }
    return now > watch->most_ns ? (uint64_t)(now - watch->expected_ns) : 0;
}
