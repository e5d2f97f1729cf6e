// A block of CUDA threads while it runs: who waits where, and the block's shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "emu/failure.h"
#include "emu/fiber.h"

namespace plmcore::emu {

// A place in a kernel's source. The column tells two barriers on one line apart.
struct Place {
  const char* file = "";
  int line = 0;
  int column = 0;
  bool operator==(const Place& o) const;
};

// What threadIdx and its kin read.
struct Indices {
  uint3 thread, block;
  dim3 block_size, grid_size;
  int lane, warp, number;  // number: of the thread in its block
};

// Work of a whole warp on what its lanes brought: lane[i] is null for lanes outside of the mask.
using Combine = void (*)(void** lane, uint32_t mask);

enum class State : uint8_t { ready, at_barrier, in_warp_operation, returned };

struct Thread {
  struct Copy {
    void* to;
    const void* from;  // null: zeros
    int bytes;
  };

  Indices at;
  Fiber fiber;
  State state = State::ready;
  Place place;                            // of the barrier or warp operation it waits in
  int vote = 0, votes = 0;                // a barrier's predicate, and how many were true
  void* brought = nullptr;                // for the warp operation
  uint32_t mask = 0;
  std::vector<Copy> open_copies;          // cp.async not yet committed
  std::vector<std::vector<Copy>> groups;  // committed, oldest first
};

// What TSan takes for the order that a barrier makes. Two tags in turn: a thread that runs ahead to the next
// barrier must not seem ordered before one that has yet to leave this one.
struct BarrierTags {
  char tags[2];
  unsigned round = 0;
  const void* now() const { return &tags[round % 2]; }
};

// A warp operation that some of its lanes have reached.
struct Meeting {
  uint32_t mask = 0, arrived = 0;
  int operation = 0;
  Place place;
  BarrierTags order;
};

struct SharedArray {
  void* data;
  size_t bytes;
};

class Block {
 public:
  Block(const char* kernel, const std::function<void()>& body, size_t threads, size_t dynamic_bytes);
  ~Block();

  const char* kernel;
  const std::function<void()>& body;
  std::vector<Thread*> threads;
  int running;                                        // threads that have not returned
  int waiting = 0;                                    // of them, at the barrier
  std::vector<uint32_t> returned;                     // per warp: lanes that have returned
  std::vector<Meeting> meetings;                      // by the lowest thread of the mask
  std::map<const void*, SharedArray> shared;          // by the address that names the declaration
  size_t shared_bytes = 0;
  void* dynamic_shared = nullptr;
  std::unique_ptr<Failure> failure;                   // what a thread threw
  char start_tag, end_tag;                            // TSan: addresses to release and acquire
  BarrierTags order;

  void release_barrier();                             // everyone who still runs has arrived
};

extern constinit thread_local Indices* indices;  // of the running CUDA thread; null on the host
extern constinit thread_local Thread* current;
extern constinit thread_local Block* block;

void* poisoned(size_t bytes, const void* tag);  // fresh memory full of NaNs

void suspend();  // the running thread waits: to the host, and back when it is ready

// ---- what a kernel calls, through emulator.h ----
int sync_block(bool vote, Place place);  // __syncthreads; the number of true votes
void collective(uint32_t mask, int operation, void* brought, Combine combine, bool orders_memory,
                Place place);
void* shared_array(const void* key, size_t bytes, const char* name);
void* dynamic_shared();
void fence();
void cp_async(void* to, const void* from, int bytes, bool there);
void cp_commit();
void cp_wait(int open_groups);

extern char grid_end_tag;  // TSan: released by every thread, acquired when the grid is done
void run_grid(const char* kernel, dim3 grid, dim3 size, size_t dynamic_bytes,
              const std::function<void()>& body);

}  // namespace plmcore::emu
