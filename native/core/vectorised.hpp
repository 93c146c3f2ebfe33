// Compiles a loop over arrays a second time for wider vector registers. The choice between the two
// versions is made when the program is loaded.
#pragma once
#include <cstdint>  // and with it the macros of the C library

// The second version is left out where the C library does not support that choice (an indirect function), and under
// sanitizers, because their run-time library has not been loaded yet when the choice is made.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && !defined(__AVX2__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define ISOLANG_VECTORISED [[gnu::target_clones("avx2", "default")]]
#else
#define ISOLANG_VECTORISED
#endif
