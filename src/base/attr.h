/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attr - compiler attributes under names that say what they are for.
 *
 * Threads: macros only.
 */
#ifndef KILN_BASE_ATTR_H
#define KILN_BASE_ATTR_H

/* The caller must look at the result. */
#define KILN_CHECK             __attribute__((warn_unused_result))

/* The argument number `fmt` is a printf format for the arguments from `args` on. */
#define KILN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Inlined although the compiler would not: for the few lines a decoder lives in. */
#define KILN_INLINE            static inline __attribute__((always_inline))

#define KILN_LIKELY(x)         __builtin_expect(!!(x), 1)
#define KILN_UNLIKELY(x)       __builtin_expect(!!(x), 0)

#define KILN_ARRAY_LEN(a)      (sizeof(a) / sizeof((a)[0]))

/* Built with a sanitizer that has threads and memory of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KILN_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KILN_SANITIZED 1
#endif
#endif
#ifndef KILN_SANITIZED
#define KILN_SANITIZED 0
#endif

#endif /* KILN_BASE_ATTR_H */
