/* The machine's limits, measured: float32 FMA rate and memory read rate of one thread. Built by limits.py. */
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

typedef float vec __attribute__((vector_size(64)));

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* GFLOP/s of independent multiply-adds that stay in registers. */
double fma_rate(void) {
#ifdef __AVX512F__
  enum { kLanes = 16 };
#else
  enum { kLanes = 8 };
#endif
  typedef float lanes __attribute__((vector_size(4 * kLanes)));
  lanes a[12], b = (lanes){0} + 1, c = b * 0.5f;
  for (int i = 0; i < 12; ++i) a[i] = b;
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const long n = 4000000;
    const double t = now();
    for (long k = 0; k < n; ++k)
#pragma GCC unroll 12
      for (int i = 0; i < 12; ++i) a[i] = a[i] * c + b;
    const double rate = 2.0 * 12 * kLanes * n / (now() - t) * 1e-9;
    if (rate > best) best = rate;
  }
  volatile float sink = 0;
  for (int i = 0; i < 12; ++i) sink += a[i][0];
  return best;
}

/* GB/s of reading `bytes` in eight streams on large pages. */
double read_rate(size_t bytes) {
  char* p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return 0;
  madvise(p, bytes, MADV_HUGEPAGE);
  for (size_t i = 0; i < bytes; i += 4096) p[i] = 1;
  const size_t each = bytes / 8 / sizeof(vec);
  double best = 0;
  vec sum[8] = {0};
  for (int round = 0; round < 6; ++round) {
    const double t = now();
    const vec* q = (const vec*)p;
    for (size_t i = 0; i < each; ++i)
#pragma GCC unroll 8
      for (int s = 0; s < 8; ++s) sum[s] += q[s * each + i];
    const double rate = (double)bytes / (now() - t) * 1e-9;
    if (rate > best) best = rate;
  }
  volatile float sink = 0;
  for (int s = 0; s < 8; ++s) sink += sum[s][0];
  munmap(p, bytes);
  return best;
}
