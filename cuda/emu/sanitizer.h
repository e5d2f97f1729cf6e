// The sanitizers' hooks, all of them nothing in a plain build.
//
// ASan sees the emulator and the kernels. TSan must see the kernels alone: the emulator is then built without
// -fsanitize=thread but with PLM_EMU_TSAN, and tells TSan what orders memory on a GPU (barriers, __syncwarp,
// the start and the end of a block), and nothing else.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define PLM_EMU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PLM_EMU_ASAN 1
#endif
#endif

#ifdef PLM_EMU_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifdef PLM_EMU_TSAN
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char*, int);
void AnnotateIgnoreReadsEnd(const char*, int);
void AnnotateIgnoreWritesBegin(const char*, int);
void AnnotateIgnoreWritesEnd(const char*, int);
void __tsan_read_range(void*, unsigned long);
void __tsan_write_range(void*, unsigned long);
}
#endif

namespace plmcore::emu {

#ifdef PLM_EMU_TSAN
// Everything before a release of a tag happens before what follows an acquire of it.
inline void release(const void* tag) { __tsan_release(const_cast<void*>(tag)); }
inline void acquire(const void* tag) { __tsan_acquire(const_cast<void*>(tag)); }
inline void saw_read(const void* p, size_t n) { __tsan_read_range(const_cast<void*>(p), n); }
inline void saw_write(void* p, size_t n) { __tsan_write_range(p, n); }
// The emulator's own bookkeeping is no access of the kernel.
struct Unwatched {
  Unwatched() { AnnotateIgnoreReadsBegin("", 0), AnnotateIgnoreWritesBegin("", 0); }
  ~Unwatched() { AnnotateIgnoreWritesEnd("", 0), AnnotateIgnoreReadsEnd("", 0); }
  Unwatched(const Unwatched&) = delete;
};
#else
inline void release(const void*) {}
inline void acquire(const void*) {}
inline void saw_read(const void*, size_t) {}
inline void saw_write(void*, size_t) {}
struct Unwatched {
  Unwatched() {}
  ~Unwatched() {}
};
#endif

// What ASan reports when it is touched.
#ifdef PLM_EMU_ASAN
inline void forbid(void* p, size_t n) { __asan_poison_memory_region(p, n); }
inline void allow(void* p, size_t n) { __asan_unpoison_memory_region(p, n); }
inline bool forbidden(const void* p, size_t n) {
  return n && __asan_region_is_poisoned(const_cast<void*>(p), n);
}
#else
inline void forbid(void*, size_t) {}
inline void allow(void*, size_t) {}
inline bool forbidden(const void*, size_t) { return false; }
#endif

}  // namespace plmcore::emu
