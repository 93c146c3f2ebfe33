// Loops over arrays that are worth a second version for wider vector registers, chosen when the
// program is loaded.
#pragma once
#include <cstdint>  // and with it the macros of the C library

// Not where the choice (an indirect function) is unknown to the C library, nor under sanitizers,
// whose run time is not there yet when it is made.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && !defined(__AVX2__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define ISOLANG_VECTORISED [[gnu::target_clones("avx2", "default")]]
#else
#define ISOLANG_VECTORISED
#endif
